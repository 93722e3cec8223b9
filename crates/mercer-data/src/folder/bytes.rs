//! A folder as bytes: a magic, the length of the manifest, the manifest, and the blobs in the order of their digests.
//!
//! Named files are blobs, like objects.

use std::collections::BTreeMap;

use serde::Serialize;

use super::FolderKind;
use super::digest::FileEntry;
use super::manifest::{MOST_BYTES, Manifest, malformed};
use super::reader::{Backing, Folder};
use super::writer::{FolderWriter, check_length};
use crate::error::{DataError, Result};

const MAGIC: &[u8; 8] = b"\x93mercer\x01";

/// Its name in errors.
const PLACE: &str = "a folder in memory";

/// Blobs that lie one after the other.
#[derive(Debug)]
pub(super) struct Blobs {
    bytes: Vec<u8>,
    /// Where each begins.
    starts: BTreeMap<String, usize>,
}

impl Blobs {
    pub(super) fn get(&self, entry: &FileEntry) -> Option<&[u8]> {
        let start = *self.starts.get(&entry.digest)?;
        self.bytes[start..].get(..usize::try_from(entry.bytes).ok()?)
    }
}

impl FolderWriter {
    /// The folder as bytes, if it was created [in memory](Self::in_memory).
    ///
    /// # Errors
    /// For a folder on disk, and for content that cannot be written.
    pub fn into_bytes(self, content: &impl Serialize) -> Result<Vec<u8>> {
        let ledger = self.into_ledger(content)?;
        let text = ledger.manifest.sealed(PLACE)?;
        check_length(PLACE, &text)?;
        let mut bytes = [MAGIC.as_slice(), &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
        for digest in blobs(&ledger.manifest).keys() {
            let blob = ledger.blobs.get(*digest).ok_or_else(|| malformed(PLACE, "it was created on disk"))?;
            bytes.extend_from_slice(blob);
        }
        Ok(bytes)
    }
}

impl Folder {
    /// The folder as bytes, without its named files: they are for people and other programs, and what was saved does
    /// not need them.
    ///
    /// # Errors
    /// [`DataError::Damaged`] if an object was changed.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut manifest = self.manifest.clone();
        manifest.files.clear();
        let text = manifest.sealed(PLACE)?;
        check_length(PLACE, &text)?;
        let mut bytes = [MAGIC.as_slice(), &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
        let names: BTreeMap<&str, &str> =
            self.object_entries().map(|(name, entry)| (entry.digest.as_str(), name)).collect();
        for name in names.values() {
            bytes.extend_from_slice(&self.object(name)?);
        }
        Ok(bytes)
    }

    /// Opens a folder from bytes.
    ///
    /// # Errors
    /// As [`open`](Self::open). All bytes are checked when they are read, like those of files.
    pub fn from_bytes(bytes: Vec<u8>, kind: Option<FolderKind>) -> Result<Self> {
        let damaged = |reason: &str| DataError::Damaged { place: PLACE.to_owned(), reason: reason.to_owned() };
        let rest =
            bytes.strip_prefix(MAGIC).ok_or_else(|| malformed(PLACE, "it does not begin with the magic bytes"))?;
        let (length, rest) = rest.split_first_chunk().ok_or_else(|| damaged("it is truncated"))?;
        let length = usize::try_from(u64::from_le_bytes(*length).min(MOST_BYTES)).unwrap_or(usize::MAX);
        let text = rest.get(..length).ok_or_else(|| damaged("it is truncated"))?;
        let manifest = Manifest::parse(PLACE, text)?;
        let mut start = MAGIC.len() + 8 + length;
        let mut starts = BTreeMap::new();
        for (digest, length) in blobs(&manifest) {
            starts.insert(digest.to_owned(), start);
            let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
            start = end.filter(|&end| end <= bytes.len()).ok_or_else(|| damaged("it is truncated"))?;
        }
        if start != bytes.len() {
            return Err(damaged("it is longer than its parts"));
        }
        Self::new(PLACE.to_owned(), manifest, Backing::Memory(Blobs { bytes, starts }), kind)
    }
}

/// All blobs, each once, in the order of their digests.
fn blobs(manifest: &Manifest) -> BTreeMap<&str, u64> {
    let files = manifest.files.values().map(|entry| (entry.digest.as_str(), entry.bytes));
    manifest.digests().into_iter().chain(files).collect()
}
