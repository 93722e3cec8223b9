use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use mercer_data::{DType, DataError, Format};

use crate::{fails, file, open};

/// Two images of 2 × 3 pixels.
const IMAGES: &[u8] = &[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn plain_and_gzipped() {
    for bytes in [IMAGES.to_vec(), gzip(IMAGES)] {
        let (_folder, path) = file("t10k-images-idx3-ubyte", &bytes);
        let dataset = open(&path, None).unwrap();
        assert_eq!((dataset.format(), dataset.dtype(), dataset.shape()), (Format::Idx, DType::U8, &[2, 2, 3][..]));
        let second: Vec<f32> = dataset.rows(1..2).unwrap().into_iter().collect();
        assert_eq!(second, [250.0, 251.0, 252.0, 253.0, 254.0, 255.0]);
        fails(open(&path, Some("x")), &["IDX", "leave out"]);
    }
}

#[test]
fn truncated_at_any_byte() {
    for length in 0..IMAGES.len() {
        for bytes in [IMAGES[..length].to_vec(), gzip(&IMAGES[..length])] {
            let (_folder, path) = file("cut", &bytes);
            let result = open(&path, None).and_then(|dataset| dataset.read::<f32>());
            assert!(result.is_err(), "{length}");
        }
    }
    let zipped = gzip(IMAGES);
    for length in 0..zipped.len() {
        let (_folder, path) = file("cut.gz", &zipped[..length]);
        assert!(open(&path, None).is_err(), "{length}");
    }
}

#[test]
fn forged_sizes_cost_nothing() {
    let forged = [0, 0, 0x0e, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0, 0];
    for bytes in [forged.to_vec(), gzip(&forged)] {
        let (_folder, path) = file("forged", &bytes);
        assert!(matches!(open(&path, None), Err(DataError::Size { .. })));
    }
    let huge = [[0, 0, 8, 255].as_slice(), &[0xff; 1020]].concat();
    let (_folder, path) = file("huge", &huge);
    assert!(matches!(open(&path, None), Err(DataError::TooLarge { .. })));
}

#[test]
fn longer_than_it_says() {
    for bytes in [[IMAGES, &[0]].concat(), gzip(&[IMAGES, &[0; 1000]].concat())] {
        let (_folder, path) = file("long", &bytes);
        fails(open(&path, None), &["declares 12 bytes"]);
    }
}
