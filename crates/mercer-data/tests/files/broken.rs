//! Garbage of every kind: it must be refused, never crash.

use mercer_data::{Source, describe};
use proptest::prelude::*;

use crate::{fails, file, fixture, open};

/// Everything that can be asked of a file.
fn try_everything(bytes: &[u8]) {
    let (_folder, path) = file("garbage", bytes);
    let _ = describe(&Source::new(&path, None));
    for key in [None, Some("x"), Some("-0")] {
        if let Ok(dataset) = open(&path, key) {
            let _ = dataset.read::<f32>();
            let _ = dataset.select::<f64>(&[0]);
            let _ = mercer_data::Labels::read(&dataset);
        }
    }
}

#[test]
fn other_formats_are_named() {
    for (bytes, words) in [
        (b"\x89HDF\r\n\x1a\n".as_slice(), "HDF5"),
        (b"PAR1....", "Parquet"),
        (b"\x89PNG\r\n", "image"),
        (b"\x80\x04\x95", "pickle"),
        (b"\xff\xfe\x00\x01", "unknown"),
        (b"", "empty"),
    ] {
        let (_folder, path) = file("other", bytes);
        fails(open(&path, None), &["other", words, "supported formats are"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        try_everything(&bytes);
    }

    #[test]
    fn random_bytes_after_a_magic(
        magic in prop::sample::select(vec![
            b"\x93NUMPY\x01\x00".as_slice(), b"PK\x03\x04", b"PK\x05\x06", b"\x00\x00\x08\x01", b"\x00\x00\x0e\x03", b"\x1f\x8b\x08",
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        try_everything(&[magic, &bytes].concat());
    }

    #[test]
    fn random_text(text in "([0-9a-z.,;\t\"\n# -]|nan|1e999){0,80}") {
        try_everything(text.as_bytes());
    }

    #[test]
    fn flipped_bytes(
        name in prop::sample::select(vec![
            "le-f4.npy", "fortran.npy", "stored.npz", "deflated.npz", "gzipped.npy.gz", "version2.npy",
        ]),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = std::fs::read(fixture(name)).unwrap();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        try_everything(&bytes);
    }
}
