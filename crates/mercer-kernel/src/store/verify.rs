//! Verifies a store.

use super::error::{Result, StoreError};
use super::{Store, Tiles, chunk};
use mercer_run::Context;
use rayon::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The result of verifying a store.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// All tiles.
    pub n_tiles: usize,
    /// The existing tiles, damaged or not.
    pub done: usize,
    /// The missing tiles.
    pub missing: Tiles,
    /// The damage, tile by tile.
    pub damaged: Vec<Damage>,
    /// The bytes of the existing tiles in all arrays.
    pub bytes: u64,
    /// Whether swapped tiles would have been detected.
    pub places_checked: bool,
}

/// A damaged tile of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The array.
    pub array: String,
    /// The tile.
    pub tile: usize,
    /// The file: of the tile or of its mirror image.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}

impl Report {
    /// Whether all tiles exist.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

impl Store {
    /// Reads all completed tiles and checks sizes, checksums, places and mirror images.
    pub fn verify(&self, context: &Context) -> Result<Report> {
        let (all, missing) = (self.layout().all_tiles(), self.missing()?);
        let done = all.without(&missing);
        let checked = AtomicUsize::new(0);
        let check = |tile: usize| -> Result<Vec<Damage>> {
            if context.cancelled() {
                return Err(StoreError::Cancelled);
            }
            let mut damaged = Vec::new();
            for array in 0..self.folders.len() {
                self.check_tile(array, tile, &mut damaged)?;
            }
            context.report(1 + checked.fetch_add(1, Ordering::Relaxed), done.len(), "tiles");
            Ok(damaged)
        };
        let mut damaged = Vec::new();
        for run in done.runs() {
            let join = |mut all: Vec<Damage>, more: Vec<Damage>| {
                all.extend(more);
                Ok(all)
            };
            damaged.extend(run.clone().into_par_iter().map(check).try_reduce(Vec::new, join)?);
        }
        let (n_tiles, bytes) = (self.n_tiles(), self.layout().stored_bytes(&done));
        Ok(Report { n_tiles, done: done.len(), missing, damaged, bytes, places_checked: self.places })
    }

    fn check_tile(&self, array: usize, tile: usize, damaged: &mut Vec<Damage>) -> Result<()> {
        let layout = self.layout();
        let name = || layout.arrays[array].clone();
        let mut sound = Vec::new();
        let mut last = String::new();
        for (row, column) in self.chunks_of(&self.tile(tile)?) {
            let file = self.chunk_path(array, row, column).display().to_string();
            match self.load(array, row, column) {
                Ok(bytes) => sound.push(bytes),
                Err(StoreError::Damaged { why, .. }) => {
                    damaged.push(Damage { array: name(), tile, file: file.clone(), why })
                }
                // A file that the system cannot read counts as damaged; the rest is still checked.
                Err(StoreError::Io { source, .. }) => {
                    damaged.push(Damage { array: name(), tile, file: file.clone(), why: source.to_string() });
                }
                Err(other) => return Err(other),
            }
            last = file;
        }
        if let [tile_bytes, mirror] = &sound[..]
            && !chunk::are_mirrored(tile_bytes, mirror, layout.precision, layout.chunk_matrix().0)
        {
            let why = "it is not the mirror image of the other half".to_owned();
            damaged.push(Damage { array: name(), tile, file: last, why });
        }
        Ok(())
    }
}
