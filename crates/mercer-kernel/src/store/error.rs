//! What can go wrong with a store.

use std::io;
use std::path::Path;

/// The result of everything that reads or writes a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An error about a store. It names the store, and the array, tile and file it speaks of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused to read or write.
    #[error("{place}: {source}")]
    Io {
        /// The file or folder.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is something at the place of the new store.
    #[error("{place} exists already")]
    Exists {
        /// The store.
        place: String,
    },
    /// This is no store, or its description is damaged.
    #[error("{place}: not a readable store: {reason}")]
    Malformed {
        /// The file or folder.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The store was made from something else.
    #[error("{place} was made from other inputs:{}", listed(.differences))]
    OtherInputs {
        /// The store.
        place: String,
        /// Every fact that differs.
        differences: Vec<Difference>,
    },
    /// The layout asked for is impossible.
    #[error("a store cannot have this layout: {reason}")]
    Layout {
        /// Why.
        reason: String,
    },
    /// The store has no such array.
    #[error("{place}: no array {name:?} in it; it holds {available:?}")]
    UnknownArray {
        /// The store.
        place: String,
        /// The name asked for.
        name: String,
        /// The names there are.
        available: Vec<String>,
    },
    /// The store has no such tile.
    #[error("{place}: tile {tile} asked for, but there are {n_tiles} tiles")]
    UnknownTile {
        /// The store.
        place: String,
        /// The tile asked for.
        tile: usize,
        /// How many there are.
        n_tiles: usize,
    },
    /// What is to be written does not fit the store.
    #[error("{place}: tile {tile} cannot be written: {reason}")]
    Misfit {
        /// The store.
        place: String,
        /// The tile.
        tile: usize,
        /// What does not fit.
        reason: String,
    },
    /// The numbers are asked for in a narrower type than they are stored in.
    #[error("{place} holds {stored}, which {asked} cannot hold")]
    Narrower {
        /// The store.
        place: String,
        /// The type in the store.
        stored: String,
        /// The type asked for.
        asked: String,
    },
    /// A tile that has not been computed yet.
    #[error("{place}: tile {tile} of array {array:?} has not been written yet")]
    Missing {
        /// The store.
        place: String,
        /// The array.
        array: String,
        /// The tile.
        tile: usize,
    },
    /// A tile that is not what was written.
    #[error("tile {tile} of array {array:?} is damaged: {file}: {why}")]
    Damaged {
        /// The array.
        array: String,
        /// The tile.
        tile: usize,
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something lies in the folder of a store that is to be removed.
    #[error("{file} is no part of the store and would be removed with it")]
    Foreign {
        /// What it is.
        file: String,
    },
    /// Tiles that were written are not there any more.
    #[error(
        "{place}: {count} of the tiles that were written are not there any more, tile {first} first: somebody removed them"
    )]
    Vanished {
        /// The store.
        place: String,
        /// How many.
        count: usize,
        /// The first of them.
        first: usize,
    },
    /// The matrix is asked for as a whole before it is.
    #[error("{place} is not complete: {done} of {n_tiles} tiles are there")]
    Incomplete {
        /// The store.
        place: String,
        /// The tiles there are.
        done: usize,
        /// All tiles.
        n_tiles: usize,
    },
    /// There is not enough memory for what is asked for.
    #[error("{place}: no memory for {bytes} bytes")]
    Memory {
        /// The store.
        place: String,
        /// The bytes asked for.
        bytes: usize,
    },
    /// The matrix could not be written as an array file.
    #[error(transparent)]
    Data(#[from] mercer_data::DataError),
    /// The caller asked to stop.
    #[error("interrupted")]
    Cancelled,
}

/// A fact that differs between a store and a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its name; parts of structured facts are joined by dots.
    pub name: String,
    /// What the store has, as JSON.
    pub stored: Option<String>,
    /// What the run has.
    pub given: Option<String>,
}

fn listed(differences: &[Difference]) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let line = |fact: &Difference| {
        format!("\n  {}: the store has {}, this run {}", fact.name, shown(&fact.stored), shown(&fact.given))
    };
    differences.iter().map(line).collect()
}

/// Turns an [`io::Error`] into ours by adding the file it speaks of.
pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let place = path.display().to_string();
    move |source| StoreError::Io { place, source }
}

impl From<mercer_run::Cancelled> for StoreError {
    fn from(_: mercer_run::Cancelled) -> Self {
        Self::Cancelled
    }
}
