//! Figures of spectra.

use super::findings::{CheckpointSpectra, KernelSpectrum, SpectrumFindings, WeightSpectrum};
use crate::Error;
use crate::job::folder::ResultFolder;
use mercer_lens::spectra::{MarchenkoPastur, compare_quantiles};
use mercer_report::figure::{Axis, Figure, Panel, Series};

/// All files that spectra may write.
pub(super) const NAMES: [&str; 4] = ["weights.svg", "kernels.svg", "quantiles.svg", "training.svg"];

/// Weights that are drawn: those with the most eigenvalues.
const DRAWN: usize = 12;

/// Bins of a histogram.
const BINS: usize = 50;

/// Points of a fitted density.
const POINTS: usize = 200;

/// Draws all figures.
pub(super) fn write(folder: &ResultFolder, found: &SpectrumFindings) -> Result<(), Error> {
    let save = |name: &str, figure: Figure| folder.file(name, figure.to_svg().as_bytes());
    let Some(last) = found.checkpoints.last() else { return Ok(()) };
    let drawn = drawn(last);
    if !drawn.is_empty() {
        save(
            "weights.svg",
            drawn.iter().fold(Figure::new("").columns(3), |figure, &at| figure.panel(weight(&last.weights[at]))),
        )?;
    }
    if last.ntk.is_some() {
        save("kernels.svg", kernels(found))?;
    }
    if found.checkpoints.len() > 1 {
        let first = &found.checkpoints[0];
        let mut figure = Figure::new("").columns(3);
        for &at in &drawn {
            figure = figure.panel(quantiles(&first.weights[at], &last.weights[at], &first.name, &last.name)?);
        }
        if !drawn.is_empty() {
            save("quantiles.svg", figure)?;
        }
        save("training.svg", training(found))?;
    }
    Ok(())
}

/// The weights with the most eigenvalues, in the order of the network.
fn drawn(last: &CheckpointSpectra) -> Vec<usize> {
    let mut order: Vec<usize> = (0..last.weights.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(last.weights[at].eigenvalues.len()));
    order.truncate(DRAWN);
    order.sort_unstable();
    order
}

/// The eigenvalues of a weight, and the law that fits their bulk.
fn weight(own: &WeightSpectrum) -> Panel {
    let most = own.largest.max(own.edge.unwrap_or(0.0)).max(f64::MIN_POSITIVE) * 1.02;
    let width = most / BINS as f64;
    let mut counts = vec![0_usize; BINS];
    for value in &own.eigenvalues {
        counts[((value / width) as usize).min(BINS - 1)] += 1;
    }
    let density = |count: usize| count as f64 / own.eigenvalues.len().max(1) as f64 / width;
    let bars: Vec<(f64, f64)> =
        counts.iter().enumerate().map(|(at, &count)| ((at as f64 + 0.5) * width, density(count))).collect();
    let mut series = vec![Series::bars("eigenvalues", bars, width)];
    let law =
        own.sigma.and_then(|sigma| MarchenkoPastur::new(own.rows as f64 / own.columns as f64, sigma * sigma).ok());
    if let (Some(law), Some(low), Some(high)) = (law, own.lower_edge, own.edge) {
        // Only the eigenvalues of the bulk follow the law.
        let share = 1.0 - own.n_spikes as f64 / own.eigenvalues.len().max(1) as f64;
        let at = |point: usize| low + (high - low) * point as f64 / POINTS as f64;
        let curve: Vec<(f64, f64)> = (0..=POINTS).map(|point| (at(point), share * law.density(at(point)))).collect();
        series.push(Series::line("fitted law", curve));
    }
    Panel::lines(own.layer.clone(), Axis::linear("eigenvalue of W·Wᵀ/d"), Axis::linear("density"), series)
}

