//! Tests of the codecs on blocks of every kind.

use stdx::rng::Rng;

use super::*;

#[test]
fn every_codec_gives_back_what_it_was_given() {
    let mut rng = Rng::new(7);
    let mut random = vec![0; 70_000];
    rng.fill(&mut random);
    let alike = vec![b'a'; 70_000];
    for codec in all() {
        for bytes in [&random, &alike] {
            for length in [0, 1, 4096, 65_536, 70_000] {
                let block = bytes.get(..length).unwrap();
                let (mut small, mut back) = (Vec::new(), Vec::new());
                codec.compress(block, &mut small).unwrap();
                codec.decompress(&small, length, &mut back).unwrap();
                assert_eq!(back, block, "{} {length}", codec.name());
            }
        }
    }
}

#[test]
fn what_is_alike_gets_smaller_and_a_copy_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(7);
    let mut bytes = vec![b'a'; 1 << 20];
    for piece in bytes.chunks_mut(1000) {
        rng.fill(piece.get_mut(..200).unwrap_or_default());
    }
    std::fs::write(dir.path().join("data"), &bytes).unwrap();
    // Logs are not sampled.
    std::fs::write(dir.path().join("x.log"), vec![b'b'; 1 << 20]).unwrap();
    let tried = on_files(dir.path(), Duration::from_micros(1)).unwrap();
    assert_eq!(tried.len(), BLOCKS.len() * all().len());
    for one in &tried {
        assert_eq!(one.wrong, 0, "{one:?}");
        assert!(0.0 < one.compress && 0.0 < one.decompress, "{one:?}");
        let expected = if one.codec == "none" {
            0.99..1.01
        } else {
            2.0..5.1
        };
        assert!(expected.contains(&one.ratio), "C2: no log: {one:?}");
    }
}

#[test]
fn a_codec_that_changes_a_block_is_reported() {
    struct Liar;
    impl Codec for Liar {
        fn name(&self) -> &'static str {
            "liar"
        }
        fn compress(&self, _: &[u8], out: &mut Vec<u8>) -> Result<()> {
            out.clear();
            Ok(())
        }
        fn decompress(&self, _: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()> {
            out.clear();
            out.resize(length, b'a');
            Ok(())
        }
    }
    let tried = one(&Liar, b"aaaabbbb", 4, Duration::ZERO).unwrap();
    assert_eq!(tried.wrong, 1, "C1: compared with the original");
}

#[test]
fn an_empty_store_has_nothing_to_compress() {
    let dir = tempfile::tempdir().unwrap();
    let error = on_files(dir.path(), Duration::ZERO).unwrap_err();
    assert!(error.message.contains("nothing to compress"), "{error}");
}

#[test]
fn results_name_the_codecs_and_their_order() {
    let names: Vec<&str> = all().iter().map(|codec| codec.name()).collect();
    assert_eq!(names, lab_report::record::experiment::compression::CODECS);
}
