//! Digests: SHA-256, as 64 hexadecimal digits.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files::open_regular;

/// The length of a digest as text.
pub(super) const DIGITS: usize = 64;

/// The manifest entry of a file: its digest and length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The SHA-256 digest of its bytes, as 64 hexadecimal digits.
    pub digest: String,
    /// Its length.
    pub bytes: u64,
}

/// A digest under construction.
#[derive(Default)]
pub(crate) struct Digester {
    hash: Sha256,
    bytes: u64,
}

impl Digester {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(crate) fn finish(self) -> FileEntry {
        let digest = self.hash.finalize().iter().fold(String::with_capacity(DIGITS), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        FileEntry { digest, bytes: self.bytes }
    }
}

/// The digest of bytes in memory.
pub fn digest(bytes: &[u8]) -> String {
    let mut digester = Digester::default();
    digester.update(bytes);
    digester.finish().digest
}

/// The digest and the length of a file.
pub(super) fn entry_of(path: &Path) -> io::Result<FileEntry> {
    let (mut file, _) = open_regular(path)?;
    let mut digester = Digester::default();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(digester.finish()),
            read => digester.update(&block[..read]),
        }
    }
}

pub(super) fn is_digest(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f'))
}
