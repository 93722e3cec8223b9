//! Describes a folder of results.

use crate::format::shortened;
use mercer::info::{FileDamage, FileFindings, FolderFindings};
use mercer::text::{bytes, count, shape};
use std::fmt::Write;

/// Its kind, how it was made, and its files.
pub(super) fn text(found: &FolderFindings, most: usize) -> String {
    let mut text = format!("{}: {}\n\n", found.path, found.kind);
    for sentence in &found.sentences {
        let _ = writeln!(text, "{sentence}");
    }
    if !found.sentences.is_empty() {
        text.push('\n');
    }
    let rows = found.facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]);
    text += &shortened(rows.collect(), most, &[]);
    if let Some(values) = &found.values {
        let rows = values.iter().enumerate().map(|(j, value)| vec![(j + 1).to_string(), format!("{value:.6e}")]);
        let _ = write!(text, "\nEigenvalues\n{}", shortened(rows.collect(), most / 2, &[0]));
    }
    let row = |file: &FileFindings| {
        let array = match (&file.precision, &file.shape) {
            (Some(precision), Some(sizes)) => format!("{precision} {}", shape(sizes)),
            _ => String::new(),
        };
        vec![file.name.clone(), bytes(file.bytes as usize), array]
    };
    for (files, what) in [(&found.objects, "part"), (&found.files, "file")] {
        if !files.is_empty() {
            let rows = files.iter().map(row).collect();
            let _ = write!(text, "\n{}\n{}", count(files.len(), what), shortened(rows, most, &[1]));
        }
    }
    if !found.damaged.is_empty() {
        let row = |damage: &FileDamage| vec![damage.file.clone(), damage.why.clone()];
        let _ = write!(text, "\nDamaged\n{}", shortened(found.damaged.iter().map(row).collect(), most, &[]));
    } else if found.version.is_some() {
        text += "  all saved files are intact\n";
    }
    text
}
