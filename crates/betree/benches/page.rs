//! Nanoseconds and bytes per key of the page codec: `cargo bench -p betree --bench page [data]`.

fn main() {
    print!("{}", betree::page_bench::measure());
}
