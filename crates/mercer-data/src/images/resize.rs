//! Another size for an image: a triangle filter that grows with the reduction, so that details that are too fine for the
//! new size are averaged instead of sampled ("bilinear with antialiasing").
//!
//! Rows first, then columns, each rounded to 8 bits, with weights of 22 bits. This is what Pillow's `BILINEAR` computes,
//! to the bit; sides are scaled independently.

use super::decode::Pixels;

/// Bits of a weight after the point.
const PRECISION: u32 = 22;

/// The pixels that one result is a mean of.
struct Window {
    first: usize,
    weights: Vec<i64>,
}

/// Stretches or shrinks an image to a height and a width.
pub(super) fn resize(pixels: Pixels, [height, width]: [usize; 2]) -> Pixels {
    let mut pixels = pixels;
    if pixels.width != width {
        let (windows, c) = (windows(pixels.width, width), pixels.channels);
        let rows = pixels.data.chunks_exact(pixels.width * c);
        let row = |row: &[u8]| -> Vec<u8> {
            let each = windows.iter().flat_map(|window| (0..c).map(move |channel| (window, channel)));
            each.map(|(window, channel)| mean(window, |at| row[at * c + channel])).collect()
        };
        pixels.data = rows.flat_map(row).collect();
        pixels.width = width;
    }
    if pixels.height != height {
        let (windows, length) = (windows(pixels.height, height), pixels.width * pixels.channels);
        let each = windows.iter().flat_map(|window| (0..length).map(move |column| (window, column)));
        pixels.data = each.map(|(window, column)| mean(window, |at| pixels.data[at * length + column])).collect();
        pixels.height = height;
    }
    pixels
}

fn mean(window: &Window, pixel: impl Fn(usize) -> u8) -> u8 {
    let weighted = (window.first..).zip(&window.weights).map(|(at, weight)| i64::from(pixel(at)) * weight);
    let sum = weighted.sum::<i64>() + (1 << (PRECISION - 1));
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// For every result, the pixels under a triangle around its centre.
fn windows(from: usize, to: usize) -> Vec<Window> {
    let scale = from as f64 / to as f64;
    let reach = scale.max(1.0);
    (0..to)
        .map(|at| {
            let centre = (at as f64 + 0.5) * scale;
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(from);
            let height = |at: usize| (1.0 - ((at as f64 - centre + 0.5) / reach).abs()).max(0.0);
            let heights: Vec<f64> = (first..end).map(height).collect();
            let sum: f64 = heights.iter().sum();
            let weight = |height: &f64| (0.5 + height / sum * f64::from(1 << PRECISION)) as i64;
            Window { first, weights: heights.iter().map(weight).collect() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_stays_and_halves_are_averaged() {
        let flat = Pixels { width: 7, height: 5, channels: 3, data: vec![93; 105] };
        let other = resize(flat, [3, 11]);
        assert_eq!((other.height, other.width, other.data), (3, 11, vec![93; 99]));
        let step = Pixels { width: 4, height: 1, channels: 1, data: vec![0, 0, 200, 200] };
        // A triangle of width 4 around 1: (3·0 + 3·0 + 1·200) / 7 ≈ 28.6, with the pixel left of the image left out.
        assert_eq!(resize(step, [1, 2]).data, [29, 171]);
    }
}
