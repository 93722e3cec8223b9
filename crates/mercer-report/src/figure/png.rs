//! PNG files and base64, as far as figures need them.
//!
//! Pixels of eight bits, grey or RGB, filtered by the one method of five that compresses best and deflated by `flate2`,
//! which `mercer-data` brings anyway. The `png` crate would bring two more implementations of deflate.

use flate2::{Compression, write::ZlibEncoder};
use std::io::Write;

/// Eight-bit pixels, `depth` bytes each (1 or 3), as a PNG file.
pub(super) fn encode(width: usize, height: usize, depth: usize, pixels: &[u8]) -> Vec<u8> {
    let filtered = (0..5).map(|method| deflated(&filter(pixels, width * depth, depth, method)));
    let data = filtered.min_by_key(Vec::len).unwrap_or_default();
    let mut head = Vec::new();
    // A picture is never wider than 32 bits say: its bytes are in memory.
    head.extend((width as u32).to_be_bytes());
    head.extend((height as u32).to_be_bytes());
    head.extend([8, if depth == 3 { 2 } else { 0 }, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut png, b"IHDR", &head);
    chunk(&mut png, b"IDAT", &data);
    chunk(&mut png, b"IEND", &[]);
    png
}

/// Every row behind the number of its filter: none, left, above, mean, Paeth.
fn filter(pixels: &[u8], stride: usize, depth: usize, method: u8) -> Vec<u8> {
    let mut filtered = Vec::with_capacity(pixels.len() + pixels.len() / stride.max(1) + 1);
    let mut above = vec![0; stride];
    for row in pixels.chunks_exact(stride.max(1)) {
        filtered.push(method);
        for (at, &pixel) in row.iter().enumerate() {
            let back = |row: &[u8]| at.checked_sub(depth).map_or(0, |at| row[at]);
            let (left, up, corner) = (back(row), above[at], back(&above));
            let guess = match method {
                0 => 0,
                1 => left,
                2 => up,
                3 => left.midpoint(up),
                _ => paeth(left, up, corner),
            };
            filtered.push(pixel.wrapping_sub(guess));
        }
        above.copy_from_slice(row);
    }
    filtered
}

/// The neighbour that is nearest to `left + up − corner`.
fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, up, corner].map(i16::from);
    let [to_left, to_up, to_corner] = [(b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs()];
    if to_left <= to_up && to_left <= to_corner {
        left
    } else if to_up <= to_corner {
        up
    } else {
        corner
    }
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

fn chunk(png: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    png.extend(name);
    png.extend(data);
    let mut sum = crc32fast::Hasher::new();
    sum.update(name);
    sum.update(data);
    png.extend(sum.finalize().to_be_bytes());
}

/// Bytes as text (RFC 4648).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Reads a file back: checks the signature and all sums, inflates, and undoes the filters.
    fn decode(png: &[u8]) -> (usize, usize, usize, Vec<u8>) {
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let (mut at, mut chunks) = (8, Vec::new());
        while at < png.len() {
            let data = at + 8..at + 8 + number(at);
            assert_eq!(crc32fast::hash(&png[at + 4..data.end]) as usize, number(data.end), "the sum of a chunk");
            chunks.push((&png[at + 4..at + 8], &png[data.clone()]));
            at = data.end + 4;
        }
        let names: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.0).collect();
        assert_eq!(names, [b"IHDR", b"IDAT", b"IEND"]);
        let (width, height) = (number(16), number(20));
        assert_eq!(png[24], 8);
        let depth = if png[25] == 2 { 3 } else { 1 };
        let mut raw = Vec::new();
        flate2::read::ZlibDecoder::new(chunks[1].1).read_to_end(&mut raw).unwrap();
        let stride = width * depth;
        assert_eq!(raw.len(), height * (stride + 1));
        let mut pixels = vec![0_u8; stride * height];
        for row in 0..height {
            let method = raw[row * (stride + 1)];
            for at in 0..stride {
                let before = |up: usize, back: usize| {
                    if row < up || at < back { 0 } else { pixels[(row - up) * stride + at - back] }
                };
                let (left, up, corner) = (before(0, depth), before(1, 0), before(1, depth));
                let guess = match method {
                    0 => 0,
                    1 => left,
                    2 => up,
                    3 => ((u16::from(left) + u16::from(up)) / 2) as u8,
                    4 => paeth(left, up, corner),
                    _ => panic!("filter {method}"),
                };
                pixels[row * stride + at] = raw[row * (stride + 1) + 1 + at].wrapping_add(guess);
            }
        }
        (width, height, depth, pixels)
    }

    #[test]
    fn pictures_survive() {
        for (width, height, depth) in [(1, 1, 1), (7, 5, 3), (32, 32, 3), (28, 28, 1), (3, 100, 1)] {
            for kind in 0..3_usize {
                let pixel = |at: usize| match kind {
                    0 => crate::figure::thin::scrambled(at) as u8,
                    1 => (at / depth) as u8,
                    _ => 9,
                };
                let pixels: Vec<u8> = (0..width * height * depth).map(pixel).collect();
                assert_eq!(decode(&encode(width, height, depth, &pixels)), (width, height, depth, pixels));
            }
        }
    }

    /// A smooth picture takes much less than its 3072 bytes, and noise little more.
    #[test]
    fn pictures_are_small() {
        let wave = |at: usize| ((at / 3) as f64 / 40.0).sin() * 60.0 + 100.0 + (at % 3 * 20) as f64;
        let smooth: Vec<u8> = (0..3072).map(|at| wave(at) as u8).collect();
        let small = encode(32, 32, 3, &smooth).len();
        assert!(small < 1000, "{small}");
        let noise: Vec<u8> = (0..3072_usize).map(|at| crate::figure::thin::scrambled(at) as u8).collect();
        let large = encode(32, 32, 3, &noise).len();
        assert!(large < 3072 + 150, "{large}");
    }

    #[test]
    fn base64_is_standard() {
        let pairs = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        pairs.into_iter().for_each(|(plain, text)| assert_eq!(base64(plain.as_bytes()), text));
        assert_eq!(base64(&[0xff, 0xfe, 0xfb]), "//77");
    }
}
