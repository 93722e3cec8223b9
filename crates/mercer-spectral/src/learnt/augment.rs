//! Random augmentations of images.

use crate::error::{Result, SpectralError};
use mercer_kernel::Real;
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

/// Random augmentation of images `[channels, height, width]`: a crop, resized to the size of the image, then possibly a
/// flip, then noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augmentation {
    /// The smallest side of a crop, as a fraction of the image's side; 1 does not crop.
    pub crop: f64,
    /// Whether half of the images are flipped left to right.
    pub flip: bool,
    /// The standard deviation of the noise added to every number.
    pub noise: f64,
}

impl Augmentation {
    /// Crops down to 0.6 and a little noise. No flips, which would change letters and digits into others.
    pub fn new() -> Self {
        Self { crop: 0.6, flip: false, noise: 0.1 }
    }

    /// Checks the numbers, and that samples are images where that is needed.
    ///
    /// # Errors
    /// [`SpectralError::Setting`].
    pub fn check(&self, shape: &[usize]) -> Result<()> {
        let refuse = |text: String| Err(SpectralError::Setting(text));
        if !(self.crop > 0.0 && self.crop <= 1.0) {
            return refuse(format!("crop = {}; accepted: above 0, up to 1", self.crop));
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            return refuse(format!("noise = {}; accepted: from 0", self.noise));
        }
        if (self.flip || self.crop < 1.0) && shape.len() != 3 {
            return refuse(format!(
                "samples of shape {shape:?} are not images [channels, height, width]; only noise can be added to them"
            ));
        }
        Ok(())
    }

    /// One random view of an image.
    pub(super) fn view<T: Real>(&self, image: &[T], shape: &[usize], random: &mut impl Rng, out: &mut [T]) {
        if let (&[_, height, width], true) = (shape, self.flip || self.crop < 1.0) {
            let side = self.crop + (1.0 - self.crop) * random.random::<f64>();
            let (top, left) = (random.random::<f64>() * (1.0 - side), random.random::<f64>() * (1.0 - side));
            let flip = self.flip && random.random::<bool>();
            let rows = Line::new(height, top, side, false);
            let columns = Line::new(width, left, side, flip);
            resample(image, (height, width), (&rows, &columns), out);
        } else {
            out.copy_from_slice(image);
        }
        if self.noise > 0.0 {
            out.iter_mut().for_each(|x| *x += T::narrow(self.noise * random.sample::<f64, _>(StandardNormal)));
        }
    }
}

impl Default for Augmentation {
    fn default() -> Self {
        Self::new()
    }
}

/// For every position of the result along an axis, the two neighbouring positions of the image, and the distance from
/// the first.
struct Line(Vec<(usize, usize, f64)>);

impl Line {
    /// Pixels are squares: the centre of pixel `i` of `n` is at `(i + ½)/n` of the side.
    fn new(size: usize, start: f64, share: f64, flip: bool) -> Self {
        let at = |index: usize| {
            let index = if flip { size - 1 - index } else { index };
            let place = (start + share * (index as f64 + 0.5) / size as f64) * size as f64 - 0.5;
            let place = place.clamp(0.0, (size - 1) as f64);
            let first = place.floor() as usize;
            (first, (first + 1).min(size - 1), place - place.floor())
        };
        Self((0..size).map(at).collect())
    }
}

/// Bilinear interpolation of every channel.
fn resample<T: Real>(image: &[T], (height, width): (usize, usize), (rows, columns): (&Line, &Line), out: &mut [T]) {
    let size = height * width;
    for (plane, out) in image.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
        for (&(top, bottom, down), out) in rows.0.iter().zip(out.chunks_exact_mut(width)) {
            let down = T::narrow(down);
            let (above, below) = (&plane[top * width..(top + 1) * width], &plane[bottom * width..(bottom + 1) * width]);
            for (&(left, right, over), out) in columns.0.iter().zip(out) {
                let over = T::narrow(over);
                let upper = above[left] + over * (above[right] - above[left]);
                let lower = below[left] + over * (below[right] - below[left]);
                *out = upper + down * (lower - upper);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mercer_data::random::stream;

    const SHAPE: [usize; 3] = [2, 4, 6];

    fn image() -> Vec<f64> {
        // Linear in both directions, which interpolation preserves.
        (0..48).map(|i| (i / 24) as f64 * 100.0 + (i / 6 % 4) as f64 * 10.0 + (i % 6) as f64).collect()
    }

    #[test]
    fn a_whole_crop_is_the_image_and_a_flip_is_its_mirror() {
        let (image, mut out) = (image(), vec![0.0; 48]);
        let (rows, same, mirror) =
            (Line::new(4, 0.0, 1.0, false), Line::new(6, 0.0, 1.0, false), Line::new(6, 0.0, 1.0, true));
        resample(&image, (4, 6), (&rows, &same), &mut out);
        assert_eq!(out, image);
        resample(&image, (4, 6), (&rows, &mirror), &mut out);
        for (row, mirrored) in image.chunks(6).zip(out.chunks(6)) {
            assert!(row.iter().rev().zip(mirrored).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    /// A crop of a linear image is linear with a smaller slope, away from the border.
    #[test]
    fn crops_are_interpolated() {
        let (image, mut out) = (image(), vec![0.0; 48]);
        let (rows, columns) = (Line::new(4, 0.25, 0.5, false), Line::new(6, 0.25, 0.5, false));
        resample(&image, (4, 6), (&rows, &columns), &mut out);
        for (index, &found) in out.iter().enumerate() {
            let place = |i: usize, n: f64| (0.25 + 0.5 * (i as f64 + 0.5) / n) * n - 0.5;
            let expected = (index / 24) as f64 * 100.0 + place(index / 6 % 4, 4.0) * 10.0 + place(index % 6, 6.0);
            assert!((found - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn views_differ_and_depend_on_the_stream_alone() {
        let augmentation = Augmentation { flip: true, ..Augmentation::new() };
        let view = |name: &str| {
            let mut out = vec![0.0; 48];
            augmentation.view(&image(), &SHAPE, &mut stream(0, name), &mut out);
            out
        };
        assert_eq!(view("a"), view("a"));
        assert_ne!(view("a"), view("b"));
        assert!(Augmentation { crop: 0.0, ..augmentation }.check(&SHAPE).is_err());
        assert!(Augmentation { noise: f64::NAN, ..augmentation }.check(&SHAPE).is_err());
        assert!(augmentation.check(&[5]).is_err());
        assert!(Augmentation { crop: 1.0, flip: false, noise: 0.1 }.check(&[5]).is_ok());
    }
}
