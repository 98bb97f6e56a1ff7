//! Compiles `shim/shim.cc` against the headers of the RocksDB version that `librocksdb-sys` builds.

#[cfg(feature = "rocksdb")]
fn main() {
    println!("cargo:rerun-if-changed=shim/shim.cc");
    let sources = std::env::var("DEP_ROCKSDB_CARGO_MANIFEST_DIR")
        .expect("librocksdb-sys gives its dependents the path of its sources");
    cc::Build::new()
        .cpp(true)
        .std("c++20")
        .include(format!("{sources}/rocksdb/include"))
        .flag_if_supported("-fno-rtti")
        .flag_if_supported("-Wno-unused-parameter")
        .file("shim/shim.cc")
        .compile("romanesco_rocksdb_shim");
}

#[cfg(not(feature = "rocksdb"))]
fn main() {}
