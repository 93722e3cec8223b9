//! The manifest of a folder, and its seal.
//!
//! The first line is `{ "digest": "…",` and holds the digest of everything after it, byte for byte. The whole file is
//! JSON. The form of this line never changes, so that damage can be distinguished from a newer version.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::{DIGITS, FileEntry, digest, is_digest};
use super::{FolderKind, MANIFEST};
use crate::error::{DataError, Result, io_error};
use crate::files::read_regular;

const FORMAT: &str = "mercer folder";
const VERSION: u32 = 1;

/// Large things are objects, so a longer file is not a manifest.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// Longer than any name needs to be, and shorter than file systems allow.
const LONGEST_NAME: usize = 200;

const OPENING: &str = "{ \"digest\": \"";
const CLOSING: &str = "\",\n";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: String,
    version: u32,
    pub(super) kind: String,
    pub(super) kind_version: u32,
    /// The version of the program that wrote it.
    pub(super) mercer: String,
    pub(super) content: Value,
    pub(super) objects: BTreeMap<String, FileEntry>,
    pub(super) files: BTreeMap<String, FileEntry>,
}

impl Manifest {
    pub(super) fn new(kind: FolderKind) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            kind: kind.name.to_owned(),
            kind_version: kind.version,
            mercer: env!("CARGO_PKG_VERSION").to_owned(),
            content: Value::Null,
            objects: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    /// The text of the file.
    pub(super) fn sealed(&self, place: &str) -> Result<String> {
        let failed = |error: serde_json::Error| malformed(place, error);
        let text = serde_json::to_string_pretty(self).map_err(failed)?;
        // Replace the first line by the seal.
        let body = format!("{}\n", text.strip_prefix("{\n").unwrap_or(&text));
        Ok(format!("{OPENING}{}{CLOSING}{body}", digest(body.as_bytes())))
    }

    /// Reads and checks the manifest of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let place = path.display().to_string();
        Self::parse(&place, &read_regular(&path, MOST_BYTES).map_err(io_error(&place))?)
    }

    /// Checks the seal before anything else.
    pub(super) fn parse(place: &str, bytes: &[u8]) -> Result<Self> {
        let damaged = |reason: &str| DataError::Damaged { place: place.to_owned(), reason: reason.to_owned() };
        let Some(body) = unsealed(bytes) else {
            // A file of the same name from another program is not a damaged manifest.
            let is_ours = bytes.windows(FORMAT.len()).any(|letters| letters == FORMAT.as_bytes());
            let reason = "it does not begin with the digest of a mercer folder";
            return Err(if is_ours { damaged(reason) } else { malformed(place, reason) });
        };
        let (sealed, body) = body;
        if digest(body) != sealed {
            return Err(damaged("its digest does not match its content"));
        }
        Self::interpret(place, body)
    }

    fn interpret(place: &str, body: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Header {
            format: String,
            version: u32,
        }
        let text = [b"{", body].concat();
        let header: Header = serde_json::from_slice(&text).map_err(|error| malformed(place, error))?;
        if header.format != FORMAT {
            return Err(malformed(place, format!("this is a {}, not a {FORMAT}", header.format)));
        }
        check_version(place, header.version, VERSION)?;
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| malformed(place, error))?;
        let entries = manifest.objects.iter().map(|entry| (false, entry));
        for (is_file, (name, entry)) in entries.chain(manifest.files.iter().map(|entry| (true, entry))) {
            check_name(name, is_file)?;
            if !is_digest(&entry.digest) {
                return Err(malformed(place, format!("the digest of `{name}` is malformed")));
            }
        }
        Ok(manifest)
    }

    /// The manifest of a folder that is to be replaced. Its seal may be broken, but it must be ours.
    pub(super) fn ours(folder: &Path) -> Option<Self> {
        Self::ours_at(&folder.join(MANIFEST))
    }

    pub(super) fn ours_at(path: &Path) -> Option<Self> {
        let bytes = read_regular(path, MOST_BYTES).ok()?;
        Self::interpret("", unsealed(&bytes)?.1).ok()
    }

    /// The digests of all objects, each once.
    pub(super) fn digests(&self) -> BTreeMap<&str, u64> {
        self.objects.values().map(|entry| (entry.digest.as_str(), entry.bytes)).collect()
    }
}

/// The digest in the first line, and everything after it.
fn unsealed(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (sealed, rest) = bytes.strip_prefix(OPENING.as_bytes())?.split_at_checked(DIGITS)?;
    let sealed = str::from_utf8(sealed).ok().filter(|text| is_digest(text))?;
    Some((sealed, rest.strip_prefix(CLOSING.as_bytes())?))
}

pub(super) fn malformed(place: &str, reason: impl ToString) -> DataError {
    DataError::Malformed { place: place.to_owned(), format: FORMAT, reason: reason.to_string() }
}

/// Refuses a version newer than this program's. The error gives both numbers.
pub(super) fn check_version(place: &str, found: u32, known: u32) -> Result<()> {
    if found == 0 {
        return Err(malformed(place, "its version is 0"));
    }
    if found > known {
        return Err(DataError::Version { place: place.to_owned(), found, known });
    }
    Ok(())
}

/// Names consist of letters, digits, `.`, `-` and `_`, and begin with a letter or digit, so they can neither leave the
/// folder nor be hidden. A file may not use a reserved name of the format.
pub(super) fn check_name(name: &str, is_file: bool) -> Result<()> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    let is_taken = is_file && (name.eq_ignore_ascii_case(MANIFEST) || name.eq_ignore_ascii_case(super::OBJECTS));
    if name.len() > LONGEST_NAME || !name.chars().all(plain) || !begins || is_taken {
        let reason = format!("`{}` cannot be the name of a part of a folder", name.escape_debug());
        return Err(malformed(MANIFEST, reason));
    }
    Ok(())
}
