//! Keys and frames: vectors of the standards, and what must not open.

use super::*;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, UnboundKey};
use ring::hkdf;

const OWNER: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

/// Test cases 13 to 16 of the specification of GCM that NIST published with SP 800-38D: AES-256.
#[test]
fn gcm_has_the_values_of_nist() {
    let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
    let plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532f\
                 cf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
    let coded = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7\
                 b08b1056828838c5f61e6393ba7a0abcc9f662898015ad";
    let zero = "00".repeat(32);
    let nonce = "cafebabefacedbaddecaf888";
    let aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
    for (key, nonce, aad, plain, coded, tag) in [
        (
            &*zero,
            &zero[..24],
            "",
            "",
            "",
            "530f8afbc74536b9a963b4f1c4cb738b",
        ),
        (
            &*zero,
            &zero[..24],
            "",
            &zero[..32],
            "cea7403d4d606b6e074ec5d3baf39d18",
            "d0d1c8a799996bf0265b98b5d48ab919",
        ),
        (
            key,
            nonce,
            "",
            plain,
            coded,
            "b094dac5d93471bdec1a502270e3cc6c",
        ),
        (
            key,
            nonce,
            aad,
            &plain[..plain.len() - 8],
            &coded[..coded.len() - 8],
            "76fc6ece0f4e1768cddf8853bb2d551b",
        ),
    ] {
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes(key)).unwrap());
        let nonce = ring::aead::Nonce::try_assume_unique_for_key(&bytes(nonce)).unwrap();
        let mut data = bytes(plain);
        let found = key
            .seal_in_place_separate_tag(nonce, Aad::from(bytes(aad)), &mut data)
            .unwrap();
        assert_eq!(data, bytes(coded));
        assert_eq!(found.as_ref(), bytes(tag));
    }
}

/// Test case 1 of RFC 5869.
#[test]
fn hkdf_has_the_values_of_its_rfc() {
    struct Length;
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            42
        }
    }
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &bytes("000102030405060708090a0b0c"));
    let prk = salt.extract(&[0x0b; 22]);
    let info = bytes("f0f1f2f3f4f5f6f7f8f9");
    let mut out = [0; 42];
    prk.expand(&[&info], Length)
        .unwrap()
        .fill(&mut out)
        .unwrap();
    let expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf\
                    34007208d5b887185865";
    assert_eq!(out.to_vec(), bytes(expected));
}

#[test]
fn a_frame_opens_as_itself_only() {
    // I2: each part of its identity counts.
    let mut ring = KeyRing::generate().unwrap();
    let mut sealer = ring.sealer(Kind::Run).unwrap();
    let nonce = Nonce { place: 7, part: 1 };
    let mut sealed = b"the text of a frame".to_vec();
    let tag = sealer.encrypt(nonce, b"tree 3", &mut sealed);
    assert_ne!(sealed, b"the text of a frame");
    let seal = sealer.seal();
    let try_open = |kind, seal: &Seal, nonce, bound: &[u8], sealed: &[u8], tag: &[u8; 16]| {
        let mut bytes = sealed.to_vec();
        let opener = ring.opener(kind, seal).unwrap();
        let opened = opener.decrypt(nonce, bound, &mut bytes, tag);
        opened.map(|()| bytes)
    };
    let opened = try_open(Kind::Run, &seal, nonce, b"tree 3", &sealed, &tag);
    assert_eq!(opened.unwrap(), b"the text of a frame");
    let second = ring.sealer(Kind::Run).unwrap().seal();
    let fails = |kind, seal, nonce, associated: &[u8]| {
        assert!(try_open(kind, seal, nonce, associated, &sealed, &tag).is_err());
    };
    fails(Kind::Log, &seal, nonce, b"tree 3");
    fails(Kind::Run, &second, nonce, b"tree 3");
    fails(Kind::Run, &seal, Nonce::at(7), b"tree 3");
    fails(Kind::Run, &seal, Nonce { place: 8, part: 1 }, b"tree 3");
    fails(Kind::Run, &seal, nonce, b"tree 4");
    for bit in 0..sealed.len() * 8 {
        let mut bad = sealed.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(try_open(Kind::Run, &seal, nonce, b"tree 3", &bad, &tag).is_err());
    }
    for bit in 0..128 {
        let mut bad = tag;
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(try_open(Kind::Run, &seal, nonce, b"tree 3", &sealed, &bad).is_err());
    }
    let other = KeyId(ring.add().unwrap().0 + 1);
    let missing = ring.opener(Kind::Run, &Seal { key: other, ..seal });
    assert!(matches!(missing, Err(KeyError::Missing(3))));
}

