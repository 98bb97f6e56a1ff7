//! With the feature `wiredtiger`: finds the system's libwiredtiger, generates the bindings, and
//! compiles the extension that is embedded in the crate.
//!
//! Without the feature `wiredtiger` this program does nothing, so a default build needs neither
//! the library nor libclang.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=trampoline/trampoline.c");
    #[cfg(feature = "wiredtiger")]
    {
        linked::bind();
        linked::compile_trampoline();
    }
}

#[cfg(feature = "wiredtiger")]
mod linked {
    use std::env;
    use std::path::PathBuf;
    use std::process;

    /// The functions of `wiredtiger.h` that the adapter uses. The types they refer to are
    /// generated, too.
    const FUNCTIONS: &str = "wiredtiger_(open|strerror|version)|dl(open|sym|error)";
    const TYPES: &str = "WT_(CONNECTION|SESSION|CURSOR|ITEM|EVENT_HANDLER|COMPRESSOR)";
    const CONSTANTS: &str =
        "WT_(ROLLBACK|DUPLICATE_KEY|ERROR|NOTFOUND|PANIC|RUN_RECOVERY|CACHE_FULL|TRY_SALVAGE)";
    const STATISTICS: &str = "WT_STAT_(CONN|DSRC)_.*";

    const ERRNO: &str = "E(BUSY|TIMEDOUT|NOENT|INVAL|EXIST|NOSPC|DQUOT|NOMEM)|RTLD_NOW";

    const HEADERS: &str = "#include <dlfcn.h>\n#include <errno.h>\n#include <wiredtiger.h>\n";

    pub(super) fn bind() {
        // 3.2 is the oldest release with the configuration strings in src/linked/config.rs.
        let library = pkg_config::Config::new()
            .range_version("3.2".."4")
            .probe("wiredtiger")
            .unwrap_or_else(|error| {
                fail(&format!(
                    "libwiredtiger 3.2 or later (below 4) was not found by pkg-config. On Debian \
                     and Ubuntu: apt-get install libwiredtiger-dev. Or build without the feature \
                     wiredtiger.\n{error}"
                ))
            });
        let directory = pkg_config::get_variable("wiredtiger", "libdir").unwrap_or_default();
        println!("cargo::rustc-env=WIREDTIGER_LIBDIR={directory}");

        let include = library
            .include_paths
            .iter()
            .map(|p| format!("-I{}", p.display()));
        let bindings = bindgen::Builder::default()
            .header_contents("use.h", HEADERS)
            .clang_args(include)
            .allowlist_function(FUNCTIONS)
            .allowlist_type(TYPES)
            .allowlist_var(CONSTANTS)
            .allowlist_var(STATISTICS)
            .allowlist_var(ERRNO)
            .default_macro_constant_type(bindgen::MacroTypeVariation::Signed)
            .generate_comments(false)
            .layout_tests(false)
            .generate()
            .unwrap_or_else(|error| {
                fail(&format!(
                    "bindgen could not read wiredtiger.h. It needs libclang: apt-get install \
                     libclang-dev clang.\n{error}"
                ))
            });
        let out = out_dir();
        if let Err(error) = bindings.write_to_file(out.join("wiredtiger.rs")) {
            fail(&format!(
                "could not write the bindings to {}: {error}",
                out.display()
            ));
        }
    }

    /// Compile the trampoline to a shared object, which `src/linked/trampoline.rs` embeds.
    pub(super) fn compile_trampoline() {
        let compiler = cc::Build::new().pic(true).opt_level(2).get_compiler();
        let built = compiler
            .to_command()
            .args(["-shared", "trampoline/trampoline.c", "-o"])
            .arg(out_dir().join("trampoline.so"))
            .status();
        match built {
            Ok(status) if status.success() => {}
            Ok(status) => fail(&format!("compiling trampoline/trampoline.c: {status}")),
            Err(error) => fail(&format!("the C compiler could not be run: {error}")),
        }
    }

    fn out_dir() -> PathBuf {
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"))
    }

    fn fail(message: &str) -> ! {
        eprintln!("error: {message}");
        println!(
            "cargo::error={}",
            message.lines().next().unwrap_or_default()
        );
        process::exit(1)
    }
}
