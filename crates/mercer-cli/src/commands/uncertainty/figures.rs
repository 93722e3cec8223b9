//! Reliability diagrams and histograms of uncertainty.

use super::report::Scores;
use crate::failure::Failure;
use mercer::data::Existing;
use mercer::learn::laplace::ClassScores;
use mercer::report::figure::{Bin, Figure, Panel};
use std::path::Path;

const BINS: usize = 30;

/// Accuracy against confidence, of the network alone and of the posterior.
pub(super) fn reliability(folder: &Path, map: &Scores, laplace: &Scores) -> Result<(), Failure> {
    let (Some(map), Some(laplace)) = (&map.classes, &laplace.classes) else { return Ok(()) };
    let panel = |name: &str, scores: &ClassScores| {
        let bins: Vec<Bin> = scores
            .reliability
            .bins
            .iter()
            .map(|bin| Bin {
                from: bin.from,
                to: bin.to,
                confidence: bin.confidence,
                accuracy: bin.accuracy,
                count: bin.count,
            })
            .collect();
        Panel::reliability(format!("{name}: calibration error {:.3}", scores.ece), &bins)
    };
    let figure = Figure::new("Is it as often right as it is sure?");
    let figure = figure.panel(panel("network", map)).panel(panel("Laplace", laplace));
    Ok(figure.write(&folder.join("reliability.svg"), Existing::Replace)?)
}

/// The entropy of predictions, of test samples and of others.
pub(super) fn entropy(folder: &Path, entropies: &[(Vec<f64>, Option<Vec<f64>>)]) -> Result<(), Failure> {
    let mut figure = Figure::new("Entropy of the predictions");
    for (name, (usual, other)) in ["network", "Laplace"].iter().zip(entropies) {
        figure = figure.panel(histogram(name, "entropy (nats)", usual.clone(), other.clone()));
    }
    Ok(figure.write(&folder.join("entropy.svg"), Existing::Replace)?)
}

/// The standard deviation of the outputs of a regression.
pub(super) fn deviation(folder: &Path, usual: Vec<f64>, other: Option<Vec<f64>>) -> Result<(), Failure> {
    let panel = histogram("Laplace", "standard deviation of the output", usual, other);
    Ok(Figure::new("Uncertainty of the outputs")
        .panel(panel)
        .write(&folder.join("deviation.svg"), Existing::Replace)?)
}

fn histogram(title: &str, label: &str, usual: Vec<f64>, other: Option<Vec<f64>>) -> Panel {
    let sets = std::iter::once(("test", usual)).chain(other.map(|other| ("other", other)));
    Panel::histogram(title, label, BINS, sets)
}
