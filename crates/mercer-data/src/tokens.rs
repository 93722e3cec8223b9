//! Texts as tokens: a column of a table through a tokenizer, at one length for all samples.
//!
//! The tokenizer is a `tokenizer.json` as Hugging Face writes it. We take its tokens and its special tokens. Its own
//! truncation and padding are not used, except for the padding token and its side: a sample has one fixed shape here.

use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use mercer_run::Context;
use tokenizers::{PaddingDirection, TruncationParams};

use crate::bytes::{Bytes, Spool};
use crate::dataset::Dataset;
use crate::element::{ByteOrder, DType};
use crate::error::{DataError, Result, io_error};
use crate::files::read_regular_text;
use crate::format::{Format, table};
use crate::inputs::TextColumn;
use crate::stored::{Layout, Stored};

/// The largest tokenizer file. The largest vocabularies in use take about 20 MiB.
const LONGEST_TOKENIZER: u64 = 64 << 20;

/// The names under which vocabularies list their padding token.
const PADDING: [&str; 5] = ["[PAD]", "<pad>", "<|pad|>", "<|padding|>", "<PAD>"];

/// Rows between two looks at the context.
const ROWS: usize = 256;

/// A tokenizer from a `tokenizer.json`.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    place: String,
    json: String,
    padding: Option<u32>,
    pads_left: bool,
    /// Tokens of an empty text.
    special: usize,
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tokenizer").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Reads a file.
    ///
    /// # Errors
    /// For a file beyond 64 MiB, and one that is not a tokenizer.
    pub fn open(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let json = read_regular_text(path, LONGEST_TOKENIZER).map_err(io_error(&place))?;
        Self::from_json(&place, json)
    }

    /// From the JSON of a file; `place` names it in errors.
    ///
    /// # Errors
    /// If the JSON is not a tokenizer.
    pub fn from_json(place: &str, json: String) -> Result<Self> {
        let malformed = |reason: String| DataError::Malformed { place: place.to_owned(), format: "tokenizer", reason };
        // The crate has panics for vocabularies that contradict themselves.
        let read = guarded(|| tokenizers::Tokenizer::from_bytes(&json));
        let mut inner = read.map_err(|text| malformed(text + "; a tokenizer.json of Hugging Face is needed"))?;
        let stated = inner.get_padding().map(|padding| (padding.pad_token.clone(), padding.direction));
        let pads_left = stated.as_ref().is_some_and(|(_, side)| matches!(side, PaddingDirection::Left));
        let named = stated.iter().map(|(token, _)| token.as_str()).chain(PADDING);
        let padding = named.filter_map(|token| inner.token_to_id(token)).next();
        inner.with_padding(None);
        guarded(|| inner.with_truncation(None).map(|_| ())).map_err(malformed)?;
        let special = guarded(|| inner.encode_fast("", true)).map_err(malformed)?.len();
        Ok(Self { inner, place: place.to_owned(), json, padding, pads_left, special })
    }

    /// The JSON of its file.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Its file.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether the vocabulary has a padding token.
    pub fn has_padding(&self) -> bool {
        self.padding.is_some()
    }

    /// The tokens of a text, with special tokens, none cut off.
    ///
    /// # Errors
    /// If the tokenizer fails, for instance at a character that it has no token for.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoded = guarded(|| self.inner.encode_fast(text, true));
        let encoded = encoded.map_err(|reason| DataError::Refused { place: self.place.clone(), reason })?;
        Ok(encoded.get_ids().to_vec())
    }

    /// The same tokenizer with texts cut to this many tokens; special tokens count.
    fn cut(&self, length: Option<usize>) -> Result<tokenizers::Tokenizer> {
        let mut inner = self.inner.clone();
        if let Some(max_length) = length {
            if max_length <= self.special {
                let special = self.special;
                let reason = format!("{max_length} is too few: {special} of them are special tokens");
                return Err(DataError::Argument { name: "max-tokens", reason });
            }
            let limit = TruncationParams { max_length, ..TruncationParams::default() };
            let set = guarded(|| inner.with_truncation(Some(limit)).map(|_| ()));
            set.map_err(|reason| DataError::Refused { place: self.place.clone(), reason })?;
        }
        Ok(inner)
    }
}

/// Runs foreign code; a panic is an error.
fn guarded<T, E: fmt::Display>(work: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(text.unwrap_or_else(|| "the tokenizer cannot be used".to_owned()))
        }
    }
}

/// What an input of a network holds of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenPart {
    /// The numbers of the tokens.
    Ids,
    /// 1 for tokens, 0 for padding.
    Mask,
    /// The segment of each token: 0, because there is one text.
    Types,
}

