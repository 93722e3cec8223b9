//! One image file as pixels of 8 bits. The kind of a file is read from its first bytes, not from its name.
//!
//! Values are those of the file: colour profiles, gamma and the orientation in the metadata of a photo are not applied.

use std::io::Cursor;
use std::path::Path;

use png::{BitDepth, ColorType, Limits, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::error::{DataError, Result, io_error};
use crate::files::read_regular;

/// The largest file.
const LONGEST_FILE: u64 = 256 << 20;

/// The most pixels of an image, and the longest side.
const MOST_PIXELS: usize = 64 << 20;
const LONGEST_SIDE: usize = 1 << 16;

/// Samples of 8 bits, row by row, the channels of a pixel side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pixels {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) channels: usize,
    pub(super) data: Vec<u8>,
}

impl Pixels {
    /// Grey images get three equal channels; colours become their luma by ITU-R 601, as in Pillow and libjpeg.
    pub(super) fn with_channels(self, channels: usize) -> Self {
        let data = match (self.channels, channels) {
            (1, 3) => self.data.iter().flat_map(|&grey| [grey; 3]).collect(),
            (3, 1) => self.data.chunks_exact(3).map(luma).collect(),
            _ => return self,
        };
        Self { channels, data, ..self }
    }
}

/// 0.299 R + 0.587 G + 0.114 B with weights of 16 bits, rounded.
fn luma(pixel: &[u8]) -> u8 {
    let sum = 19_595 * u32::from(pixel[0]) + 38_470 * u32::from(pixel[1]) + 7_471 * u32::from(pixel[2]);
    ((sum + 0x8000) >> 16) as u8
}

/// Whether a name ends like that of an image that is read.
pub(super) fn is_image_name(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    matches!(ending.as_deref(), Some("png" | "jpg" | "jpeg"))
}

/// Decodes a file.
pub(super) fn decode(path: &Path) -> Result<Pixels> {
    let bytes = read(path)?;
    let pixels = match kind(&bytes) {
        Some(Kind::Png) => decode_png(&bytes),
        Some(Kind::Jpeg) => decode_jpeg(&bytes),
        None => Err(Problem::Refused("it is neither PNG nor JPEG, whatever its name says".to_owned())),
    };
    pixels.map_err(|problem| problem.at(path))
}

/// Whether the header of a file says that it is in colour.
pub(super) fn is_colour(path: &Path) -> Result<bool> {
    let bytes = read(path)?;
    let is_colour = match kind(&bytes) {
        Some(Kind::Png) => png::Decoder::new(Cursor::new(&bytes))
            .read_header_info()
            .map(|info| !matches!(info.color_type, ColorType::Grayscale | ColorType::GrayscaleAlpha))
            .map_err(|error| Problem::Broken("PNG", error.to_string())),
        Some(Kind::Jpeg) => {
            let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&bytes[..]), options());
            let read = decoder.decode_headers().map(|()| decoder.input_colorspace() != Some(ColorSpace::Luma));
            read.map_err(|error| Problem::Broken("JPEG", error.to_string()))
        }
        None => Ok(false),
    };
    is_colour.map_err(|problem| problem.at(path))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    read_regular(path, LONGEST_FILE).map_err(io_error(path.display()))
}

enum Kind {
    Png,
    Jpeg,
}

fn kind(bytes: &[u8]) -> Option<Kind> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some(Kind::Png),
        [0xff, 0xd8, 0xff, ..] => Some(Kind::Jpeg),
        _ => None,
    }
}