#[test]
fn a_nonce_is_never_used_twice() {
    // I1: the second use of a nonce, or an earlier one, panics.
    let used_twice = |first: Nonce, second: Nonce| {
        std::panic::catch_unwind(|| {
            let (mut sealer, _) = Sealer::temporary().unwrap();
            let _tag = sealer.encrypt(first, b"", &mut [1]);
            let _tag = sealer.encrypt(second, b"", &mut [2]);
        })
        .is_err()
    };
    let parts = [(1, 0), (1, 1), (2, 0)].map(|(place, part)| Nonce { place, part });
    for (index, &first) in parts.iter().enumerate() {
        for (other, &second) in parts.iter().enumerate() {
            assert_eq!(used_twice(first, second), other <= index);
        }
    }
    // Two sealers never share a key.
    let ring = KeyRing::generate().unwrap();
    let salts: std::collections::BTreeSet<_> = (0..1000)
        .map(|_| ring.sealer(Kind::Run).unwrap().seal().salt)
        .collect();
    assert_eq!(salts.len(), 1000);
}

#[test]
fn a_key_file_comes_back_under_its_master_key_only() {
    // I3: a wrong key is named, and damage is another error.
    let (master, other) = (MasterKey::new([1; 32]), MasterKey::new([2; 32]));
    let mut ring = KeyRing::generate().unwrap();
    ring.add().unwrap();
    ring.add().unwrap();
    let file = ring.encode(&master, OWNER).unwrap();
    assert!(file.len() <= KeyRing::ENCODED_MAX);
    let (again, owner) = KeyRing::decode(&file, &master).unwrap();
    assert_eq!(owner, OWNER);
    assert_eq!((again.ids(), again.newest()), (ring.ids(), KeyId(3)));
    // The keys are the same ones.
    let mut sealed = *b"text";
    let mut sealer = ring.sealer(Kind::Log).unwrap();
    let tag = sealer.encrypt(Nonce::at(0), b"", &mut sealed);
    let opener = again.opener(Kind::Log, &sealer.seal()).unwrap();
    opener
        .decrypt(Nonce::at(0), b"", &mut sealed, &tag)
        .unwrap();
    assert_eq!(&sealed, b"text");

    let wrong = KeyRing::decode(&file, &other).unwrap_err();
    assert!(matches!(wrong, KeyError::WrongMaster), "{wrong}");
    for at in 0..file.len() {
        let mut bad = file.clone();
        bad[at] ^= 1 << (at % 8);
        let error = KeyRing::decode(&bad, &master).unwrap_err();
        assert!(matches!(error, KeyError::Damaged(_)), "byte {at}: {error}");
        assert!(
            KeyRing::decode(&file[..at], &master).is_err(),
            "cut at {at}"
        );
    }
}

#[test]
fn right_checksums_do_not_make_a_key_file_valid() {
    let master = MasterKey::new([1; 32]);
    let ring = KeyRing::generate().unwrap();
    let file = ring.encode(&master, OWNER).unwrap();
    let end = file.len() - 8;
    let changed = |at: usize, to: u8| {
        let mut bad = file.clone();
        bad[at] = to;
        let sum = stdx::hash::hash64(&bad[..end]);
        bad[end..].copy_from_slice(&sum.to_le_bytes());
        KeyRing::decode(&bad, &master)
    };
    assert!(matches!(changed(8, 2), Err(KeyError::Version(2))));
    for at in (12..end).filter(|at| !(32..48).contains(at)) {
        let error = changed(at, file[at] ^ 1).unwrap_err();
        assert!(matches!(error, KeyError::Damaged(_)), "byte {at}: {error}");
    }
    assert!(matches!(
        changed(40, file[40] ^ 1),
        Err(KeyError::WrongMaster)
    ));
}

#[test]
fn keys_are_numbered_and_limited() {
    let mut ring = KeyRing::generate().unwrap();
    assert_eq!(ring.add().unwrap(), KeyId(2));
    while ring.ids().len() < 1024 {
        ring.add().unwrap();
    }
    assert!(matches!(ring.add(), Err(KeyError::TooMany)));
    let file = ring.encode(&MasterKey::new([1; 32]), OWNER).unwrap();
    assert_eq!(file.len(), KeyRing::ENCODED_MAX);
}

#[test]
fn nothing_prints_a_key() {
    // I4: neither rings nor frames.
    let ring = KeyRing::generate().unwrap();
    let sealer = ring.sealer(Kind::Run).unwrap();
    let printed = format!("{ring:?} {sealer:?}");
    assert_eq!(printed, "KeyRing([KeyId(1)]) Sealer { key: KeyId(1), .. }");
}
