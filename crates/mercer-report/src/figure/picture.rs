//! Small pictures, from bytes or from the numbers of a network's input.

use super::png;

/// What the bytes of a pixel are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// One byte, from black to white.
    Grey,
    /// Red, green and blue.
    Rgb,
}

impl Channels {
    fn count(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Rgb => 3,
        }
    }
}

/// A picture of eight-bit pixels, row by row; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    height: usize,
    channels: Channels,
    bytes: Vec<u8>,
    skipped: usize,
}

impl Picture {
    /// A picture from its bytes, row by row, the channels of a pixel together. None if the sizes do not match, are zero
    /// or exceed 65,535.
    pub fn new(width: usize, height: usize, channels: Channels, bytes: Vec<u8>) -> Option<Self> {
        let size = |side: usize| (1..=0xffff).contains(&side);
        let fits = size(width) && size(height) && bytes.len() as u64 == (width * height * channels.count()) as u64;
        fits.then_some(Self { width, height, channels, bytes, skipped: 0 })
    }

    /// A picture from numbers as networks take them: channel by channel (1 or 3), each row by row. The range becomes 0 to
    /// 255, and numbers outside it its ends; without a range it is that of the finite numbers. Numbers that are not
    /// finite are black and count as [skipped](super::Figure::skipped). None if the sizes do not match.
    pub fn from_chw(
        values: impl IntoIterator<Item = f64>,
        [channels, height, width]: [usize; 3],
        range: Option<(f64, f64)>,
    ) -> Option<Self> {
        let kind = match channels {
            1 => Channels::Grey,
            3 => Channels::Rgb,
            _ => return None,
        };
        let plane = width.checked_mul(height)?;
        let values: Vec<f64> = values.into_iter().collect();
        let finite = values.iter().copied().filter(|x| x.is_finite());
        let found = || finite.clone().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let (low, high) = range.filter(|(low, high)| low.is_finite() && high.is_finite()).unwrap_or_else(found);
        // Halves, because the whole range may be too large for a number. A range of zero length is black.
        let (middle, half) = (low / 2.0 + high / 2.0, high / 2.0 - low / 2.0);
        let scaled = |x: f64| if half > 0.0 { ((x - middle) / half + 1.0) * 127.5 } else { 0.0 };
        let byte = |x: f64| if x.is_finite() { scaled(x).clamp(0.0, 255.0).round() as u8 } else { 0 };
        let skipped = values.len() - finite.clone().count();
        if Some(values.len()) != plane.checked_mul(channels) {
            return None;
        }
        let bytes = (0..plane).flat_map(|pixel| (0..channels).map(move |channel| channel * plane + pixel));
        let picture = Self::new(width, height, kind, bytes.map(|at| byte(values[at])).collect())?;
        Some(Self { skipped, ..picture })
    }

    /// Pixels per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// What the bytes are.
    pub fn channels(&self) -> Channels {
        self.channels
    }

    /// The pixels, row by row.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Numbers that were not finite.
    pub(super) fn skipped(&self) -> usize {
        self.skipped
    }

    /// The picture as a PNG file.
    pub fn to_png(&self) -> Vec<u8> {
        png::encode(self.width, self.height, self.channels.count(), &self.bytes)
    }

    /// The picture with no side longer than this, by means over blocks of pixels.
    #[must_use]
    pub fn thumbnail(&self, longest: usize) -> Self {
        let block = self.width.max(self.height).div_ceil(longest.max(1));
        if block <= 1 {
            return self.clone();
        }
        let depth = self.channels.count();
        let (width, height) = (self.width.div_ceil(block), self.height.div_ceil(block));
        let mut bytes = Vec::with_capacity(width * height * depth);
        for at in 0..width * height * depth {
            let (row, column, channel) = (at / depth / width, at / depth % width, at % depth);
            let ends = |first: usize, end: usize| first * block..((first + 1) * block).min(end);
            let (rows, columns) = (ends(row, self.height), ends(column, self.width));
            let count = (rows.len() * columns.len()) as u64;
            let pixels = rows.flat_map(|y| columns.clone().map(move |x| (y * self.width + x) * depth + channel));
            let sum: u64 = pixels.map(|pixel| u64::from(self.bytes[pixel])).sum();
            bytes.push(((sum + count / 2) / count) as u8);
        }
        Self { width, height, bytes, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_pixels() {
        // Two by one pixels in three channels: the first pixel is (0, 0.5, 1), the second (1, NaN, 0).
        let values = [0.0, 1.0, 0.5, f64::NAN, 1.0, 0.0];
        let picture = Picture::from_chw(values, [3, 1, 2], None).unwrap();
        assert_eq!((picture.bytes(), picture.skipped()), (&[0, 128, 255, 255, 0, 0][..], 1));
        let given = Picture::from_chw([-5.0, 0.0, 1.0, 9.0], [1, 2, 2], Some((-1.0, 1.0))).unwrap();
        assert_eq!((given.bytes(), given.channels()), (&[0, 128, 255, 255][..], Channels::Grey));
        for shape in [[2, 1, 2], [3, 2, 2], [1, 0, 5], [3, usize::MAX, 3]] {
            assert!(Picture::from_chw(values, shape, None).is_none(), "{shape:?}");
        }
        assert_eq!(Picture::from_chw([f64::NAN; 4], [1, 2, 2], None).unwrap().bytes(), [0; 4]);
        let wide = Picture::from_chw([f64::MAX, f64::MIN], [1, 1, 2], None).unwrap();
        assert_eq!(wide.bytes(), [255, 0]);
        assert!(Picture::new(2, 2, Channels::Rgb, vec![0; 4]).is_none());
    }

    #[test]
    fn thumbnails_are_means() {
        let picture = Picture::new(3, 2, Channels::Grey, vec![0, 10, 100, 20, 30, 200]).unwrap();
        let half = picture.thumbnail(2);
        assert_eq!((half.width(), half.height(), half.bytes()), (2, 1, &[15, 150][..]));
        assert_eq!(picture.thumbnail(3), picture);
        assert_eq!(picture.thumbnail(0).bytes().len(), 1);
    }
}
