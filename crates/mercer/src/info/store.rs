//! The contents of a store of Gram matrices, and whether they are intact.

use super::{Findings, Looked, plain};
use crate::Error;
use crate::text::count;
use mercer_kernel::store::{Damage, Manifest, Report, Store, StoreLayout};
use mercer_run::Context;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// A store.
#[derive(Clone, Debug, Serialize)]
pub struct StoreFindings {
    /// What this is: `store`.
    pub kind: &'static str,
    /// The folder.
    pub path: String,
    /// The version of Mercer that made it.
    pub mercer: String,
    /// The facts that decide the numbers.
    pub facts: Map<String, Value>,
    /// Notes.
    pub notes: Map<String, Value>,
    /// Arrays, tiles and precision.
    pub layout: StoreLayout,
    /// Of each array.
    pub shape: Vec<usize>,
    /// All tiles.
    pub n_tiles: usize,
    /// The completed tiles.
    pub done: usize,
    /// Whether all tiles are complete.
    pub complete: bool,
    /// The missing tiles, as first and last of each range.
    pub missing: Vec<(usize, usize)>,
    /// Whether swapped tiles would have been detected.
    pub places_checked: bool,
    /// The bytes of the completed tiles.
    pub bytes: u64,
    /// The damaged parts.
    pub damaged: Vec<Damage>,
}

/// Describes a store and reads all of it.
pub(super) fn look(path: &Path, context: &Context) -> Result<Looked, Error> {
    let store = Store::open(path)?;
    let found = StoreFindings::new(&store, store.verify(context)?);
    let tiles: BTreeSet<usize> = found.damaged.iter().map(|damage| damage.tile).collect();
    let failure = (!tiles.is_empty()).then(|| {
        let message = format!("{}: {} damaged", path.display(), count(tiles.len(), "tile"));
        Error::check(message).hint("the command that made it computes them again with ‹resume›")
    });
    Ok(Looked { findings: Findings::Store(Box::new(found)), failure })
}

impl StoreFindings {
    fn new(store: &Store, found: Report) -> Self {
        let Manifest { mercer, layout, facts, notes, .. } = store.manifest();
        Self {
            kind: "store",
            path: store.path().display().to_string(),
            mercer: mercer.clone(),
            facts: facts.clone(),
            notes: notes.clone(),
            layout: layout.clone(),
            shape: layout.shape(),
            n_tiles: found.n_tiles,
            done: found.done,
            complete: found.is_complete(),
            missing: found.missing.runs().iter().map(|run| (run.start, run.end - 1)).collect(),
            places_checked: found.places_checked,
            bytes: found.bytes,
            damaged: found.damaged,
        }
    }

    /// Facts and notes as text.
    pub fn origin(&self) -> [Vec<(String, String)>; 2] {
        let text = |(name, value): (&String, &Value)| (name.clone(), plain(value));
        [&self.facts, &self.notes].map(|entries| entries.iter().map(text).collect())
    }
}
