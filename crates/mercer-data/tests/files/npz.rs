use std::io::{Cursor, Write};

use mercer_data::{DType, DataError, Format, Source, describe};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::npy::npy;
use crate::{fails, file, fixture, open};

#[test]
fn stored_and_deflated() {
    for name in ["stored.npz", "deflated.npz"] {
        let dataset = open(&fixture(name), Some("x")).unwrap();
        assert_eq!((dataset.format(), dataset.dtype(), dataset.shape()), (Format::Npz, DType::F32, &[4, 3, 2][..]));
        let all: Vec<f32> = dataset.read().unwrap().into_iter().collect();
        assert_eq!(all, (0..24_u8).map(f32::from).collect::<Vec<_>>(), "{name}");
        let labels = open(&fixture(name), Some("y.npy")).unwrap().read::<f64>().unwrap();
        assert_eq!(labels.as_slice(), Some(&[0.0, 1.0, 1.0, 2.0][..]));
    }
}

#[test]
fn keys() {
    assert_eq!(open(&fixture("single.npz"), None).unwrap().shape(), [4, 3, 2]);
    fails(open(&fixture("stored.npz"), None), &["2 arrays", "stored.npz:x", "`y`"]);
    fails(open(&fixture("stored.npz"), Some("z")), &["no `z`", "`x`, `y`"]);
    fails(open(&fixture("pickled.npz"), Some("x")), &["pickled.npz:x", "pickle"]);
    assert!(open(&fixture("pickled.npz"), Some("y")).is_ok());
}

fn zip(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn forged_shapes_cost_nothing() {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,)}";
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let (_folder, path) = file("forged.npz", &zip(&[("x.npy", &npy(header, &[0; 800]))], method));
        assert!(matches!(open(&path, None), Err(DataError::Size { .. })));
    }
}

#[test]
fn a_bomb_is_not_unpacked() {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (10,)}";
    let (_folder, path) =
        file("bomb.npz", &zip(&[("x.npy", &npy(header, &[0; 1 << 22]))], CompressionMethod::Deflated));
    fails(open(&path, None), &["bomb.npz:x", "declares 10 bytes"]);
}

#[test]
fn damage_is_noticed() {
    for name in ["stored.npz", "deflated.npz"] {
        let whole = std::fs::read(fixture(name)).unwrap();
        for length in 0..whole.len() {
            let (_folder, path) = file("cut.npz", &whole[..length]);
            assert!(open(&path, Some("x")).is_err(), "{name} {length}");
        }
    }
    // A flipped bit in deflated data fails the checksum, or the decompression itself.
    let whole = std::fs::read(fixture("deflated.npz")).unwrap();
    let mut damaged = whole.clone();
    damaged[100] ^= 0x10;
    let (_folder, path) = file("damaged.npz", &damaged);
    assert!(open(&path, Some("x")).is_err());
}

#[test]
fn other_archives() {
    let (_folder, path) = file("other.zip", &zip(&[("readme.txt", b"hello")], CompressionMethod::Stored));
    fails(open(&path, None), &["without any .npy"]);
    fails(open(&path, Some("x")), &["no `x`", "no arrays"]);
}

#[test]
fn described_with_all_its_arrays() {
    let description = describe(&Source::new(fixture("stored.npz"), None)).unwrap();
    assert_eq!(description.arrays.len(), 2);
    assert!(description.summary.is_none());
    let text = description.to_string();
    assert!(text.contains("x: f32 [4, 3, 2]") && text.contains("choose one"), "{text}");
    let labels = describe(&Source::new(fixture("stored.npz"), Some("y"))).unwrap().summary.unwrap();
    assert_eq!(labels.labels, [("0".to_owned(), 1), ("1".to_owned(), 2), ("2".to_owned(), 1)]);
    assert_eq!((labels.min, labels.max, labels.mean), (Some(0.0), Some(2.0), Some(1.0)));
    let nan = describe(&Source::new(fixture("nan.npy"), None)).unwrap().summary.unwrap();
    assert_eq!((nan.n_not_finite, nan.max), (1, Some(9.0)));
    let pickled = describe(&Source::new(fixture("pickled.npz"), None)).unwrap();
    assert!(pickled.to_string().contains("x: type not supported"));
}

/// What opening an array gives: its shape, type and numbers.
fn content(path: &std::path::Path, key: Option<&str>) -> Option<(Vec<usize>, DType, Vec<f64>)> {
    let dataset = open(path, key).ok()?;
    let values = dataset.read::<f64>().ok()?.into_iter().collect();
    Some((dataset.shape().to_vec(), dataset.dtype(), values))
}

/// Every byte of an archive, in data, headers and directory, with one bit flipped or all: an error, or the same numbers.
#[test]
fn a_damaged_byte_never_gives_other_numbers() {
    let (folder, path) = file("damaged.npz", &[]);
    for name in ["stored.npz", "deflated.npz", "single.npz"] {
        let whole = std::fs::read(fixture(name)).unwrap();
        std::fs::write(&path, &whole).unwrap();
        let keys = if name == "single.npz" { vec![None] } else { vec![Some("x"), Some("y")] };
        let truth: Vec<_> = keys.iter().map(|&key| content(&path, key).unwrap()).collect();
        let mut refused = 0;
        for (at, flip) in (0..whole.len()).flat_map(|at| [(at, 1_u8 << (at % 8)), (at, 0xff)]) {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            std::fs::write(&path, &damaged).unwrap();
            for (&key, truth) in keys.iter().zip(&truth) {
                match content(&path, key) {
                    None => refused += 1,
                    Some(found) => assert_eq!(found, *truth, "{name}:{key:?}, byte {at} by {flip:#x}"),
                }
            }
        }
        // Data and header of the array are more than a third of the file.
        assert!(refused > 2 * whole.len() / 3, "{name}: {refused} of {} refused", 2 * whole.len());
    }
    drop(folder);
}

#[test]
fn the_checksum_of_stored_data_is_compared() {
    let mut damaged = std::fs::read(fixture("stored.npz")).unwrap();
    // 7.0, the eighth number of x, becomes 7.000004.
    let at = damaged.windows(4).position(|bytes| bytes == 7.0_f32.to_le_bytes()).unwrap();
    damaged[at] ^= 8;
    let (_folder, path) = file("damaged.npz", &damaged);
    fails(open(&path, Some("x")), &["damaged.npz:x", "checksum"]);
    assert!(open(&path, Some("y")).is_ok());
}

/// A directory that leads to another array of the archive.
#[test]
fn swapped_names_are_refused() {
    let whole = std::fs::read(fixture("stored.npz")).unwrap();
    let places: Vec<usize> = (0..whole.len() - 5).filter(|&at| whole[at + 1..].starts_with(b".npy")).collect();
    let [.., x, y] = places[..] else { panic!("two entries in the directory") };
    let mut swapped = whole.clone();
    swapped.swap(x, y);
    let (_folder, path) = file("swapped.npz", &swapped);
    fails(open(&path, Some("x")), &["different names"]);
}
