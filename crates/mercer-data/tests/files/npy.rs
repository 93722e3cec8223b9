use mercer_data::{DType, DataError, Format};
use ndarray::{Array, ArrayD};

use crate::{fails, file, fixture, open};

fn counting() -> ArrayD<f64> {
    Array::from_iter((0..24).map(f64::from)).into_shape_with_order((4, 3, 2)).unwrap().into_dyn()
}

#[test]
fn every_type_and_byte_order() {
    let cases = [
        ("u1", DType::U8),
        ("i1", DType::I8),
        ("le-u2", DType::U16),
        ("be-i2", DType::I16),
        ("le-u4", DType::U32),
        ("be-i4", DType::I32),
        ("le-u8", DType::U64),
        ("be-i8", DType::I64),
        ("le-f2", DType::F16),
        ("be-f2", DType::F16),
        ("le-f4", DType::F32),
        ("be-f4", DType::F32),
        ("le-f8", DType::F64),
        ("be-f8", DType::F64),
        ("version2", DType::F64),
        ("fortran", DType::I16),
    ];
    for (name, dtype) in cases {
        let dataset = open(&fixture(&format!("{name}.npy")), None).unwrap();
        assert_eq!((dataset.dtype(), dataset.format()), (dtype, Format::Npy), "{name}");
        assert_eq!(dataset.shape(), [4, 3, 2], "{name}");
        assert_eq!(dataset.is_integer(), dtype.is_integer(), "{name}");
        assert_eq!(dataset.read::<f64>().unwrap(), counting(), "{name}");
        assert_eq!(dataset.read::<f32>().unwrap(), counting().mapv(|value| value as f32), "{name}");
    }
}

#[test]
fn booleans_are_zero_and_one() {
    let values = open(&fixture("b1.npy"), None).unwrap().read::<f32>().unwrap();
    assert_eq!(values, counting().mapv(|value| f32::from(value != 0.0)));
}

#[test]
fn rows_and_selections() {
    for name in ["le-f4.npy", "fortran.npy"] {
        let dataset = open(&fixture(name), None).unwrap();
        let all = dataset.read::<f64>().unwrap();
        let rows = dataset.rows::<f64>(1..3).unwrap();
        assert_eq!(rows, all.slice(ndarray::s![1..3, .., ..]).into_dyn());
        let selected = dataset.select::<f64>(&[3, 0, 3]).unwrap();
        assert_eq!(selected, all.select(ndarray::Axis(0), &[3, 0, 3]));
        assert_eq!(dataset.rows::<f64>(2..2).unwrap().shape(), [0, 3, 2]);
        fails(dataset.rows::<f64>(2..5), &["row 4", "4 samples"]);
        fails(dataset.select::<f64>(&[0, usize::MAX]), &["4 samples"]);
    }
}

#[test]
fn a_gzipped_one() {
    assert_eq!(open(&fixture("gzipped.npy.gz"), None).unwrap().read::<f64>().unwrap(), counting());
}

#[test]
fn no_samples_at_all() {
    let dataset = open(&fixture("empty.npy"), None).unwrap();
    assert_eq!(dataset.read::<f32>().unwrap().shape(), [0, 5]);
}

#[test]
fn a_single_number_is_one_sample() {
    let dataset = open(&fixture("scalar.npy"), None).unwrap();
    assert_eq!((dataset.n_samples(), dataset.sample_shape().len()), (1, 0));
    assert_eq!(dataset.read::<f64>().unwrap().len(), 1);
}

#[test]
fn what_is_not_a_number_is_refused() {
    fails(open(&fixture("object.npy"), None), &["object.npy", "pickle"]);
    fails(open(&fixture("complex.npy"), None), &["imaginary"]);
    fails(open(&fixture("strings.npy"), None), &["class names"]);
    fails(open(&fixture("records.npy"), None), &["record"]);
    fails(open(&fixture("le-f4.npy"), Some("x")), &["leave out `:x`"]);
    fails(open(&fixture("missing.npy"), None), &["missing.npy"]);
    fails(open(&fixture(""), None), &["folder"]);
}

#[test]
fn not_a_number_is_found() {
    let dataset = open(&fixture("nan.npy"), None).unwrap();
    fails(dataset.read::<f32>(), &["nan.npy", "sample 1", "NaN", "[2]"]);
    fails(dataset.select::<f64>(&[2, 1]), &["sample 1", "[2]"]);
    assert!(dataset.rows::<f32>(2..3).is_ok());
}

/// An npy file with any header over any data.
pub(crate) fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), data].concat()
}

#[test]
fn numbers_beyond_the_type_are_refused() {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1)}";
    let (_folder, path) = file("large.npy", &npy(header, &[1.0_f64.to_le_bytes(), 1e300_f64.to_le_bytes()].concat()));
    let dataset = open(&path, None).unwrap();
    assert!(dataset.read::<f64>().is_ok());
    fails(dataset.read::<f32>(), &["sample 1", "too large for the type"]);
    let header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1)}";
    let (_folder, path) = file("long.npy", &npy(header, &[1_i64.to_le_bytes(), 16_777_217_i64.to_le_bytes()].concat()));
    let dataset = open(&path, None).unwrap();
    assert!(dataset.read::<f64>().is_ok());
    fails(dataset.read::<f32>(), &["sample 1", "16777217", "f32", "wider type"]);
}

#[test]
fn forged_shapes_cost_nothing() {
    for (shape, expected) in [
        ("(1000000000000,)", "declares 8000000000000 bytes"),
        ("(18446744073709551615, 2)", "too large to address"),
        ("(4611686018427387904, 1)", "too large to address"),
        ("(0, 18446744073709551615, 3)", "too large to address"),
    ] {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}");
        let (_folder, path) = file("forged.npy", &npy(&header, &[0; 64]));
        fails(open(&path, None), &["forged.npy", expected]);
    }
}

#[test]
fn truncated_at_any_byte() {
    let whole = std::fs::read(fixture("le-f4.npy")).unwrap();
    for length in 0..whole.len() {
        let (_folder, path) = file("cut.npy", &whole[..length]);
        assert!(open(&path, None).is_err(), "{length}");
    }
    let (_folder, path) = file("long.npy", &[whole.as_slice(), &[0]].concat());
    assert!(matches!(open(&path, None), Err(DataError::Size { .. })));
}