/// Eigenvalues of the kernels, first and last checkpoint, on logarithmic axes.
fn kernels(found: &SpectrumFindings) -> Figure {
    type Choose = fn(&CheckpointSpectra) -> Option<&KernelSpectrum>;
    const KERNELS: [(&str, Choose); 2] =
        [("Conjugate kernel", |one| one.ck.as_ref()), ("Tangent kernel", |one| one.ntk.as_ref())];
    let mut ends = vec![0];
    if found.checkpoints.len() > 1 {
        ends.push(found.checkpoints.len() - 1);
    }
    KERNELS.iter().fold(Figure::new(""), |figure, (title, choose)| {
        let line = |&at: &usize| {
            let own = choose(&found.checkpoints[at])?;
            let least = own.largest * 1e-12;
            let values = own.eigenvalues.iter().enumerate().filter(|(_, value)| **value > least);
            let points: Vec<(f64, f64)> = values.map(|(rank, &value)| ((rank + 1) as f64, value)).collect();
            Some(Series::line(&found.checkpoints[at].name, points))
        };
        let lines: Vec<Series> = ends.iter().filter_map(line).collect();
        if lines.is_empty() {
            return figure;
        }
        figure.panel(Panel::lines(*title, Axis::log("rank"), Axis::log("eigenvalue"), lines))
    })
}

/// Quantiles of the eigenvalues of the last checkpoint against those of the first.
fn quantiles(first: &WeightSpectrum, last: &WeightSpectrum, from: &str, to: &str) -> Result<Panel, Error> {
    let probabilities: Vec<f64> = (0..=100).map(|percent| f64::from(percent) / 100.0).collect();
    let pairs = compare_quantiles(&first.eigenvalues, &last.eigenvalues, &probabilities)?.pairs;
    let points: Vec<(f64, f64)> = pairs.iter().map(|pair| (pair.first, pair.second)).collect();
    let panel = Panel::scatter(last.layer.clone(), Axis::linear(from), Axis::linear(to), [("quantiles", points)]);
    Ok(panel.diagonal())
}

/// What changes from checkpoint to checkpoint.
fn training(found: &SpectrumFindings) -> Figure {
    let names: Vec<String> = found.checkpoints.iter().map(|one| one.name.clone()).collect();
    let x = || Axis::names("checkpoint", names.clone());
    let over = |value: &dyn Fn(&CheckpointSpectra) -> Option<f64>| -> Vec<(f64, f64)> {
        found.checkpoints.iter().enumerate().filter_map(|(at, one)| Some((at as f64, value(one)?))).collect()
    };
    let shown = drawn(&found.checkpoints[found.checkpoints.len() - 1]);
    let by_weight = |value: fn(&WeightSpectrum) -> Option<f64>| -> Vec<Series> {
        let line = |&at: &usize| {
            let name = found.checkpoints[0].weights[at].layer.clone();
            Series::marked_line(name, over(&|one| value(one.weights.get(at)?)))
        };
        shown.iter().map(line).collect()
    };
    let spikes = |own: &WeightSpectrum| Some(own.n_spikes as f64);
    let largest = |own: &WeightSpectrum| Some(own.largest / own.threshold?);
    let drift = |own: &WeightSpectrum| Some(own.drift.map_or(0.0, |drift| drift.relative.unwrap_or(0.0)));
    let mut figure = Figure::new("").columns(2);
    if !shown.is_empty() {
        figure = figure
            .panel(Panel::lines("Eigenvalues beyond the edge", x(), Axis::whole("spikes"), by_weight(spikes)))
            .panel(
                Panel::lines("The largest eigenvalue", x(), Axis::linear("in units of the edge"), by_weight(largest))
                    .horizontal(1.0),
            )
            .panel(Panel::lines("Distance from the first checkpoint", x(), Axis::linear("relative"), by_weight(drift)));
    }
    let alignments = [
        Series::marked_line("conjugate kernel", over(&|one| one.kta?.ck?.plain)),
        Series::marked_line("tangent kernel", over(&|one| one.kta?.ntk.plain)),
        Series::marked_line(
            "first eigenvector, conjugate",
            over(&|one| one.ck.as_ref()?.label_alignment.first().copied()),
        ),
        Series::marked_line(
            "first eigenvector, tangent",
            over(&|one| one.ntk.as_ref()?.label_alignment.first().copied()),
        ),
    ];
    if found.checkpoints.iter().any(|one| one.kta.is_some()) {
        let y = Axis::linear("alignment").range(0.0, 1.0);
        figure = figure.panel(Panel::lines("Alignment with the labels", x(), y, alignments));
    }
    figure
}
