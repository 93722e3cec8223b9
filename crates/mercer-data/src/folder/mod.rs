//! The one format of everything that Mercer saves: a folder that is movable, checked, whole or absent, and versioned.
//!
//! ```text
//! DIR/folder.json        the manifest: what this is, its content, and the digest of every file, sealed by a digest of itself
//! DIR/objects/<digest>   the parts of what was saved, each under its own digest: equal parts are there once
//! DIR/psi.npy, …         files with names, for people and other programs; the manifest lists them
//! ```
//!
//! Digests are SHA-256. XXH3, which fingerprints use, is faster still, but a part is found by its digest, and there two different
//! parts must never meet, not even if somebody wants them to; processors compute SHA-256 faster than disks write; and anybody can
//! check a folder with `sha256sum`. What a reader hands out was compared with its digest before.
//!
//! A writer puts everything into a *stage*, a folder `.mercer-….part` within the folder, which holds a lock for as long as its
//! process lives. Once all parts are flushed the manifest is written there: from this moment on the new folder is committed. Then
//!
//! 1. the old manifest moves into the stage: what it listed is no longer whole to anybody,
//! 2. objects and files move to their places, replacing old ones,
//! 3. the new manifest moves to its place,
//! 4. what the old manifest listed and the new one does not is removed, and at last the stage.
//!
//! Whoever finds a stage whose process is dead does the steps that are left, or removes it if its manifest was not complete. So a
//! process may end anywhere: the folder is what it was before, or the new one, or, where there was none before, absent.

mod bytes;
mod digest;
mod manifest;
mod reader;
mod samples;
mod stage;
#[cfg(test)]
mod tests;
mod writer;

pub use digest::{Entry, digest};
pub use reader::{Blob, Folder, Part, check_listed};
pub use samples::SavedSamples;
pub use stage::{holds, prepare, release, remove, sweep};
pub use writer::{FolderWriter, PartWriter};

pub(crate) use digest::Digester;
pub(crate) use writer::Staged;

/// The name of the manifest.
pub const MANIFEST: &str = "folder.json";

/// The name of the folder of objects.
const OBJECTS: &str = "objects";

/// What is saved in a folder, such as a machine, and the version of how.
///
/// A reader opens all versions up to its own, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderKind {
    /// What it is, such as `machine`.
    pub name: &'static str,
    /// The version that is written, and the newest that is read; at least 1.
    pub version: u32,
}
