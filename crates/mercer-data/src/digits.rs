//! The 1,797 embedded handwritten digits: E. Alpaydin and C. Kaynak, UCI, CC BY 4.0.
//!
//! `data/README.md` says where they come from and how the embedded files were made.

use flate2::read::GzDecoder;
use ndarray::{Array3, Ix3};

use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::format::{Format, idx};
use crate::labels::Classes;

static IMAGES: &[u8] = include_bytes!("../data/digits-images.idx.gz");
static LABELS: &[u8] = include_bytes!("../data/digits-labels.idx.gz");

/// One in this many images of each digit belongs to the test set.
const TEST_EVERY: usize = 5;

/// Images of digits and their labels.
#[derive(Clone, Debug)]
pub struct Digits {
    /// 8 × 8 pixels with whole values from 0 to 16, as `u8`.
    pub images: Dataset,
    /// The digit, 0 to 9.
    pub classes: Classes,
}

/// All 1,797 digits in their usual order.
///
/// ```
/// let digits = mercer_data::digits::load()?;
/// assert_eq!(digits.images.shape(), [1797, 8, 8]);
/// assert_eq!(digits.classes.indices()[..5], [0, 1, 2, 3, 4]);
/// # Ok::<(), mercer_data::DataError>(())
/// ```
pub fn load() -> Result<Digits> {
    let open = |name: &str, bytes: &[u8]| {
        let stored = idx::inflate(name, &mut GzDecoder::new(bytes), bytes.len() as u64)?;
        Ok::<_, DataError>(Dataset::from_stored(name, Format::Memory, stored))
    };
    let labels = open("digits labels", LABELS)?;
    Ok(Digits { images: open("digits", IMAGES)?, classes: Classes::read(&labels)? })
}

/// The fixed split into 1,442 digits for training and 355 for testing.
///
/// Every fifth image of each digit, beginning with the fifth, is for testing. No seed is involved, so results
/// on this split can be compared between versions.
pub fn split() -> Result<(Digits, Digits)> {
    let all = load()?;
    let mut seen = vec![0; all.classes.n_classes()];
    let is_test = |&index: &usize| {
        let count: &mut usize = &mut seen[all.classes.indices()[index]];
        *count += 1;
        (*count).is_multiple_of(TEST_EVERY)
    };
    let (test, train): (Vec<usize>, Vec<usize>) = (0..all.images.n_samples()).partition(is_test);
    Ok((part(&all, "digits train", &train)?, part(&all, "digits test", &test)?))
}

fn part(all: &Digits, name: &str, indices: &[usize]) -> Result<Digits> {
    let images = all.images.select::<f32>(indices)?.mapv(|value| value as u8);
    let classes = indices.iter().map(|&index| all.classes.indices()[index]).collect();
    Ok(Digits {
        images: Dataset::from_array(name, images.view())?,
        classes: Classes::new(classes, all.classes.n_classes())?,
    })
}

impl Digits {
    /// The pixels, divided by 16 so that they lie in [0, 1].
    pub fn pixels(&self) -> Result<Array3<f32>> {
        let pixels = self.images.read::<f32>()?.mapv(|value| value / 16.0);
        let shape = pixels.shape().to_vec();
        let wrong =
            |_| DataError::Shape { place: "digits".to_owned(), shape, reason: "three axes expected".to_owned() };
        pixels.into_dimensionality::<Ix3>().map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts that also hold for scikit-learn's copy of the set.
    #[test]
    fn they_are_the_digits() {
        let digits = load().unwrap();
        let images = digits.images.read::<f64>().unwrap();
        assert_eq!(images.sum(), 561_718.0);
        assert_eq!(images.iter().copied().fold(0.0, f64::max), 16.0);
        assert_eq!(digits.classes.counts(), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        let top: Vec<f64> = images.iter().copied().take(8).collect();
        assert_eq!(top, [0.0, 0.0, 5.0, 13.0, 9.0, 1.0, 0.0, 0.0]);
        assert!(digits.images.is_integer());
    }

    #[test]
    fn the_split_is_fixed_and_balanced() {
        let (train, test) = split().unwrap();
        assert_eq!(train.images.n_samples() + test.images.n_samples(), 1797);
        assert_eq!(test.images.n_samples(), 355);
        assert!(test.classes.counts().iter().all(|&count| (34..=36).contains(&count)));
        assert_eq!(train.images.n_samples(), train.classes.indices().len());
        assert_eq!(train.pixels().unwrap().dim(), (1442, 8, 8));
    }

    #[test]
    fn they_are_small() {
        assert!(IMAGES.len() + LABELS.len() < 100_000);
    }
}
