//! Texts as the inputs of a network that takes tokens, and the shape of images.

use super::assign::{Bound, split};
use super::{DataRef, Opening};
use crate::Error;
use crate::text::count;
use mercer_data::{
    Columns, Dataset, ImageFolder, ImageWish, Reading, Source, TextColumn, TokenPart, Tokenizer, Tokens, Used,
    open_text,
};
use mercer_net::Network;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Lengths of tokens that are not given are rounded up to a multiple of this.
const ROUNDED: usize = 8;

/// How texts and images become numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecodingSpec {
    /// The `tokenizer.json` for a column of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<PathBuf>,
    /// Tokens per text: longer ones are cut, shorter ones padded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    /// Height and width of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<[usize; 2]>,
}

impl DecodingSpec {
    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses texts where there is no network to take their tokens.
    pub(super) fn check_without_network(&self) -> Result<(), Error> {
        match self.tokenizer.is_some() || self.max_tokens.is_some() {
            true => {
                Err(Error::new("‹tokenizer› and ‹max-tokens› are for a network that takes tokens, and there is none"))
            }
            false => Ok(()),
        }
    }

    /// Opens a folder of images, in the shape of earlier ones or with the channels of the network.
    pub(super) fn images(
        &self,
        source: &Source,
        channels: Option<usize>,
        like: Option<&Columns>,
        opening: Opening<'_>,
    ) -> Result<(Dataset, Columns), Error> {
        let folder = ImageFolder::list(source.path())?;
        folder.note().iter().for_each(|note| opening.context.note(note));
        let mut wish = ImageWish { channels, size: self.resize };
        let mut resized = self.resize.is_some();
        if let Some(Reading::Pixels { shape, resized: earlier }) = like.and_then(|like| like.reading.as_ref()) {
            wish.channels = Some(shape.channels);
            if *earlier && wish.size.is_none() {
                (wish.size, resized) = (Some([shape.height, shape.width]), true);
            }
        }
        let (set, shape) = folder.open(wish, opening.context)?;
        Ok((set, Columns::of_reading(Reading::Pixels { shape, resized })))
    }
}

/// The inputs of a network that hold the parts of a text: its tokens, which of them are padding, its segments.
fn parts(names: &[&str]) -> Vec<Option<TokenPart>> {
    let part = |name: &&str| {
        let name = name.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        match () {
            () if has(&["mask"]) => Some(TokenPart::Mask),
            () if has(&["type", "segment"]) => Some(TokenPart::Types),
            () if has(&["position"]) => None,
            () if has(&["id", "token", "text"]) || names.len() == 1 => Some(TokenPart::Ids),
            () => None,
        }
    };
    let found: Vec<Option<TokenPart>> = names.iter().map(part).collect();
    // Only one input holds the tokens.
    let first = found.iter().position(|part| *part == Some(TokenPart::Ids));
    let keep =
        |(at, part): (usize, Option<TokenPart>)| part.filter(|part| *part != TokenPart::Ids || Some(at) == first);
    found.into_iter().enumerate().map(keep).collect()
}

/// Data for the inputs of a network, and the sources that are left for the others.
pub(super) struct Texts {
    pub(super) bound: Vec<Option<Bound>>,
    pub(super) left: Vec<DataRef>,
}

