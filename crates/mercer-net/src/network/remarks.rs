//! Warnings about a file whose parameters differ from those of the original module. Tangent kernels and posteriors
//! depend on them.

use super::{Network, Source};
use crate::onnx::{Detection, Tied};

/// Names beyond these are only counted.
const MOST_NAMES: usize = 4;

/// Families of merged tensors beyond these are only counted.
const MOST_FAMILIES: usize = 3;

impl Network {
    /// How the parameters of the file differ from those of the original module, one paragraph per difference. Tangent
    /// kernels and posteriors depend on the parameters; outputs do not.
    pub fn remarks(&self) -> Vec<String> {
        match &self.source {
            Source::File(file) => {
                let detection = &file.detection;
                detection.folded.remark().into_iter().chain(merged(detection)).chain(dropped(detection)).collect()
            }
            Source::Built(_) => Vec::new(),
        }
    }
}

/// Parameters that stand for several parameters of the module.
fn merged(detection: &Detection) -> Option<String> {
    let mut families: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut index = std::collections::HashMap::new();
    for detected in &detection.tensors {
        let Some(Tied { to, merged: true, .. }) = &detected.tied else { continue };
        let at = *index.entry(to.as_str()).or_insert(families.len());
        if at == families.len() {
            families.push((to, Vec::new()));
        }
        families[at].1.push(&detected.tensor.name);
    }
    let count: usize = families.iter().map(|(_, others)| others.len()).sum();
    if count == 0 {
        return None;
    }
    let each = |(first, others): &(&str, Vec<&str>)| format!("{first} is also {}", listed(others));
    let mut shown: Vec<String> = families.iter().take(MOST_FAMILIES).map(each).collect();
    if families.len() > MOST_FAMILIES {
        shown.push(format!("and {} more of this kind", families.len() - MOST_FAMILIES));
    }
    Some(format!(
        "The exporter stored tensors with equal numbers once, so {count} of the module's parameters are missing: {}. \
         --unmerge counts them apart.",
        shown.join("; ")
    ))
}

/// Biases that are not in the file.
fn dropped(detection: &Detection) -> Option<String> {
    let names: Vec<&str> = detection.dropped.iter().map(|dropped| dropped.detected.tensor.name.as_str()).collect();
    let count = names.len();
    let what = if count == 1 { "a bias" } else { "biases" };
    (count > 0).then(|| format!("The exporter dropped {what} of zeros ({}). --unmerge restores them.", listed(&names)))
}

fn listed(names: &[&str]) -> String {
    let shown = names[..names.len().min(MOST_NAMES)].join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