/// The tokens of a column of texts, each as long as its text.
#[derive(Debug)]
pub struct Tokens {
    name: String,
    place: String,
    /// Numbers of 4 bytes, one text after the other.
    ids: Bytes,
    lengths: Vec<u32>,
    largest: u32,
    /// The most tokens of a text.
    pub longest: usize,
    /// The fewest tokens of a text.
    pub shortest: usize,
    /// Texts that lost tokens.
    pub n_cut: usize,
}

impl TextColumn {
    /// Tokenises all texts; with a length, longer texts are cut.
    ///
    /// # Errors
    /// For cells that are empty, not UTF-8 or longer than 1 MiB, with their line; if the run is cancelled.
    pub fn tokenise(&self, tokenizer: &Tokenizer, length: Option<usize>, context: &Context) -> Result<Tokens> {
        let (place, inner) = (self.source.path().display().to_string(), tokenizer.cut(length)?);
        let (mut spool, mut lengths) = (Spool::default(), Vec::new());
        let (mut largest, mut longest, mut shortest, mut n_cut) = (0, 0, usize::MAX, 0);
        table::texts(self.source.path(), self.column, self.gzipped, |line, text| {
            if lengths.len() % ROWS == 0 && context.cancelled() {
                return Err(DataError::Cancelled { place: place.clone() });
            }
            let encoded = guarded(|| inner.encode_fast(text, true)).map_err(|reason| {
                let reason = format!("line {line}: {}: {reason}", tokenizer.place);
                DataError::Refused { place: place.clone(), reason }
            })?;
            let ids = encoded.get_ids();
            if ids.is_empty() {
                let reason = format!("line {line}: the text has no tokens");
                return Err(DataError::Refused { place: place.clone(), reason });
            }
            // The rest of a text that was cut.
            n_cut += usize::from(!encoded.get_overflowing().is_empty());
            (longest, shortest) = (longest.max(ids.len()), shortest.min(ids.len()));
            let too_long = |_| DataError::TooLarge { place: place.clone(), shape: vec![ids.len()] };
            lengths.push(u32::try_from(ids.len()).map_err(too_long)?);
            for &id in ids {
                largest = largest.max(id);
                spool.write_all(&id.to_le_bytes()).map_err(io_error(&place))?;
            }
            Ok(())
        })?;
        if lengths.is_empty() {
            return Err(DataError::Refused { place, reason: "there are no texts in it".to_owned() });
        }
        let (name, ids) = (self.source.name(), spool.finish(&place)?);
        Ok(Tokens { name, place: self.source.place(), ids, lengths, largest, longest, shortest, n_cut })
    }
}

impl Tokens {
    /// The number of texts.
    pub fn n_samples(&self) -> usize {
        self.lengths.len()
    }

    /// One part of the tokens as an array with rows of this length. Texts must not be longer. If the vocabulary has no
    /// padding token, padding is token 0, which only the mask tells apart.
    ///
    /// # Errors
    /// If a text is longer, or the array is too large.
    pub fn padded(&self, part: TokenPart, length: usize, tokenizer: &Tokenizer) -> Result<Dataset> {
        let place = &self.place;
        if self.longest > length {
            let (shape, reason) = (vec![self.longest], format!("texts are longer than {length} tokens"));
            return Err(DataError::Shape { place: place.clone(), shape, reason });
        }
        let padding = tokenizer.padding.unwrap_or(0);
        let dtype = match part {
            TokenPart::Ids if self.largest.max(padding) > u32::from(u16::MAX) => DType::U32,
            TokenPart::Ids => DType::U16,
            TokenPart::Mask | TokenPart::Types => DType::U8,
        };
        let layout = Layout { dtype, order: ByteOrder::Little, shape: vec![self.n_samples(), length], fortran: false };
        layout.n_bytes(place)?;
        let (mut spool, mut row, mut rest) = (Spool::default(), Vec::new(), self.ids.as_slice());
        for &count in &self.lengths {
            let (own, after) = rest.split_at(count as usize * size_of::<u32>());
            rest = after;
            let own = own.chunks_exact(size_of::<u32>()).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]));
            let pads = length - count as usize;
            let before = if tokenizer.pads_left { pads } else { 0 };
            let mut put = |id: u32, is_token: bool| match part {
                TokenPart::Ids => row.extend_from_slice(&id.to_le_bytes()[..dtype.size()]),
                TokenPart::Mask => row.push(u8::from(is_token)),
                TokenPart::Types => row.push(0),
            };
            (0..before).for_each(|_| put(padding, false));
            own.for_each(|id| put(id, true));
            (0..pads - before).for_each(|_| put(padding, false));
            spool.write_all(&row).map_err(io_error(place))?;
            row.clear();
        }
        let stored = Stored::new(place, layout, spool.finish(place)?)?;
        Ok(Dataset::from_stored(place, Format::Text, stored).with_name(&self.name))
    }
}