/// Why a file is not used.
enum Problem {
    /// It breaks the rules of its format.
    Broken(&'static str, String),
    /// It is something that we do not read.
    Refused(String),
}

impl Problem {
    fn at(self, path: &Path) -> DataError {
        let place = path.display().to_string();
        match self {
            Self::Broken(format, reason) => DataError::Malformed { place, format, reason },
            Self::Refused(reason) => DataError::Refused { place, reason },
        }
    }
}

fn check_size(width: usize, height: usize) -> Result<(), Problem> {
    if width == 0 || height == 0 {
        return Err(Problem::Refused("the image has no pixels".to_owned()));
    }
    if width > LONGEST_SIDE || height > LONGEST_SIDE || width.saturating_mul(height) > MOST_PIXELS {
        let text = format!("an image of {width}×{height} pixels is too large; at most {MOST_PIXELS} pixels are read");
        return Err(Problem::Refused(text));
    }
    Ok(())
}

fn decode_png(bytes: &[u8]) -> Result<Pixels, Problem> {
    let broken = |error: png::DecodingError| Problem::Broken("PNG", error.to_string());
    // Room for the rows, for metadata and for 16 bits per channel.
    let limits = Limits { bytes: MOST_PIXELS * 8 + (64 << 20) };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    // Palettes and few bits become 8 bits per channel, 16 bits lose their lower half.
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    decoder.set_ignore_text_chunk(true);
    let info = decoder.read_header_info().map_err(broken)?;
    let (width, height) = (info.width as usize, info.height as usize);
    check_size(width, height)?;
    let mut reader = decoder.read_info().map_err(broken)?;
    if reader.info().animation_control.is_some_and(|animation| animation.num_frames > 1) {
        return Err(Problem::Refused("this PNG is animated; save one of its frames".to_owned()));
    }
    let size = reader.output_buffer_size().unwrap_or(usize::MAX);
    let mut data = Vec::new();
    data.try_reserve_exact(size).map_err(|_| Problem::Refused(format!("not enough memory for {size} bytes")))?;
    data.resize(size, 0);
    reader.next_frame(&mut data).map_err(broken)?;
    reader.finish().map_err(broken)?;
    let (colour, depth) = reader.output_color_type();
    if depth != BitDepth::Eight {
        return Err(Problem::Refused(format!("{depth:?} bits per channel are not read")));
    }
    let (channels, alpha) = match colour {
        ColorType::Grayscale => (1, false),
        ColorType::GrayscaleAlpha => (1, true),
        ColorType::Rgba => (3, true),
        _ => (3, false),
    };
    if alpha {
        if data.chunks_exact(channels + 1).any(|pixel| pixel[channels] != u8::MAX) {
            let text = "it has transparent pixels, and their colour depends on what is behind; flatten the image first";
            return Err(Problem::Refused(text.to_owned()));
        }
        data = data.chunks_exact(channels + 1).flat_map(|pixel| pixel[..channels].to_vec()).collect();
    }
    Ok(Pixels { width, height, channels, data })
}

/// Strict: a file that ends early is an error, not an image with a grey lower half.
fn options() -> DecoderOptions {
    DecoderOptions::new_safe().set_strict_mode(true).set_max_width(LONGEST_SIDE).set_max_height(LONGEST_SIDE)
}

fn decode_jpeg(bytes: &[u8]) -> Result<Pixels, Problem> {
    let broken = |error: zune_jpeg::errors::DecodeErrors| Problem::Broken("JPEG", error.to_string());
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options());
    decoder.decode_headers().map_err(broken)?;
    let info = decoder.info().ok_or_else(|| Problem::Broken("JPEG", "it has no header".to_owned()))?;
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    check_size(width, height)?;
    let (channels, colours) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (1, ColorSpace::Luma),
        Some(ColorSpace::YCbCr | ColorSpace::RGB) => (3, ColorSpace::RGB),
        Some(ColorSpace::CMYK | ColorSpace::YCCK) => {
            return Err(Problem::Refused("this JPEG is in CMYK, for printing; save it as RGB".to_owned()));
        }
        other => return Err(Problem::Refused(format!("colours of the kind {other:?} are not read"))),
    };
    decoder.set_options(options().jpeg_set_out_colorspace(colours));
    let data = decoder.decode().map_err(broken)?;
    if data.len() != width * height * channels {
        return Err(Problem::Broken("JPEG", "its size differs from its header".to_owned()));
    }
    Ok(Pixels { width, height, channels, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grey_is_the_luma() {
        let pixels = Pixels { width: 2, height: 1, channels: 3, data: vec![255, 0, 0, 10, 200, 30] };
        let grey = pixels.with_channels(1);
        // As Pillow 13 gives for the same two pixels.
        assert_eq!(grey.data, [76, 124]);
        assert_eq!(grey.with_channels(3).data, [76, 76, 76, 124, 124, 124]);
    }

    #[test]
    fn names_of_images() {
        assert!(["a.png", "b.JPG", "c.d.jpeg"].iter().all(|name| is_image_name(name)));
        assert!(["a.gif", "png", "labels.csv"].iter().all(|name| !is_image_name(name)));
    }
}
