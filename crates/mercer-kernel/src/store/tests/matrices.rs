//! What is written is what is read.

use super::*;
use crate::store::StoreError;
use mercer_data::{Existing, Source};
use mercer_run::Context;
use ndarray::ArrayD;

/// All entries against the formula, by tile, by block of rows, as a whole and through `.npy`.
fn round_trip<T: DataScalar>(layout: StoreLayout) {
    let (folder, path) = fresh();
    let shape = layout.shape();
    complete::<T>(&path, layout);
    let store = Store::open(&path).unwrap();
    assert!(store.missing().unwrap().is_empty());
    assert!((0..store.n_tiles()).all(|index| store.is_done(index).unwrap()));
    let layout = store.layout();
    let (n_rows, n_columns) = layout.as_matrix(layout.rows, layout.n_columns());
    for (number, array) in layout.arrays.iter().enumerate() {
        let entries = (0..n_rows).flat_map(|row| (0..n_columns).map(move |column| entry(layout, number, row, column)));
        let expected = ArrayD::from_shape_vec(shape.clone(), entries.collect::<Vec<T>>()).unwrap();
        assert_eq!(store.read_all::<T>(array).unwrap(), expected);
        assert_eq!(store.read_all::<f64>(array).unwrap(), expected.mapv(T::wide));
        for index in 0..store.n_tiles() {
            assert_eq!(store.read::<T>(array, index).unwrap(), tile::<T>(&store, index)[number]);
        }
        let second = store.read_row_block::<T>(array, 1).unwrap();
        assert_eq!(
            second,
            expected.slice_axis(ndarray::Axis(0), (layout.tile..(2 * layout.tile).min(layout.rows)).into())
        );
        let npy = folder.path().join(format!("{number}.npy"));
        store.to_npy(array, &npy, Existing::Refuse, &Context::new()).unwrap();
        let read = Source::new(&npy, None).open().unwrap();
        assert_eq!(read.dtype(), layout.precision);
        assert_eq!(read.read::<T>().unwrap(), expected);
    }
    let report = store.verify(&Context::new()).unwrap();
    assert!(report.is_complete() && report.damaged.is_empty(), "{report:?}");
    let chunks =
        files(&path).into_iter().filter(|file| !file.ends_with("zarr.json")).map(|file| file.metadata().unwrap().len());
    assert_eq!(report.bytes, chunks.sum::<u64>());
}

fn samples(count: usize, symmetric: bool) -> StoreColumns {
    StoreColumns::Samples { count, symmetric }
}

#[test]
fn symmetric() {
    round_trip::<f32>(layout(7, samples(7, true), 1, 3, DType::F32));
    round_trip::<f64>(layout(8, samples(8, true), 1, 4, DType::F64));
    // Larger than the squares that are transposed at a time.
    round_trip::<f32>(layout(100, samples(100, true), 1, 70, DType::F32));
}

#[test]
fn rectangular() {
    round_trip::<f32>(layout(7, samples(4, false), 1, 3, DType::F32));
    round_trip::<f64>(layout(5, samples(11, false), 1, 4, DType::F64));
    round_trip::<f64>(layout(7, samples(7, false), 1, 3, DType::F64));
}

#[test]
fn matrix_valued() {
    round_trip::<f32>(layout(5, samples(5, true), 3, 2, DType::F32));
    round_trip::<f64>(layout(5, samples(4, false), 2, 3, DType::F64));
}

#[test]
fn features() {
    round_trip::<f32>(layout(7, StoreColumns::Features(5), 1, 3, DType::F32));
    round_trip::<f64>(layout(5, StoreColumns::Features(2), 3, 2, DType::F64));
}

#[test]
fn one_array_per_layer() {
    let arrays = ["/layer1/conv", "layer1_conv", "Ω"].map(str::to_owned).to_vec();
    round_trip::<f32>(StoreLayout { arrays, ..layout(5, samples(5, true), 1, 2, DType::F32) });
}

/// Checked against the algorithm's definition: reversed polynomial 0x82f63b78, bit by bit.
#[test]
fn chunks_are_what_the_format_wants() {
    let (_folder, path) = fresh();
    complete::<f32>(&path, layout(4, samples(2, false), 1, 3, DType::F32));
    let bytes = std::fs::read(path.join("kernel/c/1/0")).unwrap();
    // The last row, then two rows of padding.
    let numbers = [93.25_f32, 94.25, f32::NAN, f32::NAN, f32::NAN, f32::NAN];
    let mut expected: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let crc = expected.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 })
    });
    expected.extend((!crc).to_le_bytes());
    assert_eq!(bytes, expected);
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path.join("kernel/zarr.json")).unwrap()).unwrap();
    assert_eq!(json["chunk_grid"]["configuration"]["chunk_shape"], json!([3, 2]));
    assert_eq!(json["fill_value"], "NaN");
}

#[test]
fn what_does_not_fit_is_refused() {
    let (_folder, path) = fresh();
    let store = Store::create(&path, small()).unwrap();
    let reason = |result: crate::store::Result<()>| result.unwrap_err().to_string();
    assert!(reason(store.write(0, &[&[0.0_f64; 9]])).contains("f32"));
    assert!(reason(store.write(0, &[&[0.0_f32; 8]])).contains("3 × 3"));
    assert!(reason(store.write(2, &[&[0.0_f32; 9]])).contains("3 × 1"));
    assert!(reason(store.write::<f32>(0, &[])).contains("1 arrays"));
    let mut values = [0.0_f32; 9];
    values[5] = f32::INFINITY;
    assert!(reason(store.write(0, &[&values])).contains("inf at row 1, column 2"));
    assert!(matches!(store.write(6, &[&[0.0_f32; 9]]), Err(StoreError::UnknownTile { tile: 6, n_tiles: 6, .. })));
    assert!(matches!(store.read::<f32>("kernel", 0), Err(StoreError::Missing { tile: 0, .. })));
    assert!(matches!(store.read::<f32>("other", 0), Err(StoreError::UnknownArray { .. })));
    assert!(matches!(store.read_all::<f32>("kernel"), Err(StoreError::Incomplete { done: 0, n_tiles: 6, .. })));
    assert!(matches!(store.read_row_block::<f32>("kernel", 3), Err(StoreError::UnknownTile { .. })));
    assert_eq!(files(&path).len(), 2, "nothing was written");
    let (_folder, path) = fresh();
    let wide = complete::<f64>(&path, layout(2, samples(2, true), 1, 2, DType::F64));
    assert!(matches!(wide.read_all::<f32>("kernel"), Err(StoreError::Narrower { .. })));
}
