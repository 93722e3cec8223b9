//! Special panels: scatter plots, histograms, bar charts, reliability diagrams.

use super::axis::Axis;
use super::panel::{Helper, Hold, Panel};
use super::series::{Look, Series};

/// A bin of a reliability diagram: predictions with confidence in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// The lowest confidence of the bin.
    pub from: f64,
    /// The highest.
    pub to: f64,
    /// The mean confidence of its predictions.
    pub confidence: f64,
    /// The fraction of them that is correct.
    pub accuracy: f64,
    /// The number of predictions; an empty bin is not drawn.
    pub count: usize,
}

impl Panel {
    /// Points in classes, one colour per class.
    pub fn scatter<N: Into<String>, P: IntoIterator<Item = (f64, f64)>>(
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        classes: impl IntoIterator<Item = (N, P)>,
    ) -> Self {
        let series = classes.into_iter().map(|(name, points)| Series::points(name, points));
        Self::lines(title, x, y, series)
    }

    /// A histogram with equal bins, shared by all sets, as a density: the area of every set is one, so that sets of
    /// different size can be compared. Numbers that are not finite are in no bin and count as
    /// [skipped](super::Figure::skipped).
    pub fn histogram<N: Into<String>>(
        title: impl Into<String>,
        label: impl Into<String>,
        bins: usize,
        sets: impl IntoIterator<Item = (N, Vec<f64>)>,
    ) -> Self {
        let axis = Axis::linear(label);
        let mut panel = Self::new(title).y(Axis::linear("density"));
        let mut sets: Vec<(String, Vec<f64>)> = sets.into_iter().map(|(name, values)| (name.into(), values)).collect();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (_, values) in &mut sets {
            let all = values.len();
            values.retain(|&x| axis.drawable(x));
            panel.left_out += all - values.len();
            (low, high) = values.iter().fold((low, high), |(low, high), &x| (low.min(x), high.max(x)));
        }
        if high - low <= 1e-12 * high.abs().max(low.abs()) || high - low < 1e-290 {
            let room = if high == 0.0 { 0.5 } else { 0.1 * high.abs().max(1e-280) };
            (low, high) = if low > high { (0.0, 1.0) } else { (low - room, high + room) };
        }
        let bins = bins.clamp(1, 10_000);
        let width = (high - low) / bins as f64;
        panel.series = sets
            .into_iter()
            .map(|(name, values)| {
                let mut counts = vec![0_usize; bins];
                for x in &values {
                    // The largest number belongs to the last bin.
                    counts[(((x - low) / width) as usize).min(bins - 1)] += 1;
                }
                let density = |count: usize| count as f64 / (values.len().max(1) as f64 * width);
                let centre = |at: usize| low + (at as f64 + 0.5) * width;
                let points = counts.iter().enumerate().map(|(at, &count)| (centre(at), density(count)));
                Series::new(name, points.collect::<Vec<_>>(), Look::Steps(width))
            })
            .collect();
        panel.x(axis)
    }

    /// Bars in groups: every series has one number per name.
    pub fn bars<S: Into<String>, N: Into<String>>(
        title: impl Into<String>,
        names: impl IntoIterator<Item = S>,
        y: Axis,
        sets: impl IntoIterator<Item = (N, Vec<f64>)>,
    ) -> Self {
        let sets: Vec<(N, Vec<f64>)> = sets.into_iter().collect();
        let width = 0.8 / sets.len().max(1) as f64;
        let series = sets.into_iter().enumerate().map(|(set, (name, values))| {
            let shift = (set as f64 + 0.5) * width - 0.4;
            Series::bars(
                name,
                values.into_iter().enumerate().map(|(at, y)| (at as f64 + shift, y)).collect::<Vec<_>>(),
                width,
            )
        });
        Self::lines(title, Axis::names("", names), y, series)
    }

    /// Accuracy against confidence for each bin, with the diagonal of a calibrated network. Bars are accuracies; marks
    /// are at the mean confidence of a bin, and the numbers at the bottom count its predictions.
    pub fn reliability(title: impl Into<String>, bins: &[Bin]) -> Self {
        let filled: Vec<&Bin> = bins.iter().filter(|bin| bin.count > 0).collect();
        // Bins should be equally wide; otherwise the narrowest determines the width.
        let width = filled.iter().map(|bin| bin.to - bin.from).fold(1.0, f64::min);
        let bars = filled.iter().map(|bin| ((bin.from + bin.to) / 2.0, bin.accuracy));
        let means = filled.iter().map(|bin| (bin.confidence, bin.accuracy));
        let count = |bin: &&Bin| Helper::Text(((bin.from + bin.to) / 2.0, 0.015), short(bin.count), Hold::Middle);
        let counts: Vec<Helper> = filled.iter().map(count).collect();
        let mut panel = Self::new(title)
            .x(Axis::linear("confidence").range(0.0, 1.0))
            .y(Axis::linear("accuracy").range(0.0, 1.0))
            .series(Series::bars("accuracy", bars, width * 0.94).colour(4))
            .series(Series::marked_line("at mean confidence", means).colour(1))
            .diagonal();
        panel.helpers.extend(counts);
        panel
    }
}

/// A count in at most four characters.
fn short(count: usize) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}
