//! Errors of stores.

use std::io;
use std::path::Path;

/// The result type of stores.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An error of a store. It names the store, array, tile and file concerned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system reported an error.
    #[error("{place}: {source}")]
    Io {
        /// The file or folder.
        place: String,
        /// The system's error.
        source: io::Error,
    },
    /// The path of the new store already exists.
    #[error("{place} exists already")]
    Exists {
        /// The store.
        place: String,
    },
    /// This is not a store, or its description is damaged.
    #[error("{place}: not a readable store: {reason}")]
    Malformed {
        /// The file or folder.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The store was made from other inputs.
    #[error("{place} was made from other inputs:{}", listed(.differences))]
    OtherInputs {
        /// The store.
        place: String,
        /// Every fact that differs.
        differences: Vec<Difference>,
    },
    /// The requested layout is impossible.
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
        /// The requested name.
        name: String,
        /// The existing names.
        available: Vec<String>,
    },
    /// The store has no such tile.
    #[error("{place}: tile {tile} asked for, but there are {n_tiles} tiles")]
    UnknownTile {
        /// The store.
        place: String,
        /// The requested tile.
        tile: usize,
        /// The number of tiles.
        n_tiles: usize,
    },
    /// The data to write do not fit the store.
    #[error("{place}: tile {tile} cannot be written: {reason}")]
    Misfit {
        /// The store.
        place: String,
        /// The tile.
        tile: usize,
        /// What does not fit.
        reason: String,
    },
    /// The requested type is narrower than the stored one.
    #[error("{place} holds {stored}, which {asked} cannot hold")]
    Narrower {
        /// The store.
        place: String,
        /// The type in the store.
        stored: String,
        /// The requested type.
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
    /// A damaged tile.
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
    /// The folder of a store to remove contains a foreign file.
    #[error("{file} is no part of the store and would be removed with it")]
    Foreign {
        /// What it is.
        file: String,
    },
    /// Tiles that were written have disappeared.
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
    /// Another store has taken the place of this one while it was written.
    #[error("{place} was replaced by a store of other inputs while this run wrote into it; nothing more is written")]
    Replaced {
        /// The store.
        place: String,
    },
    /// The whole matrix was requested before it is complete.
    #[error("{place} is not complete: {done} of {n_tiles} tiles are there")]
    Incomplete {
        /// The store.
        place: String,
        /// The number of completed tiles.
        done: usize,
        /// All tiles.
        n_tiles: usize,
    },
    /// There is not enough memory for the request.
    #[error("{place}: no memory for {bytes} bytes")]
    Memory {
        /// The store.
        place: String,
        /// The requested bytes.
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
    /// The value in the store, as JSON.
    pub stored: Option<String>,
    /// The value in the run.
    pub given: Option<String>,
}

fn listed(differences: &[Difference]) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let line = |fact: &Difference| {
        format!("\n  {}: the store has {}, this run {}", fact.name, shown(&fact.stored), shown(&fact.given))
    };
    differences.iter().map(line).collect()
}

/// Converts an [`io::Error`] by adding its file.
pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let place = path.display().to_string();
    move |source| StoreError::Io { place, source }
}

impl From<mercer_run::Cancelled> for StoreError {
    fn from(_: mercer_run::Cancelled) -> Self {
        Self::Cancelled
    }
}
