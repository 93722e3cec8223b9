//! Some of the samples of a data set, in any order, without a copy.

use std::ops::Range;

/// The rows of a subset, and the shape that they have together.
#[derive(Debug)]
pub(crate) struct Subset {
    /// Rows of the stored array.
    pub(crate) rows: Vec<usize>,
    /// Before preprocessing, the samples first.
    pub(crate) shape: Vec<usize>,
}

impl Subset {
    /// Ranges of rows of the subset as ranges of stored rows. Neighbours are read together.
    pub(crate) fn stored(&self, runs: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut stored: Vec<Range<usize>> = Vec::new();
        for &row in runs.iter().filter(|run| !run.is_empty()).flat_map(|run| &self.rows[run.clone()]) {
            match stored.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => stored.push(row..row + 1),
            }
        }
        stored
    }
}

#[cfg(test)]
mod tests {
    use crate::{DataError, Dataset, Preprocess};
    use ndarray::{Array2, Array3};

    fn numbers() -> Dataset {
        let array = Array2::from_shape_fn((6, 2), |(row, column)| (2 * row + column) as f64);
        Dataset::from_array("numbers", array.into_dyn().view()).unwrap()
    }

    fn values(set: &Dataset) -> Vec<f64> {
        set.read::<f64>().unwrap().into_iter().collect()
    }

    #[test]
    fn rows_are_in_the_given_order() {
        let some = numbers().subset(&[4, 1, 2, 4]).unwrap();
        assert_eq!((some.n_samples(), some.shape(), some.stored_shape()), (4, &[4, 2][..], &[4, 2][..]));
        assert_eq!(values(&some), [8.0, 9.0, 2.0, 3.0, 4.0, 5.0, 8.0, 9.0]);
        assert_eq!(some.select::<f32>(&[3, 0]).unwrap().as_slice(), Some(&[8.0, 9.0, 8.0, 9.0][..]));
        assert_eq!(values(&some.subset(&[2, 1]).unwrap()), [4.0, 5.0, 2.0, 3.0]);
        assert_eq!(numbers().subset(&[]).unwrap().n_samples(), 0);
    }

    /// A subset is as good as a copy of its rows: the same fingerprint, also through preprocessing.
    #[test]
    fn a_subset_is_a_copy_of_its_rows() {
        let images = Array3::from_shape_fn((5, 2, 3), |(row, y, x)| (row * 6 + y * 3 + x) as f32);
        let set = Dataset::from_array("images", images.view().into_dyn()).unwrap();
        let rows = [3, 0, 4];
        let copy = images.select(ndarray::Axis(0), &rows);
        let copy = Dataset::from_array("copy", copy.view().into_dyn()).unwrap();
        for steps in [Preprocess::new(), Preprocess::new().scale(0.1).add_channel()] {
            let [copy, own] = [copy.clone(), set.subset(&rows).unwrap()].map(|one| one.with_preprocess(steps.clone()));
            let (copy, own) = (copy.unwrap(), own.unwrap());
            assert_eq!((own.shape(), own.stored_bytes()), (copy.shape(), copy.stored_bytes()));
            assert_eq!(own.fingerprint().unwrap(), copy.fingerprint().unwrap());
            let before = set.clone().with_preprocess(steps.clone()).unwrap().subset(&rows).unwrap();
            assert_eq!(before.fingerprint().unwrap(), copy.fingerprint().unwrap());
        }
        let written = |set: &Dataset| {
            let mut bytes = Vec::new();
            set.write_stored(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(written(&set.subset(&rows).unwrap()), written(&copy));
    }

    #[test]
    fn rows_that_do_not_exist_are_refused() {
        let error = numbers().subset(&[1, 6]).unwrap_err();
        assert!(matches!(error, DataError::Row { row: 6, n_samples: 6, .. }), "{error}");
        let some = numbers().subset(&[1, 5]).unwrap();
        assert!(matches!(some.rows::<f32>(1..3), Err(DataError::Row { row: 2, n_samples: 2, .. })));
        // Errors in the numbers name the row of the file.
        let broken = ndarray::array![[0.0], [1.0], [f64::NAN]].into_dyn();
        let broken = Dataset::from_array("broken", broken.view()).unwrap().subset(&[2, 0]).unwrap();
        assert!(matches!(broken.read::<f64>(), Err(DataError::NotFinite { row: 2, .. })));
    }
}