/// Reads the source that is a text, if there is one: with a tokenizer from the user, or with that of earlier texts.
pub(super) fn texts(
    (setting, data): (&str, &[DataRef]),
    decoding: &DecodingSpec,
    network: &Network,
    (used, like): (&[Used], &[Option<Columns>]),
    opening: Opening<'_>,
) -> Result<Option<Texts>, Error> {
    let names: Vec<&str> = network.inputs().iter().map(|input| input.name.as_str()).collect();
    let parts = parts(&names);
    let ids = parts.iter().position(|part| *part == Some(TokenPart::Ids));
    let known = ids.and_then(|ids| like.get(ids)?.as_ref());
    let stored = known.and_then(|known| match &known.reading {
        Some(Reading::Tokens { length, tokenizer: Some(json) }) => Some((*length, json)),
        _ => None,
    });
    if decoding.tokenizer.is_none() && stored.is_none() {
        return match decoding.max_tokens {
            Some(_) => Err(Error::new("‹max-tokens› is the length of texts, and they need ‹tokenizer›")),
            None => match ids.and_then(|_| data.iter().find(|one| is_text(one))) {
                Some(text) => {
                    Err(Error::new(format!("‹{setting}› {text}: these are texts, and the network takes tokens"))
                        .hint("‹tokenizer› FILE.json, the tokenizer that the network was trained with"))
                }
                None => Ok(None),
            },
        };
    }
    let Some(ids) = ids else {
        let text = format!("‹tokenizer›: no input of the network takes tokens; they are {}", names.join(", "));
        return Err(Error::new(text).hint("name them input_ids, attention_mask and token_type_ids"));
    };
    let mut left = data.to_vec();
    let mut found = None;
    for (at, one) in data.iter().enumerate() {
        let DataRef::File(text) = one else { continue };
        let (name, source) = split(&format!("‹{setting}›"), &names, text)?;
        let is_ids = name.is_none_or(|name| name == names[ids] || !names.contains(&name.as_str()));
        if is_ids && (decoding.tokenizer.is_some() || source.is_table()) {
            found = Some(source);
            left.remove(at);
            break;
        }
    }
    let Some(source) = found else {
        // Tokens that were made elsewhere.
        return match decoding.tokenizer {
            Some(_) => Err(Error::new(format!("‹tokenizer›: ‹{setting}› names no text for the input {}", names[ids]))
                .hint(format!("‹{setting}› FILE.csv:COLUMN"))),
            None => Ok(None),
        };
    };
    let tokenizer = match (&decoding.tokenizer, stored) {
        (Some(path), _) => Tokenizer::open(path)?,
        (None, Some((_, json))) => Tokenizer::from_json("the saved tokenizer", json.clone())?,
        (None, None) => return Ok(None),
    };
    let earlier = stored.filter(|(_, json)| json.as_str() == tokenizer.json()).map(|(length, _)| length);
    if stored.is_some() && earlier.is_none() {
        opening.context.note("‹tokenizer› replaces the tokenizer that was saved with the network or folder");
    }
    let column = open_text(&source, used, known)?;
    let reader = Reader { column, tokenizer, parts, network, opening };
    let (tokens, length) = reader.read(decoding.max_tokens.or(earlier), decoding.max_tokens.is_some())?;
    Ok(Some(Texts { bound: reader.bound(&tokens, length)?, left }))
}

/// Whether a source without the name of an input holds texts. A chosen column does, even if others are numbers.
fn is_text(data: &DataRef) -> bool {
    let DataRef::File(text) = data else { return false };
    text.parse::<Source>().is_ok_and(|source| source.key().is_some() && !source.path().is_dir() && source.is_text())
}

/// A text on its way into a network.
struct Reader<'a> {
    column: TextColumn,
    tokenizer: Tokenizer,
    /// Of every input of the network.
    parts: Vec<Option<TokenPart>>,
    network: &'a Network,
    opening: Opening<'a>,
}

