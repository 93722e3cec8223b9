//! What a store of Gram matrices holds, and whether it is what was written.

use super::{Findings, Looked, plain};
use crate::Error;
use crate::text::count;
use mercer_kernel::store::{Damage, Layout, Manifest, Report, Store};
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
    /// What the numbers depend on.
    pub facts: Map<String, Value>,
    /// What is good to know.
    pub notes: Map<String, Value>,
    /// Arrays, tiles and precision.
    pub layout: Layout,
    /// Of each array.
    pub shape: Vec<usize>,
    /// All tiles.
    pub n_tiles: usize,
    /// The tiles that are there.
    pub done: usize,
    /// Whether all are.
    pub complete: bool,
    /// The tiles that are not there, as first and last of each run.
    pub missing: Vec<(usize, usize)>,
    /// Whether a tile in the place of another would have been found.
    pub places_checked: bool,
    /// Of the tiles that are there.
    pub bytes: u64,
    /// What is not as it was written.
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

    /// What the numbers depend on, and what is good to know, as text.
    pub fn origin(&self) -> [Vec<(String, String)>; 2] {
        let text = |(name, value): (&String, &Value)| (name.clone(), plain(value));
        [&self.facts, &self.notes].map(|entries| entries.iter().map(text).collect())
    }
}
