//! What the page costs per key and byte; run by `benches/page.rs`.
