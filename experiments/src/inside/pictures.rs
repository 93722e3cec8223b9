//! Figures of spectra over training, from the results of [`SpectrumJob`](mercer::job::SpectrumJob).

use mercer::lens::spectra::MarchenkoPastur;
use mercer::report::{Axis, Figure, Panel, Series};
use serde_json::Value;

/// Bins of a histogram.
const BINS: usize = 60;

/// Points of a density.
const POINTS: usize = 200;

/// The spectra of one training.
pub(super) struct Spectra {
    pub(super) name: &'static str,
    /// `result.json` of the spectra.
    pub(super) found: Value,
    /// The epochs of its checkpoints.
    pub(super) epochs: Vec<usize>,
}

impl Spectra {
    pub(super) fn first(&self) -> &Value {
        &self.found["checkpoints"][0]
    }

    pub(super) fn last(&self) -> &Value {
        &self.found["checkpoints"][self.epochs.len() - 1]
    }

    /// A number at every checkpoint, over the epochs from 1.
    fn over(&self, pointer: &str) -> Vec<(f64, f64)> {
        let value = |(at, &epoch): (usize, &usize)| {
            Some((epoch as f64 + 1.0, self.found["checkpoints"][at].pointer(pointer)?.as_f64()?))
        };
        self.epochs.iter().enumerate().filter_map(value).collect()
    }
}

/// The numbers at a place; none if there are none.
pub(super) fn numbers(value: &Value, pointer: &str) -> Vec<f64> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map_or_else(Vec::new, |list| list.iter().filter_map(Value::as_f64).collect())
}

/// Weights and conjugate kernels of all cases, before and after, and quantiles of the weights; `ratio` is that of units to inputs.
pub(super) fn spectra(cases: &[Spectra], ratio: f64) -> Figure {
    let mut figure = Figure::new("Spectra before and after training").columns(3);
    for case in cases {
        let sets =
            |pointer: &str| [("before", numbers(case.first(), pointer)), ("after", numbers(case.last(), pointer))];
        let weights = "/weights/0/eigenvalues";
        let [before, after] = sets(weights);
        let panel = Panel::histogram(format!("{}: weights", case.name), "eigenvalue of W·Wᵀ/d", BINS, sets(weights));
        figure = figure
            .panel(match MarchenkoPastur::new(ratio, 1.0) {
                Ok(law) => panel.series(Series::line("law of noise", density(&law))),
                Err(_) => panel,
            })
            .panel(Panel::quantiles(format!("{}: weights", case.name), before, after))
            .panel(kernel(case.name, sets("/ck/eigenvalues")));
    }
    figure
}

fn density(law: &MarchenkoPastur) -> Vec<(f64, f64)> {
    let (low, high) = (law.lower_edge(), law.upper_edge());
    let at = |point: usize| low + (high - low) * point as f64 / POINTS as f64;
    (0..=POINTS).map(|point| (at(point), law.density(at(point)))).collect()
}

/// Eigenvalues by rank.
fn kernel(name: &str, sets: [(&str, Vec<f64>); 2]) -> Panel {
    let lines = sets.map(|(when, values)| {
        let least = values.first().copied().unwrap_or(0.0) * 1e-9;
        let kept = values.into_iter().enumerate().filter(|(_, value)| *value > least);
        Series::line(when, kept.map(|(rank, value)| ((rank + 1) as f64, value)).collect::<Vec<_>>())
    });
    Panel::lines(format!("{name}: conjugate kernel"), Axis::log("rank"), Axis::log("eigenvalue"), lines)
}

/// Alignment with the teacher and with the labels, and the largest eigenvalue, over training.
pub(super) fn training(cases: &[Spectra]) -> Figure {
    let panel = |title: &str, y: Axis, pointer: &str| {
        let lines = cases.iter().map(|case| Series::marked_line(case.name, case.over(pointer)));
        Panel::lines(title, Axis::log("epoch + 1"), y, lines.collect::<Vec<_>>())
    };
    let share = |name: &str| Axis::linear(name).range(0.0, 1.0);
    Figure::new("Alignment over training")
        .columns(2)
        .panel(panel("Weights and teacher", share("|βᵀu₁|/‖β‖"), "/weights/0/direction/cosines/0"))
        .panel(panel("Conjugate kernel and labels", share("KTA"), "/kta/ck/plain"))
        .panel(panel("Tangent kernel and labels", share("KTA"), "/kta/ntk/plain"))
        .panel(panel("Weights", Axis::log("largest eigenvalue of W·Wᵀ/d"), "/weights/0/largest"))
}

/// Principal angles between the teacher's span and the leading 100 singular vectors.
pub(super) fn angles(cases: &[Spectra]) -> Figure {
    cases.iter().fold(Figure::new("Angles to the directions of the teacher").columns(3), |figure, case| {
        let count = numbers(case.first(), "/weights/0/direction/angles").len();
        let line = |at: usize| {
            Series::marked_line(format!("θ{}", at + 1), case.over(&format!("/weights/0/direction/angles/{at}")))
        };
        let y = Axis::linear("degrees").range(0.0, 90.0);
        figure.panel(Panel::lines(case.name, Axis::log("epoch + 1"), y, (0..count).map(line).collect::<Vec<_>>()))
    })
}
