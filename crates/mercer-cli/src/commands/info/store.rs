//! Describes a store of Gram matrices.

use crate::format::shortened;
use mercer::info::StoreFindings;
use mercer::kernel::store::{Damage, StoreColumns};
use mercer::text::{count, grouped, shape, short};
use std::fmt::Write;

/// Its sources, its arrays and its tiles.
pub(super) fn text(found: &StoreFindings, most: usize) -> String {
    let what = match found.layout.columns {
        StoreColumns::Samples { symmetric: true, .. } => "symmetric Gram matrix",
        StoreColumns::Samples { symmetric: false, .. } => "Gram matrix",
        StoreColumns::Features(_) => "features",
    };
    let mut text = format!("{}: {what}, Zarr store of Mercer {}\n", found.path, found.mercer);
    for (title, entries) in ["Made from", "Notes"].into_iter().zip(found.origin()) {
        let rows: Vec<_> = entries.into_iter().map(|(name, value)| vec![name, value]).collect();
        if !rows.is_empty() {
            let _ = write!(text, "\n{title}\n{}", shortened(rows, most, &[]));
        }
    }
    let title = format!("{} of {}", found.layout.precision, shape(&found.shape));
    let arrays = found.layout.arrays.iter().map(|name| vec![name.clone()]).collect();
    let _ = write!(text, "\nArrays ({title})\n{}", shortened(arrays, most, &[]));
    let _ = writeln!(
        text,
        "\nTiles ({} each)\n  {} of {} done, {}B",
        count(found.layout.tile, "sample"),
        grouped(found.done),
        grouped(found.n_tiles),
        spaced(found.bytes)
    );
    if !found.complete {
        let _ = writeln!(text, "  missing: {}", listed(&found.missing, most));
    }
    if !found.places_checked {
        let _ = writeln!(text, "  written by an earlier version: swapped tiles cannot be detected");
    }
    if found.damaged.is_empty() {
        let _ = writeln!(text, "  all existing tiles are intact");
    } else {
        let row = |damage: &Damage| {
            vec![format!("tile {}", damage.tile), damage.array.clone(), damage.file.clone(), damage.why.clone()]
        };
        let rows = found.damaged.iter().map(row).collect();
        let _ = write!(text, "\nDamaged\n{}", shortened(rows, most, &[]));
    }
    text
}

fn spaced(bytes: u64) -> String {
    let text = short(bytes);
    if text.contains(' ') { text } else { text + " " }
}

/// `0-3, 7`, cut if it is long.
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
