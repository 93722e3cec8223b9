//! What was found, in words.

use super::findings::{CheckpointSpectra, KernelSpectrum, SpectrumFindings, WeightSpectrum};
use mercer_lens::spectra::SpectrumKind;

/// Sentences about the findings, the most important first.
pub(super) fn sentences(found: &SpectrumFindings) -> Vec<String> {
    let mut all = Vec::new();
    let Some(last) = found.checkpoints.last() else { return all };
    all.extend(spikes(found));
    for (name, own, kta) in
        [("conjugate", &last.ck, last.kta.and_then(|kta| kta.ck)), ("tangent", &last.ntk, last.kta.map(|kta| kta.ntk))]
    {
        let Some(own) = own else { continue };
        all.extend(kernel(name, own, kta.and_then(|kta| kta.centred.or(kta.plain)), found));
    }
    let count = |kind: SpectrumKind| last.weights.iter().filter(|own| own.kind == kind).count();
    let kinds = [
        (SpectrumKind::Bulk, "like noise"),
        (SpectrumKind::Spikes, "with spikes beyond the bulk"),
        (SpectrumKind::HeavyTail, "with a heavy tail"),
        (SpectrumKind::Other, "that the law of noise does not fit"),
    ];
    let parts: Vec<String> = kinds
        .into_iter()
        .filter(|(kind, _)| count(*kind) > 0)
        .map(|(kind, words)| format!("{} {words}", count(kind)))
        .collect();
    if !parts.is_empty() {
        all.push(format!("Spectra of weights: {}.", parts.join(", ")));
    }
    let drift = |own: &&WeightSpectrum| own.drift.and_then(|drift| drift.relative);
    let most = last.weights.iter().filter(|own| drift(own).is_some());
    if let Some(own) = most.max_by(|a, b| drift(a).unwrap_or(0.0).total_cmp(&drift(b).unwrap_or(0.0))) {
        all.push(format!(
            "{} moved most since {}: its change is {:.2} times as long as it was.",
            own.layer,
            found.checkpoints[0].name,
            drift(&own).unwrap_or(0.0)
        ));
    }
    all
}

/// Spikes that appear between one checkpoint and the next.
fn spikes(found: &SpectrumFindings) -> Vec<String> {
    let mut all = Vec::new();
    for pair in found.checkpoints.windows(2) {
        let [before, after] = pair else { continue };
        for (earlier, later) in before.weights.iter().zip(&after.weights) {
            if earlier.n_spikes > 0 || later.n_spikes == 0 {
                continue;
            }
            let mut text = format!("A spike left the bulk of {} at {}", later.layer, after.name);
            let cosine =
                later.direction.as_ref().and_then(|own| own.cosines.iter().flatten().copied().reduce(f64::max));
            if let Some(cosine) = cosine {
                text += &format!("; its singular vector aligns {cosine:.2} with the given direction");
            } else if let Some(aligned) = first_alignment(after) {
                text += &format!("; the first eigenvector of the conjugate kernel aligns {aligned:.2} with the labels");
            }
            all.push(text + ".");
        }
    }
    all
}

fn first_alignment(checkpoint: &CheckpointSpectra) -> Option<f64> {
    checkpoint.ck.as_ref()?.label_alignment.first().copied()
}

/// A kernel: how much of the labels its leading eigenvectors hold, and how far it moved.
fn kernel(name: &str, own: &KernelSpectrum, kta: Option<f64>, found: &SpectrumFindings) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(share) = own.captured.last() {
        let aligned = kta.map_or(String::new(), |kta| format!(", and its alignment with them is {kta:.2}"));
        let leading = match own.captured.len() {
            1 => format!("The first eigenvector of the {name} kernel holds"),
            n => format!("The first {n} eigenvectors of the {name} kernel hold"),
        };
        all.push(format!("{leading} {:.0} % of the labels{aligned}.", 100.0 * share));
    }
    if let Some(relative) = own.drift.and_then(|drift| drift.relative) {
        all.push(format!(
            "The {name} kernel changed by {:.0} % of its norm since {}.",
            100.0 * relative,
            found.checkpoints[0].name
        ));
    }
    if let Some(estimated) = &own.estimated {
        let error = estimated.trace_error.map_or(String::new(), |error| format!(" ± {error:.1e}"));
        all.push(format!("The trace of the {name} kernel is {:.4e}{error}, from products with it.", own.trace));
    }
    all
}
