use std::fs;

use mercer_data::{DType, Existing, NpyWriter, Storable, write_atomic, write_npy};
use ndarray::{Array, ArrayD, IxDyn, array};
use proptest::prelude::*;

use crate::{fails, fixture, open};

#[test]
fn the_bytes_are_those_of_numpy() {
    let folder = tempfile::tempdir().unwrap();
    let counting = Array::from_iter(0..24_u8).into_shape_with_order((4, 3, 2)).unwrap();
    let check = |name: &str| {
        let data = |bytes: Vec<u8>| (bytes.len(), bytes[128..].to_vec());
        let ours = fs::read(folder.path().join(name)).unwrap();
        assert_eq!(data(ours), data(fs::read(fixture(name)).unwrap()), "{name}");
    };
    write_npy(&folder.path().join("u1.npy"), &counting, Existing::Refuse).unwrap();
    write_npy(&folder.path().join("le-f4.npy"), &counting.mapv(f32::from), Existing::Refuse).unwrap();
    write_npy(&folder.path().join("le-f8.npy"), &counting.mapv(f64::from), Existing::Refuse).unwrap();
    ["u1.npy", "le-f4.npy", "le-f8.npy"].into_iter().for_each(check);
}

#[test]
fn round_trips_of_every_type() {
    fn check<T: Storable>(values: [T; 3]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        write_npy(&path, &Array::from_iter(values), Existing::Refuse).unwrap();
        let dataset = open(&path, None).unwrap();
        assert_eq!((dataset.dtype(), dataset.shape()), (T::DTYPE, &[3][..]));
        assert_eq!(dataset.read::<f64>().unwrap().as_slice(), Some(&[0.0, 1.0, 200.0][..]));
    }
    check([0_u8, 1, 200]);
    check([0_u32, 1, 200]);
    check([0_u64, 1, 200]);
    check([0_i32, 1, 200]);
    check([0_i64, 1, 200]);
    check([0_f32, 1.0, 200.0]);
    check([0_f64, 1.0, 200.0]);
}

#[test]
fn transposed_views_are_written_in_their_own_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let array = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    write_npy(&path, &array.t(), Existing::Refuse).unwrap();
    assert_eq!(open(&path, None).unwrap().read::<f64>().unwrap(), array.t().into_dyn());
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    write_npy(&path, &array![1.0], Existing::Refuse).unwrap();
    fails(write_npy(&path, &array![2.0], Existing::Refuse), &["a.npy", "exists already"]);
    fails(NpyWriter::<f32>::create(&path, &[], Existing::Refuse).map(|_| ()), &["exists already"]);
    write_npy(&path, &array![3.0], Existing::Replace).unwrap();
    assert_eq!(open(&path, None).unwrap().read::<f64>().unwrap()[0], 3.0);
}

#[test]
fn a_file_that_appears_meanwhile_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let writer = NpyWriter::<f32>::create(&path, &[], Existing::Refuse).unwrap();
    fs::write(&path, b"mine").unwrap();
    fails(writer.finish(), &["exists already"]);
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[test]
fn failure_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    let result = write_atomic(&path, Existing::Refuse, |_| Err(std::io::Error::other("the disk is full")));
    fails(result, &["a.txt", "the disk is full"]);
    drop(NpyWriter::<f32>::create(&path, &[2], Existing::Refuse).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    fails(write_npy(&folder.path().join("no/such/folder.npy"), &array![1.0], Existing::Refuse), &["folder.npy"]);
}

#[test]
fn blocks_of_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let mut writer = NpyWriter::<f32>::create(&path, &[2, 1], Existing::Refuse).unwrap();
    for block in 0..5 {
        writer.append(Array::from_elem((block, 2, 1), block as f32).view()).unwrap();
    }
    fails(writer.append(array![[1.0_f32]].view()), &["[2, 1] were expected"]);
    assert_eq!(writer.n_rows(), 10);
    writer.finish().unwrap();
    let dataset = open(&path, None).unwrap();
    assert_eq!((dataset.dtype(), dataset.shape()), (DType::F32, &[10, 2, 1][..]));
    assert_eq!(dataset.rows::<f32>(5..7).unwrap().sum(), 2.0 * 3.0 + 2.0 * 4.0);
}

#[cfg(unix)]
#[test]
fn others_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, b"").unwrap();
    let path = folder.path().join("a.npy");
    write_npy(&path, &array![1.0], Existing::Refuse).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&plain));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_shape_comes_back(shape in prop::collection::vec(0..5_usize, 1..5)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let n_values: usize = shape.iter().product();
        let values = (0..n_values).map(|value| value as f64 / 3.0).collect();
        let array = ArrayD::from_shape_vec(IxDyn(&shape), values).unwrap();
        write_npy(&path, &array, Existing::Refuse).unwrap();
        prop_assert_eq!(open(&path, None).unwrap().read::<f64>().unwrap(), array);
    }
}
