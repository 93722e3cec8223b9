//! Random crops and flips of images.
//!
//! A crop is a window of the size of the image in the image with zeros around it; a flip mirrors it left to right. What a
//! sample gets depends on seed, epoch and the row of the sample, through the stream `"augment/epoch E/sample I"`, and on
//! nothing else.

use crate::element::Element;
use crate::error::{NetError, Result};
use mercer_data::Dataset;
use mercer_data::random::stream;
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Random changes of the images in every epoch.
///
/// ```
/// use mercer_net::train::Augmentation;
///
/// let usual = Augmentation { crop_margin: 4, flip: true };
/// assert_eq!(usual.to_string(), "crop 4, flip");
/// assert!(Augmentation::default().is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Augmentation {
    /// Zeros on each side, from which a random window of the size of the image is cut. Zero is meant after
    /// preprocessing.
    pub crop_margin: usize,
    /// Whether every other image, at random, is mirrored left to right.
    pub flip: bool,
}

impl fmt::Display for Augmentation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { crop_margin: 0, flip: false } => formatter.write_str("none"),
            Self { crop_margin: 0, flip: true } => formatter.write_str("flip"),
            Self { crop_margin: crop, flip: false } => write!(formatter, "crop {crop}"),
            Self { crop_margin: crop, flip: true } => write!(formatter, "crop {crop}, flip"),
        }
    }
}

/// The most channels that images usually have; used to recognise channels that come last.
const FEW: usize = 4;

impl Augmentation {
    /// Whether images stay as they are.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that the samples are images, `[channels, height, width]`, larger than the crop.
    pub(super) fn check(&self, inputs: &[Dataset]) -> Result<()> {
        let refuse = |text: String| Err(NetError::Setting(text));
        if self.is_none() {
            return Ok(());
        }
        let [samples] = inputs else {
            return refuse("crop and flip are for networks with one input of images".into());
        };
        let (place, shape) = (samples.place(), samples.sample_shape());
        let &[channels, height, width] = shape else {
            let needs = "crop and flip need images of shape [channels, height, width]";
            return refuse(format!("{needs}, but the samples of {place} have shape {shape:?}"));
        };
        if width <= FEW && channels > FEW && height > FEW {
            let text = "crop and flip need images with the channels first";
            return refuse(format!("{text}, but those of {place}, of shape {shape:?}, seem to have them last"));
        }
        if self.crop_margin >= height.min(width) {
            let most = height.min(width).saturating_sub(1);
            return refuse(format!(
                "crop_margin = {}; accepted: up to {most} for the images of {place}",
                self.crop_margin
            ));
        }
        Ok(())
    }

    /// Writes the images of these rows as they are in this epoch. `images` and `changed` are
    /// `[rows, channels, height, width]`.
    pub(super) fn apply<T: Element>(&self, at: Place<'_>, images: &[T], changed: &mut Vec<T>) {
        let size: usize = at.shape.iter().product();
        changed.clear();
        for (image, row) in images.chunks_exact(size.max(1)).zip(at.rows) {
            let window = self.draw(at.seed, at.epoch, *row);
            window.cut(image, [at.shape[1], at.shape[2]], self.crop_margin, changed);
        }
    }

    /// All numbers are drawn in any case, so that flips do not change the crops.
    fn draw(&self, seed: u64, epoch: usize, row: usize) -> Window {
        let mut random = stream(seed, &format!("augment/epoch {epoch}/sample {row}"));
        let [top, left] = [(); 2].map(|()| random.random_range(0..=2 * self.crop_margin as u64) as usize);
        Window { top, left, mirrored: random.random::<bool>() && self.flip }
    }
}

/// Which samples of which epoch.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) seed: u64,
    pub(super) epoch: usize,
    pub(super) rows: &'a [usize],
    /// Of a sample.
    pub(super) shape: &'a [usize],
}

/// A window of an image with zeros around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    top: usize,
    left: usize,
    mirrored: bool,
}

