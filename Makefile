# Thin: every target is a few commands one could type. Needs GNU make and a POSIX shell.

.DEFAULT_GOAL := help
# Targets share one build directory, and packages one lock.
.NOTPARALLEL:
.PHONY: help demo test all-tests bench cross-check all-engines package package-test fmt
.PHONY: peers publish-check msrv python-test clean-results
SHELL := /bin/sh

# Build output lives outside the source: clones share it, and copies of the source stay small.
cache := $(or $(XDG_CACHE_HOME),$(if $(HOME),$(HOME)/.cache),$(CURDIR)/target)
export CARGO_TARGET_DIR ?= $(cache)/romanesco/target
export PATH := $(PATH):$(HOME)/.cargo/bin
release = $(CARGO_TARGET_DIR)/release/romanesco

# With ccache the C and C++ engines are compiled once per machine, across profiles and clones. Not
# expanded before a target's first command: what the target requires has installed ccache by then.
# The engines would be compiled anew if the next call named another compiler.
ccache = $(if $(shell command -v ccache 2>/dev/null),ccache )
ifeq ($(origin CC),default)
export CC = $(ccache)cc
endif
ifeq ($(origin CXX),default)
export CXX = $(ccache)c++
endif

# A virtual workspace has no features of its own: each package's are named.
engines := romanesco/all-engines,kv-lmdb/lmdb,kv-rocksdb/rocksdb,kv-wiredtiger/wiredtiger

start := $(shell date +%s)
# banner(title): where we are, and how long it took to get there.
banner = @echo "== $(1) ($$(( $$(date +%s) - $(start) )) s since the start)"

# package_test(program): package the program twice; install, start, upgrade, remove in an overlay.
define package_test
@set -e; package() { scripts/package --binary "$(1)" --compression none "$$@"; }; \
old=$$(package --version 0.0.1-1); new=$$(package); scripts/package-test "$$old" "$$new"
endef

# lab_run(name, arguments): run an experiment into results/name, or beside it if there is one.
define lab_run
@set -e; out="results/$(1)"; \
if [ -e "$$out" ]; then out="$$out-$$(date +%Y%m%d-%H%M%S)"; fi; \
"$(release)" lab run $(2) --out "$$out"; \
if [ ! -e "$$out/report.html" ]; then \
	echo "no report in $$out; see the messages above" >&2; exit 1; \
fi; \
echo "report: $(CURDIR)/$$out/report.html"
endef

# A verdict about two minutes after the build: three repeats, because one shows nothing of the
# noise, and rows of four times the memory, which a B-tree does not finish in the time of a step.
# Published shapes are not judged: betree takes 2 s where 30 are needed, and a B-tree does not load
# three times the memory. That takes more time and disk than a demonstration may.
demo_size := --preset quick --mem 128M --cache 64M --rows 2400000 --time 25 --repeats 3

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

packages := $(addprefix packages-,demo test cross-check all-engines)
.PHONY: $(packages)
$(packages): packages-%:
	$(call banner,packages)
	@scripts/packages $*

demo: packages-demo ## build with betree and LMDB (no C++), run a short experiment
	cargo build --release -p romanesco
	$(call lab_run,demo,iibench-classic $(demo_size))

test: packages-test ## all a change must pass: format, tidy, lints, documentation, tests
	$(call banner,format)
	cargo fmt --all --check
	$(call banner,tidy)
	cargo xtask tidy
	$(call banner,lints: on a new machine RocksDB is compiled first$(comma) 10 to 30 minutes)
	cargo clippy --workspace --all-targets --features $(engines) -- -D warnings
	$(call banner,documentation)
	RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps --workspace --features $(engines)
	$(call banner,clients)
	cargo build --workspace --bins --features $(engines)
	python3 -m unittest discover --quiet --start-directory scripts
	python3 -m unittest discover --quiet --start-directory scripts/compatibility
	python3 -m unittest discover --quiet --start-directory scripts/cross-checks
	scripts/compatibility/run --binary "$(CARGO_TARGET_DIR)/debug/romanesco" \
		smoke node mongoose dump-restore
	$(call banner,package)
	$(call package_test,$(CARGO_TARGET_DIR)/debug/romanesco)
	$(call banner,tests)
	@scripts/count-tests $(MAKE) --no-print-directory all-tests

# The tests alone. Those that cannot run here are counted by scripts/count-tests, which `test` uses.
all-tests:
	cargo test --workspace --doc --features $(engines)
	cargo test -p betree --features shuttle,plants --test shuttle
	cargo test -p betree --features plants --test crash every_planted_bug -- --nocapture
	cargo test --workspace --lib --bins --tests --features $(engines)

peers: ## compare betree with redb, fjall and LMDB as crates (20 minutes), print the tables
	cargo run --release --manifest-path benches/peers/Cargo.toml -- --size in --repeats 3
	cargo run --release --manifest-path benches/peers/Cargo.toml -- --size beyond --repeats 3

betree_crates := -p betree-stdx -p betree-crypt -p betree-vfs -p betree-kv-types -p betree

publish-check: ## package betree and the crates it needs as for a registry, and build the packages
	cargo publish --dry-run --allow-dirty $(betree_crates)

# Its output is apart, so that both compilers keep theirs.
msrv := $(shell sed -n 's/^rust-version = "\(.*\)"$$/\1/p' crates/betree/Cargo.toml)

msrv: ## compile betree and the crates it needs with the oldest Rust they name (fetched by rustup)
	rustup toolchain install $(msrv) --profile minimal --no-self-update
	CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)/msrv" cargo +$(msrv) check --locked $(betree_crates)
	CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)/msrv" cargo +$(msrv) check --locked \
		$(betree_crates) --no-default-features

# The wheel and what builds it stay outside of the source, as the build does.
python := $(cache)/romanesco/python
wheels := $(CARGO_TARGET_DIR)/wheels

python-test: ## build the Python binding as a wheel and test it (tools come from PyPI)
	python3 -m venv "$(python)"
	"$(python)/bin/pip" install --quiet 'maturin>=1.9,<2' 'mypy>=1.18,<3' 'pytest>=8,<10'
	rm -rf "$(wheels)"
	"$(python)/bin/maturin" build --release --locked --out "$(wheels)" \
		--manifest-path bindings/python/Cargo.toml
	"$(python)/bin/pip" install --quiet --force-reinstall --no-deps "$(wheels)"/betree-*.whl
	PYTHONDONTWRITEBYTECODE=1 "$(python)/bin/pytest" -p no:cacheprovider bindings/python
	"$(python)/bin/python" -m mypy.stubtest betree
	@echo "wheel: $$(ls "$(wheels)"/*.whl)"

bench: all-engines ## run the insert benchmark on every engine (long), print its report's path
	$(call lab_run,bench,iibench-classic --preset standard -t $(bench_targets))

cross-check: packages-cross-check all-engines ## compare with sysbench, fio, db_bench, pg_test_fsync
	scripts/cross-check --binary "$(release)"

all-engines: packages-all-engines ## build with every engine (RocksDB takes a quarter of an hour)
	cargo build --release -p romanesco --features all-engines

package: packages-demo ## build the Debian package, print its path
	scripts/package

package-test: packages-demo ## install, start, upgrade and remove the package in an overlay
	cargo build --release -p romanesco
	$(call package_test,$(release))

fmt: ## format the source
	cargo fmt --all

clean-results: ## remove the results of demo and bench runs
	rm -rf results

comma := ,
bench_targets := betree$(comma)lmdb$(comma)rocksdb$(comma)wiredtiger
