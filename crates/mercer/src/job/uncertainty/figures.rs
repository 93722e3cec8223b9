//! Reliability diagrams and histograms of uncertainty.

use super::findings::UncertaintyFindings;
use super::select::Row;
use mercer_learn::laplace::ClassScores;
use mercer_report::figure::{Bin, Figure, Panel};

const BINS: usize = 30;

/// Accuracy against confidence, for the network alone, at its temperature, and for the posterior; none without labels.
pub(super) fn reliability(findings: &UncertaintyFindings) -> Option<Figure> {
    let rows = [
        (Row::Network, Some(&findings.map)),
        (Row::Scaled, findings.scaled.as_ref()),
        (Row::Laplace, Some(&findings.laplace)),
    ];
    let panel = |row: Row, scores: &ClassScores| {
        let drawn = |bin: &mercer_learn::metrics::ReliabilityBin| {
            let (confidence, accuracy) = (bin.mean_confidence?, bin.accuracy?);
            Some(Bin { from: bin.lower, to: bin.upper, confidence, accuracy, count: bin.count })
        };
        let bins: Vec<Bin> = scores.reliability.bins.iter().filter_map(drawn).collect();
        Panel::reliability(format!("{}: calibration error {:.3}", row.title(), scores.ece), &bins)
    };
    let scored = rows.into_iter().filter_map(|(row, scores)| Some((row, scores?.classes.as_ref()?)));
    let panels: Vec<Panel> = scored.map(|(row, scores)| panel(row, scores)).collect();
    (!panels.is_empty()).then(|| panels.into_iter().fold(Figure::new(""), Figure::panel))
}

/// The entropies of a row: of test samples, and of out-of-distribution samples.
pub(super) struct Entropies {
    pub(super) row: Row,
    pub(super) usual: Vec<f64>,
    pub(super) other: Option<Vec<f64>>,
}

/// The entropy of predictions, a panel per row.
pub(super) fn entropy(entropies: Vec<Entropies>) -> Figure {
    entropies.into_iter().fold(Figure::new(""), |figure, Entropies { row, usual, other }| {
        figure.panel(histogram(row.title(), "entropy (nats)", usual, other))
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
