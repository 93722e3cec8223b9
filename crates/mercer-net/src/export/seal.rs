//! The header entry of our safetensors files: the kind of the file, and a digest that detects changes.
//!
//! The header has a single entry, because entries are unordered and files must be reproducible to the bit. The entry
//! holds the SHA-256 digest of the names, types, shapes and bytes of all tensors. For a state it also holds a header
//! that the digest covers; for other files the digest covers the kind. Damage anywhere is refused: damaged weights are
//! never used, and a run never continues as another one.

use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

/// The entry of the header.
pub(super) const ENTRY: &str = "mercer";

/// The kind of files that hold the weights of a network.
pub const WEIGHTS: &str = "weights";

/// The header entry of states written by earlier versions, which were not sealed.
const EARLIER: [(&str, &str); 2] = [("mercer-training", TRAINING), ("mercer-eigenfunctions", EIGENFUNCTIONS)];

/// The kind of files from which a training run resumes.
pub const TRAINING: &str = "the state of a training run";

/// The kind of files from which a run that learns eigenfunctions resumes.
pub const EIGENFUNCTIONS: &str = "the state of a run that learns eigenfunctions";

/// The longest header that [`kind`] reads.
const MOST_BYTES: u64 = 64 << 20;

/// The entry as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    pub(super) kind: String,
    /// Missing only in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    /// Further information as text. The digest covers the text byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) header: Option<String>,
}

/// The part of a safetensors header that is not about tensors.
#[derive(Deserialize)]
struct Header {
    #[serde(rename = "__metadata__", default)]
    entries: HashMap<String, String>,
}

impl Note {
    /// Reads the first bytes of a file; `None` if the file is not ours.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, String> {
        let length = bytes.first_chunk().map(|length| u64::from_le_bytes(*length));
        let header = length.and_then(|length| bytes[8..].get(..usize::try_from(length).ok()?));
        let header: Header =
            serde_json::from_slice(header.ok_or("it is truncated")?).map_err(|error| error.to_string())?;
        let entries = header.entries;
        let Some(text) = entries.get(ENTRY) else {
            // Our entry under a different name.
            if entries.values().any(|text| serde_json::from_str::<Self>(text).is_ok_and(|note| note.digest.is_some())) {
                return Err(format!("its note is not called {ENTRY:?}"));
            }
            let earlier = EARLIER.iter().find(|(name, _)| entries.contains_key(*name));
            return Ok(earlier.map(|(_, kind)| Self { kind: (*kind).to_owned(), digest: None, header: None }));
        };
        serde_json::from_str(text).map(Some).map_err(|error| error.to_string())
    }
}

/// The kind of one of our files; `None` if the file is not ours or cannot be read. Reads only the header.
pub fn kind(path: &Path) -> Option<String> {
    std::fs::metadata(path).ok().filter(|found| found.is_file())?;
    let mut file = std::fs::File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let mut bytes = length.to_vec();
    file.take(u64::from_le_bytes(length).min(MOST_BYTES)).read_to_end(&mut bytes).ok()?;
    Note::read(&bytes).ok().flatten().map(|note| note.kind)
}

/// The digest of a header and tensors, in any order.
pub(super) fn digest(header: &str, tensors: &[(&str, TensorView<'_>)]) -> String {
    let mut ordered: Vec<_> = tensors.iter().collect();
    ordered.sort_by_key(|(name, _)| *name);
    let mut digest = Sha256::new();
    let mut part = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    part(header.as_bytes());
    for (name, view) in ordered {
        part(name.as_bytes());
        part(format!("{:?} {:?}", view.dtype(), view.shape()).as_bytes());
        part(view.data());
    }
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether an ONNX file was written by this library. Reads only the first bytes.
pub fn is_own_onnx(path: &Path) -> bool {
    // The version of the format, and the name of the producer.
    let mut first = [0; 10];
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let read = is_file && std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok();
    read && first[0] == 0x08 && first[2..] == *b"\x12\x06mercer"
}
