//! The codecs of a server that reports which codecs it was built with. The server is queried before
//! the first step that names a codec, while the server of an earlier step still runs.

use lab_report::record::StepPlan;

use super::cell::RunningCell;
use crate::targets::{self, Kind};

impl RunningCell<'_, '_, '_> {
    /// Why the server of this cell does not support the codec of a step; `None` if it does, or if
    /// the step names no codec.
    pub(super) fn lacks_codec(&mut self, step: &StepPlan) -> Option<String> {
        let named = step
            .setting
            .compressor
            .as_deref()
            .filter(|n| *n != "none")?;
        match targets::kind(self.target) {
            Ok(Kind::Private(private)) if private.codec(named).is_some() => {}
            _ => return None,
        }
        if self.codecs.is_none() {
            let uri = self.uri.as_deref().filter(|_| self.server.is_some())?;
            // If a server does not report its codecs, the step is tried: without the codec the
            // server fails to start.
            self.codecs = targets::codecs(uri).ok();
        }
        missing(self.codecs.as_deref()?, named)
    }
}

/// The message that a codec is not among those that a server reports; `None` if it is.
fn missing(known: &[String], named: &str) -> Option<String> {
    // RocksDB lists zstd under the name it had before its format was final.
    let own = |name: &&String| {
        let name = name.to_ascii_lowercase();
        name.strip_suffix("notfinal").unwrap_or(&name) == named
    };
    let none = !known.iter().any(|name| own(&name));
    none.then(|| format!("it was built without {named}: it has {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_known_by_the_names_servers_list() {
        let of = |list: &str, named| {
            let known: Vec<String> = list.split(',').map(str::to_owned).collect();
            missing(&known, named)
        };
        for named in ["snappy", "lz4", "zlib", "zstd"] {
            assert_eq!(of("Snappy,Zlib,LZ4,LZ4HC,ZSTDNotFinal", named), None);
            assert_eq!(of("Snappy,Zlib,LZ4,ZSTD", named), None);
        }
        let why = of("Snappy,Zlib,LZ4HC", "lz4").unwrap();
        assert!(
            why.contains("without lz4") && why.contains("LZ4HC"),
            "{why}"
        );
    }
}