impl Reader<'_> {
    /// The tokens, and the length that all samples get.
    fn read(&self, wanted: Option<usize>, is_asked: bool) -> Result<(Tokens, usize), Error> {
        let declared = self.declared();
        if let (Some(wanted), Some(declared), true) = (wanted, declared, is_asked)
            && wanted != declared
        {
            let text = format!("‹max-tokens› {wanted}: the network is made for texts of {declared} tokens");
            return Err(Error::new(text).hint(format!("‹max-tokens› {declared}, or leave it out")));
        }
        let wanted = declared.or(wanted);
        let context = self.opening.context;
        let mut tokens = self.column.tokenise(&self.tokenizer, wanted, context)?;
        let length = match wanted {
            Some(wanted) => {
                self.fits(wanted).map_err(|error| self.too_long(wanted, &error))?;
                wanted
            }
            None => {
                let rounded = tokens.longest.next_multiple_of(ROUNDED);
                match self.fits(rounded) {
                    Ok(()) => rounded,
                    Err(error) => self.most(rounded).ok_or(error)?,
                }
            }
        };
        if tokens.longest > length {
            tokens = self.column.tokenise(&self.tokenizer, Some(length), context)?;
        }
        if tokens.n_cut > 0 {
            let (cut, all) = (tokens.n_cut, count(tokens.n_samples(), "text"));
            context.note(&format!("{cut} of {all} had more than {length} tokens and were cut"));
        }
        Ok((tokens, length))
    }

    /// The length that the network's file prescribes.
    fn declared(&self) -> Option<usize> {
        let texts = self.network.inputs().iter().zip(&self.parts).filter(|(_, part)| part.is_some());
        texts.filter_map(|(input, _)| input.sample()).find_map(|sample| match sample[..] {
            [length] => length,
            _ => None,
        })
    }

    /// Whether the network takes texts of this length. With other inputs beside the text, nobody knows yet.
    fn fits(&self, length: usize) -> Result<(), Error> {
        if self.parts.iter().any(Option::is_none) {
            return Ok(());
        }
        let shapes = vec![vec![length]; self.parts.len()];
        self.network.graph(&shapes).map(|_| ()).map_err(Error::from)
    }

    /// The longest texts below this length that the network takes.
    fn most(&self, beyond: usize) -> Option<usize> {
        let (mut low, mut high) = (0, beyond);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.fits(middle) {
                Ok(()) => low = middle,
                Err(_) => high = middle,
            }
        }
        (low > 0).then_some(low)
    }

    fn too_long(&self, length: usize, error: &Error) -> Error {
        let text = format!("the network does not take texts of {length} tokens: {}", error.message());
        let most = self.most(length).map(|most| format!("‹max-tokens› {most}"));
        most.into_iter().fold(Error::with_code("shape", text), |error, hint| error.hint(hint))
    }

    /// The parts of the tokens for the inputs of the network.
    fn bound(&self, tokens: &Tokens, length: usize) -> Result<Vec<Option<Bound>>, Error> {
        if !self.tokenizer.has_padding() && tokens.shortest < length {
            let place = self.tokenizer.place();
            if !self.parts.contains(&Some(TokenPart::Mask)) {
                let text = format!("{place} has no padding token, and the network has no input for an attention mask");
                return Err(Error::new(text).hint("add [PAD] to the vocabulary, or use texts of equal length"));
            }
            self.opening.context.note(&format!("{place} has no padding token; token 0 is used, and masked"));
        }
        let mut bound = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            bound.push(match part {
                None => None,
                Some(part) => {
                    let set = tokens.padded(*part, length, &self.tokenizer)?;
                    let json = (*part == TokenPart::Ids).then(|| self.tokenizer.json().to_owned());
                    let reading = Some(Reading::Tokens { length, tokenizer: json });
                    Some(Bound::Decoded(Box::new((set, Columns { reading, ..self.column.columns.clone() }))))
                }
            });
        }
        Ok(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_told_by_their_names() {
        use TokenPart::{Ids, Mask, Types};
        assert_eq!(parts(&["input_ids", "attention_mask"]), [Some(Ids), Some(Mask)]);
        assert_eq!(parts(&["segment_ids", "input_mask", "input_ids"]), [Some(Types), Some(Mask), Some(Ids)]);
        assert_eq!(parts(&["x"]), [Some(Ids)]);
        assert_eq!(parts(&["x", "y"]), [None, None]);
        assert_eq!(parts(&["input_ids", "position_ids", "extra_ids"]), [Some(Ids), None, None]);
    }
}
