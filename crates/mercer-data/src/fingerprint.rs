//! Fingerprints: 128 bits that tell whether two things are the same.
//!
//! The hash is XXH3-128. It runs at the speed of memory and guards against mistakes (the wrong file, other
//! preprocessing, an extra row), not against deliberate collisions.

use std::io::Read;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::dataset::Dataset;
use crate::error::{Result, io_error};
use crate::files::open_regular;

/// The approximate number of values in memory at a time: half a megabyte, and twice that while they are prepared.
const BLOCK: usize = 1 << 16;

/// A fingerprint under construction.
///
/// It depends only on the bytes and their order, not on how they are split into calls.
///
/// ```
/// use mercer_data::Fingerprint;
///
/// let mut parts = Fingerprint::new();
/// parts.update(b"ker");
/// parts.update(b"nel");
/// let mut whole = Fingerprint::new();
/// whole.update(b"kernel");
/// assert_eq!(parts.finish(), whole.finish());
/// ```
#[derive(Clone, Default)]
pub struct Fingerprint(Xxh3);

impl Fingerprint {
    /// The fingerprint of the bytes of a file, which is read in blocks.
    ///
    /// # Errors
    /// [`DataError::Io`](crate::DataError::Io).
    pub fn of_file(path: &Path) -> Result<String> {
        let failed = || io_error(path.display());
        let (mut file, _) = open_regular(path).map_err(failed())?;
        let (mut fingerprint, mut block) = (Self::new(), vec![0; 1 << 18]);
        loop {
            match file.read(&mut block).map_err(failed())? {
                0 => return Ok(fingerprint.finish()),
                read => fingerprint.update(&block[..read]),
            }
        }
    }

    /// An empty fingerprint.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds an integer with a fixed length, so that `1, 23` and `12, 3` differ.
    pub fn update_count(&mut self, count: usize) {
        self.update(&(count as u64).to_le_bytes());
    }

    /// The fingerprint of everything added so far, as 32 hexadecimal digits.
    pub fn finish(&self) -> String {
        format!("{:032x}", self.0.digest128())
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Fingerprint({})", self.finish())
    }
}

impl Dataset {
    /// The fingerprint of the samples as they are read, after preprocessing: of their number, their shape, and their
    /// values as `f64`, in order.
    ///
    /// The same samples in another file, format or element type have the same fingerprint. Reads everything once,
    /// block by block.
    pub fn fingerprint(&self) -> Result<String> {
        let mut fingerprint = Fingerprint::new();
        fingerprint.update_count(self.shape().len());
        self.shape().iter().for_each(|&length| fingerprint.update_count(length));
        let sample_len = self.sample_shape().iter().product::<usize>().max(1);
        let mut bytes = Vec::new();
        for batch in self.batches::<f64>((BLOCK / sample_len).max(1))? {
            bytes.clear();
            batch?.rows.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            fingerprint.update(&bytes);
            self.release();
        }
        Ok(fingerprint.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Existing, Preprocess, Source, write_npy};
    use ndarray::{Array2, ArrayD, array};

    /// More than what is worth giving back, so that the fingerprint releases pages as it goes.
    #[test]
    fn released_pages_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let values = Array2::from_shape_fn((66 << 10, 1 << 10), |(i, j)| (i * 31 + j * 7 + i * j) as u8);
        write_npy(&path, &values, Existing::Refuse).unwrap();
        let data = Dataset::open(&Source::new(&path, None)).unwrap();
        let before = data.rows::<f64>(40_000..40_002).unwrap();
        data.release();
        assert_eq!(data.rows::<f64>(40_000..40_002).unwrap(), before);
        assert_eq!(before[[1, 3]], f64::from(values[[40_001, 3]]));
    }

    fn dataset(values: &ArrayD<f64>) -> Dataset {
        Dataset::from_array("values", values.view()).unwrap()
    }

    /// Stores contain these numbers, so they must never change. The XXH3-128 hash of the empty input is published with
    /// the algorithm.
    #[test]
    fn fingerprints_are_pinned() {
        assert_eq!(Fingerprint::new().finish(), "99aa06d3014798d86001c324468d497f");
        let data = dataset(&array![[1.0, -2.5], [0.0, 3.0]].into_dyn());
        assert_eq!(data.fingerprint().unwrap(), PINNED);
    }

    // Computed with the Python package xxhash over struct.pack("<3Q4d", 2, 2, 2, 1.0, -2.5, 0.0, 3.0).
    const PINNED: &str = "7e3d4db146e3f328d5109f5ade1aedff";

    #[test]
    fn the_same_samples_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let values = array![[0.0, 51.0], [102.0, 255.0], [7.0, 8.0]].into_dyn();
        let expected = dataset(&values).fingerprint().unwrap();
        write_npy(&folder.path().join("wide.npy"), &values, Existing::Refuse).unwrap();
        write_npy(&folder.path().join("small.npy"), &values.mapv(|value| value as f32), Existing::Refuse).unwrap();
        write_npy(&folder.path().join("bytes.npy"), &values.mapv(|value| value as u8), Existing::Refuse).unwrap();
        std::fs::write(folder.path().join("text.csv"), "a,b\n0,51\n102,255\n7,8\n").unwrap();
        for name in ["wide.npy", "small.npy", "bytes.npy", "text.csv"] {
            let data = Source::new(folder.path().join(name), None).open().unwrap();
            assert_eq!(data.fingerprint().unwrap(), expected, "{name}");
        }
        let halves = dataset(&(&values * 2.0)).with_preprocess(Preprocess::new().scale(0.5)).unwrap();
        assert_eq!(halves.fingerprint().unwrap(), expected);
    }

    #[test]
    fn other_samples_differ() {
        let values = Array2::from_shape_fn((6, 4), |(row, column)| (4 * row + column) as f64).into_dyn();
        let own = dataset(&values).fingerprint().unwrap();
        let other_shape = values.clone().into_shape_with_order((6, 2, 2)).unwrap().into_dyn();
        let fewer = values.slice(ndarray::s![..5, ..]).to_owned().into_dyn();
        let mut one = values.clone();
        one[[3, 2]] += 1e-12;
        let mut swapped = values.clone();
        swapped.swap([0, 0], [1, 0]);
        for (what, other) in [("shape", other_shape), ("rows", fewer), ("value", one), ("order", swapped)] {
            assert_ne!(dataset(&other).fingerprint().unwrap(), own, "{what}");
        }
    }

    /// More than a block: the split into blocks does not matter.
    #[test]
    fn blocks_do_not_show() {
        let values = Array2::from_shape_fn((3, BLOCK / 2), |(row, column)| (row * column) as f64).into_dyn();
        let mut expected = Fingerprint::new();
        [2, 3, BLOCK / 2].iter().for_each(|&count| expected.update_count(count));
        values.iter().for_each(|value| expected.update(&value.to_le_bytes()));
        assert_eq!(dataset(&values).fingerprint().unwrap(), expected.finish());
    }
}
