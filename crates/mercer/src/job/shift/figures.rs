//! The figures.

use super::findings::ShiftFindings;
use super::work::PerSample;
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::probe::figures::labels;
use mercer_lens::shift::TestKind;
use mercer_report::{Axis, Figure, Panel, Series};
use mercer_run::names::Named;

/// Draws all figures.
pub(super) fn write(folder: &ResultFolder, found: &ShiftFindings, samples: &PerSample) -> Result<(), Error> {
    folder.file("densities.svg", densities(found, samples).to_svg().as_bytes())?;
    folder.file("tests.svg", tests(found).to_svg().as_bytes())
}

/// The first principal component of both sets, and the first two.
fn densities(found: &ShiftFindings, samples: &PerSample) -> Figure {
    let node = found.samples.as_ref().map(|samples| samples.node.clone()).unwrap_or_default();
    let n = samples.n_first;
    let sets = [("data", samples.pc1[..n].to_vec()), ("test", samples.pc1[n..].to_vec())];
    let points = |rows: std::ops::Range<usize>| -> Vec<(f64, f64)> {
        rows.map(|row| (samples.pc1[row], samples.pc2[row])).collect()
    };
    let both = [("data", points(0..n)), ("test", points(n..samples.pc1.len()))];
    let (x, y) = (Axis::linear("first principal component"), Axis::linear("second principal component"));
    Figure::new(node)
        .panel(Panel::density("The first principal component", "first principal component", sets))
        .panel(Panel::scatter("The first two", x, y, both))
}

/// What every test says about every layer.
fn tests(found: &ShiftFindings) -> Figure {
    let names = labels(found.layers.iter().map(|layer| &layer.node));
    let kinds = [TestKind::MmdLinear, TestKind::MmdGaussian, TestKind::Classifier, TestKind::Pc1];
    let panel = |title: &str, axis: Axis, value: &dyn Fn(&super::TestFindings) -> f64| {
        let line = |kind: &TestKind| {
            let place = |node: &String| found.layers.iter().position(|layer| layer.node == *node);
            let own = found.tests.iter().filter(|test| test.name == *kind);
            let points = own.filter_map(|test| Some((place(&test.node)? as f64, value(test))));
            Series::marked_line(kind.name(), points.collect::<Vec<_>>())
        };
        Panel::lines(title, Axis::names("layer", names.clone()), axis, kinds.iter().map(line))
    };
    let p_values = panel("Corrected p-values", Axis::log("p-value"), &|test| test.corrected_p_value);
    let accuracy = found.layers.iter().enumerate().map(|(at, layer)| (at as f64, layer.accuracy));
    let accuracy = Panel::lines(
        "Held-out accuracy of a linear classifier",
        Axis::names("layer", names.clone()),
        Axis::linear("accuracy").range(0.0, 1.0),
        [Series::marked_line("", accuracy.collect::<Vec<_>>())],
    );
    Figure::new("")
        .panel(p_values.horizontal(found.level))
        .panel(panel("How far from chance", Axis::linear("standard deviations"), &|test| test.deviations))
        .panel(accuracy.horizontal(0.5))
}
