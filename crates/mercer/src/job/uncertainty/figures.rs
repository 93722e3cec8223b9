//! Reliability diagrams and histograms of uncertainty.

use super::findings::Scores;
use mercer_learn::laplace::ClassScores;
use mercer_report::figure::{Bin, Figure, Panel};

const BINS: usize = 30;

/// Accuracy against confidence, for the network alone and for the posterior; none without labels.
pub(super) fn reliability(map: &Scores, laplace: &Scores) -> Option<Figure> {
    let (Some(map), Some(laplace)) = (&map.classes, &laplace.classes) else { return None };
    let panel = |name: &str, scores: &ClassScores| {
        let drawn = |bin: &mercer_learn::metrics::ReliabilityBin| {
            let (confidence, accuracy) = (bin.mean_confidence?, bin.accuracy?);
            Some(Bin { from: bin.lower, to: bin.upper, confidence, accuracy, count: bin.count })
        };
        let bins: Vec<Bin> = scores.reliability.bins.iter().filter_map(drawn).collect();
        Panel::reliability(format!("{name}: calibration error {:.3}", scores.ece), &bins)
    };
    Some(Figure::new("").panel(panel("Network", map)).panel(panel("Laplace", laplace)))
}

/// The entropy of predictions, for test samples and out-of-distribution samples.
pub(super) fn entropy(entropies: [(Vec<f64>, Option<Vec<f64>>); 2]) -> Figure {
    let panels = ["Network", "Laplace"].into_iter().zip(entropies);
    panels.fold(Figure::new(""), |figure, (name, (usual, other))| {
        figure.panel(histogram(name, "entropy (nats)", usual, other))
    })
}

/// The standard deviation of the outputs of a regression.
pub(super) fn deviation(usual: Vec<f64>, other: Option<Vec<f64>>) -> Figure {
    let panel = histogram("Laplace", "standard deviation of the output", usual, other);
    Figure::new("").panel(panel)
}

fn histogram(title: &str, label: &str, usual: Vec<f64>, other: Option<Vec<f64>>) -> Panel {
    let sets = std::iter::once(("test", usual)).chain(other.map(|other| ("other", other)));
    Panel::histogram(title, label, BINS, sets)
}