impl Window {
    /// Appends the window of all channels.
    fn cut<T: Element>(&self, image: &[T], [height, width]: [usize; 2], zeros: usize, out: &mut Vec<T>) {
        // Columns of the image in the window: `from` of them, after `before` zeros.
        let from = self.left.saturating_sub(zeros)..(self.left + width).saturating_sub(zeros).min(width);
        let before = zeros.saturating_sub(self.left);
        for channel in image.chunks_exact(height * width) {
            for y in 0..height {
                let start = out.len();
                out.resize(start + width, T::zero());
                let row = &mut out[start..];
                if let Some(y) = (y + self.top).checked_sub(zeros).filter(|y| *y < height) {
                    let source = &channel[y * width..(y + 1) * width][from.clone()];
                    row[before..before + from.len()].copy_from_slice(source);
                }
                if self.mirrored {
                    row.reverse();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::ArrayD;

    /// Two channels of 3 × 4, all numbers different and not zero.
    fn image(row: usize) -> Vec<f64> {
        (1..=24).map(|x| f64::from(x) + 100.0 * row as f64).collect()
    }

    /// The window by its definition.
    fn slow(image: &[f64], window: Window, zeros: usize) -> Vec<f64> {
        let pixel = |c: usize, y: usize, x: usize| match (y.checked_sub(zeros), x.checked_sub(zeros)) {
            (Some(y), Some(x)) if y < 3 && x < 4 => image[c * 12 + y * 4 + x],
            _ => 0.0,
        };
        let mut out = Vec::new();
        for c in 0..2 {
            for y in 0..3 {
                let row: Vec<f64> = (0..4).map(|x| pixel(c, y + window.top, x + window.left)).collect();
                out.extend(if window.mirrored { row.into_iter().rev().collect() } else { row });
            }
        }
        out
    }

    fn changed(how: Augmentation, epoch: usize, rows: &[usize]) -> Vec<f64> {
        let images: Vec<f64> = rows.iter().flat_map(|&row| image(row)).collect();
        let mut changed = Vec::new();
        how.apply(Place { seed: 3, epoch, rows, shape: &[2, 3, 4] }, &images, &mut changed);
        changed
    }

    #[test]
    fn windows_are_cut_as_defined() {
        for zeros in 0..3 {
            for top in 0..=2 * zeros {
                for left in 0..=2 * zeros {
                    for mirrored in [false, true] {
                        let (window, mut out) = (Window { top, left, mirrored }, Vec::new());
                        window.cut(&image(0), [3, 4], zeros, &mut out);
                        assert_eq!(out, slow(&image(0), window, zeros), "{window:?}, {zeros}");
                    }
                }
            }
        }
    }

    /// Every window and both mirror images are met, about equally often, and nothing else.
    #[test]
    fn draws_are_legal_and_even() {
        let rows: Vec<usize> = (0..2000).collect();
        let how = Augmentation { crop_margin: 1, flip: true };
        let all = changed(how, 5, &rows);
        let mut counts = vec![0; 18];
        for (&row, found) in rows.iter().zip(all.chunks_exact(24)) {
            let window = |at: usize| Window { top: at / 6, left: at / 2 % 3, mirrored: at % 2 == 1 };
            let at = (0..18).find(|&at| slow(&image(row), window(at), 1) == found);
            counts[at.expect("a window of the image")] += 1;
        }
        assert!(counts.iter().all(|count| (70..155).contains(count)), "{counts:?}");
        let flips = changed(Augmentation { crop_margin: 0, flip: true }, 5, &rows);
        let mirrored =
            |image: &[f64]| image.chunks_exact(4).flat_map(|row| row.iter().rev().copied()).collect::<Vec<_>>();
        let count = rows.iter().zip(flips.chunks_exact(24)).filter(|(row, found)| {
            let own = image(**row);
            assert!(own == *found || mirrored(&own) == *found);
            own != *found
        });
        assert!((900..1100).contains(&count.count()));
    }

    /// A draw depends on the epoch and the row of a sample, not on what is beside it. Flips do not change crops.
    #[test]
    fn draws_depend_on_epoch_and_row() {
        let how = Augmentation { crop_margin: 2, flip: true };
        let whole = changed(how, 1, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(changed(how, 1, &[4, 1]), [&whole[96..120], &whole[24..48]].concat());
        assert_ne!(changed(how, 2, &[0, 1, 2, 3, 4, 5]), whole);
        for row in 0..50 {
            let crop = Augmentation { flip: false, ..how }.draw(3, 1, row);
            assert_eq!(Window { mirrored: false, ..how.draw(3, 1, row) }, crop);
        }
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let text = |how: Augmentation, shape: &[usize]| {
            let set = Dataset::from_array("set.npy", ArrayD::<f32>::zeros(shape).view()).unwrap();
            how.check(std::slice::from_ref(&set)).map(|()| String::new()).unwrap_or_else(|error| error.to_string())
        };
        let how = Augmentation { crop_margin: 3, flip: false };
        assert_eq!(text(how, &[2, 1, 8, 8]), "");
        assert_eq!(text(Augmentation::default(), &[2, 5]), "");
        assert!(text(how, &[2, 64]).contains("need images") && text(how, &[2, 64]).contains("[64]"));
        assert!(text(how, &[2, 1, 8, 3]).contains("crop_margin = 3; accepted: up to 2"));
        let flip = Augmentation { crop_margin: 0, flip: true };
        assert!(text(flip, &[2, 8, 8, 3]).contains("last") && text(flip, &[2, 1, 2, 2]).is_empty());
        assert!(text(Augmentation { crop_margin: usize::MAX, flip: false }, &[2, 1, 8, 8]).contains("up to 7"));
    }
}
