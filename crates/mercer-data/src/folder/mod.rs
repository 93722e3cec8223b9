//! The format of everything that Mercer saves: a folder that is movable, checked, atomic and versioned.
//!
//! ```text
//! DIR/folder.json        the manifest: what this is, its content, and the digest of every file, sealed by a digest of itself
//! DIR/objects/<digest>   the parts of what was saved, each under its own digest: equal parts are there once
//! DIR/psi.npy, …         files with names, for people and other programs; the manifest lists them
//! ```
//!
//! Digests are SHA-256. XXH3, which fingerprints use, is faster, but a part is found by its digest, so two different
//! parts must never collide, not even on purpose. Processors compute SHA-256 faster than disks write, and anyone can
//! check a folder with `sha256sum`. A reader returns only data that matched its digest.
//!
//! A writer puts everything into a *stage*, a folder `.mercer-….part` within the folder, which holds a lock for as long
//! as its process lives. Once all parts are flushed, the manifest is written there. From this moment on, the new folder
//! is committed. Then
//!
//! 1. the old manifest moves into the stage: readers no longer see the old folder as complete,
//! 2. objects and files move to their places, replacing old ones,
//! 3. the new manifest moves to its place,
//! 4. everything that only the old manifest listed is removed, and finally the stage.
//!
//! A process that finds the stage of a dead process does the remaining steps, or removes the stage if its manifest is
//! incomplete. So a process may be killed at any point: the folder is then the old one, the new one or, if there was
//! none before, absent.

mod bytes;
mod digest;
mod manifest;
mod reader;
mod samples;
mod stage;
#[cfg(test)]
mod tests;
mod writer;

pub use digest::{FileEntry, digest};
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

/// The kind of a saved folder, such as a machine, and the version of its format.
///
/// A reader opens all versions up to its own, forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderKind {
    /// What it is, such as `machine`.
    pub name: &'static str,
    /// The version that is written, and the newest that can be read; at least 1.
    pub version: u32,
}
