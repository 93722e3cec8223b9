//! What a store of Gram matrices holds, and whether it is what was written.

use crate::console::Console;
use crate::failure::Failure;
use crate::format::{count, grouped, shape, short, shortened};
use mercer::kernel::store::{Columns, Damage, Layout, Manifest, Report, Store};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::path::Path;

/// Lists longer than this are cut.
const MOST_ROWS: usize = 40;

/// All that `--json` shows of a store.
#[derive(Debug, Serialize)]
struct StoreReport<'a> {
    kind: &'static str,
    path: String,
    /// The version of Mercer that made it.
    mercer: &'a str,
    /// What the numbers depend on.
    facts: &'a Map<String, Value>,
    notes: &'a Map<String, Value>,
    layout: &'a Layout,
    /// Of each array.
    shape: Vec<usize>,
    n_tiles: usize,
    done: usize,
    complete: bool,
    /// The tiles that are not there, as first and last of each run.
    missing: Vec<(usize, usize)>,
    /// Whether a tile in the place of another would have been found.
    places_checked: bool,
    /// Of the tiles that are there.
    bytes: u64,
    damaged: &'a [Damage],
}

/// Whether this is the folder of a store, or means to be one.
pub(super) fn is_store(path: &Path) -> bool {
    path.is_dir() && (super::has_extension(path, "zarr") || path.join("zarr.json").exists())
}

/// Describes a store and reads all of it; fails if it is damaged.
pub(super) fn show(path: &Path, console: &Console) -> Result<(), Failure> {
    let store = Store::open(path)?;
    let found = {
        let bar = console.context();
        store.verify(&bar)?
    };
    let report = StoreReport::of(&store, &found);
    console.result(&report, || report.text(console.verbose))?;
    let tiles: std::collections::BTreeSet<usize> = found.damaged.iter().map(|damage| damage.tile).collect();
    if tiles.is_empty() {
        return Ok(());
    }
    let message = format!("{}: {} damaged", path.display(), count(tiles.len(), "tile"));
    Err(Failure::check(message).hint("the command that made it computes them again with --resume"))
}

impl<'a> StoreReport<'a> {
    fn of(store: &'a Store, found: &'a Report) -> Self {
        let Manifest { mercer, layout, facts, notes, .. } = store.manifest();
        Self {
            kind: "store",
            path: store.path().display().to_string(),
            mercer,
            facts,
            notes,
            layout,
            shape: layout.shape(),
            n_tiles: found.n_tiles,
            done: found.done,
            complete: found.is_complete(),
            missing: found.missing.runs().iter().map(|run| (run.start, run.end - 1)).collect(),
            places_checked: found.places_checked,
            bytes: found.bytes,
            damaged: &found.damaged,
        }
    }

    fn text(&self, verbose: bool) -> String {
        let most = if verbose { usize::MAX - 1 } else { MOST_ROWS };
        let what = match self.layout.columns {
            Columns::Samples { symmetric: true, .. } => "symmetric Gram matrix",
            Columns::Samples { symmetric: false, .. } => "Gram matrix",
            Columns::Features(_) => "features",
        };
        let mut text = format!("{}: {what}, Zarr store of Mercer {}\n", self.path, self.mercer);
        for (title, entries) in [("Made from", self.facts), ("Notes", self.notes)] {
            let rows: Vec<_> = entries.iter().map(|(name, value)| vec![name.clone(), plain(value)]).collect();
            if !rows.is_empty() {
                let _ = write!(text, "\n{title}\n{}", shortened(rows, most, &[]));
            }
        }
        let title = format!("{} of {}", self.layout.precision, shape(&self.shape));
        let arrays = self.layout.arrays.iter().map(|name| vec![name.clone()]).collect();
        let _ = write!(text, "\nArrays ({title})\n{}", shortened(arrays, most, &[]));
        let _ = writeln!(
            text,
            "\nTiles ({} each)\n  {} of {} done, {}B",
            count(self.layout.tile, "sample"),
            grouped(self.done),
            grouped(self.n_tiles),
            spaced(self.bytes)
        );
        if !self.complete {
            let _ = writeln!(text, "  missing: {}", listed(&self.missing, most));
        }
        if !self.places_checked {
            let _ = writeln!(text, "  an earlier version wrote it: a tile in the place of another would not be found");
        }
        if self.damaged.is_empty() {
            let _ = writeln!(text, "  every tile that is there is as it was written");
        } else {
            let row = |damage: &Damage| {
                vec![format!("tile {}", damage.tile), damage.array.clone(), damage.file.clone(), damage.why.clone()]
            };
            let rows = self.damaged.iter().map(row).collect();
            let _ = write!(text, "\nDamaged\n{}", shortened(rows, most, &[]));
        }
        text
    }
}

/// Text without quotation marks, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn spaced(bytes: u64) -> String {
    let text = short(bytes);
    if text.contains(' ') { text } else { text + " " }
}

/// `0-3, 7`, cut where it gets long.
fn listed(runs: &[(usize, usize)], most: usize) -> String {
    let run =
        |&(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let text = runs.iter().take(most).map(run).collect::<Vec<_>>().join(", ");
    if runs.len() > most { text + ", …; -v shows all" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tiles_are_listed_in_runs() {
        let found = [(0, 2), (5, 5), (7, 8)];
        assert_eq!(listed(&found, 40), "0-2, 5, 7-8");
        assert_eq!(listed(&found, 1), "0-2, …; -v shows all");
    }
}
