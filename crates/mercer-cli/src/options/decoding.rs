//! Texts and images as numbers.

use mercer::data::LONGEST_SIDE;
use mercer::spec::DecodingSpec;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How a column of texts and a folder of images are read.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DecodingOptions {
    /// Tokenizer for a column of texts, as Hugging Face writes it (--help says more)
    #[arg(long, value_name = "FILE.json")]
    tokenizer: Option<PathBuf>,

    /// Tokens per text: longer ones are cut [default: the longest text, as far as the network allows]
    #[arg(long, value_name = "N", hide_short_help = true)]
    max_tokens: Option<NonZeroUsize>,

    /// Resize images to N×N or HEIGHTxWIDTH pixels (bilinear with antialiasing)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    resize: Option<[usize; 2]>,
}

impl DecodingOptions {
    /// As data.
    pub(crate) fn spec(&self) -> DecodingSpec {
        DecodingSpec {
            tokenizer: self.tokenizer.clone(),
            max_tokens: self.max_tokens.map(NonZeroUsize::get),
            resize: self.resize,
        }
    }
}

/// One side of a square, or height and width.
fn parse_size(text: &str) -> Result<[usize; 2], String> {
    let side = |text: &str| {
        let side = text.trim().parse::<usize>().ok().filter(|side| (1..=LONGEST_SIDE).contains(side));
        side.ok_or_else(|| format!("`{text}` is not a number of pixels from 1 to {LONGEST_SIDE}"))
    };
    match text.split_once(['x', '×']) {
        Some((height, width)) => Ok([side(height)?, side(width)?]),
        None => side(text).map(|side| [side, side]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_squares_or_rectangles() {
        assert_eq!(parse_size("32"), Ok([32, 32]));
        assert_eq!(parse_size("24x32"), Ok([24, 32]));
        for text in ["", "0", "x", "32x", "1e9", "99999", "-3"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
