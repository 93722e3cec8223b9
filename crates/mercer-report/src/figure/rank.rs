//! ROC and precision–recall curves: how well scores put positives above negatives.

use super::axis::Axis;
use super::panel::Panel;
use super::series::{Look, Series};

/// Points of a curve that are closer than this are drawn as one.
const STEP: f64 = 0.001;

/// A ROC or precision–recall curve with its area.
#[derive(Clone, Debug, PartialEq)]
pub struct RankCurve {
    points: Vec<(f64, f64)>,
    area: Option<f64>,
    /// The precision of scores without information.
    chance: Option<f64>,
    skipped: usize,
}

impl RankCurve {
    /// The ROC curve of scores, each with whether it is of a positive: true against false positive rates. Equal scores
    /// are one point, so the area is the probability that a positive has the higher score, ties counting half. Without
    /// positives or negatives there is no curve. Scores that are NaN count as [skipped](super::Figure::skipped).
    pub fn roc(scores: impl IntoIterator<Item = (f64, bool)>) -> Self {
        let (ranked, skipped) = ranked(scores);
        let positives = ranked.iter().filter(|score| score.1).count() as f64;
        let negatives = ranked.len() as f64 - positives;
        if positives == 0.0 || negatives == 0.0 {
            return Self { points: Vec::new(), area: None, chance: None, skipped };
        }
        let (mut points, mut area) = (vec![(0.0, 0.0)], 0.0);
        let (mut found, mut wrong) = (0.0, 0.0);
        for group in ranked.chunk_by(|a, b| a.0 == b.0) {
            let hits = group.iter().filter(|score| score.1).count() as f64;
            let misses = group.len() as f64 - hits;
            area += misses * (found + hits / 2.0);
            (found, wrong) = (found + hits, wrong + misses);
            points.push((wrong / negatives, found / positives));
        }
        Self { points: thinned(points), area: Some(area / positives / negatives), chance: None, skipped }
    }

    /// The precision–recall curve. The area is the average precision `Σ (Rₖ − Rₖ₋₁) Pₖ`, without interpolation, and the
    /// curve is drawn in the same steps. Without positives there is no curve.
    pub fn precision_recall(scores: impl IntoIterator<Item = (f64, bool)>) -> Self {
        let (ranked, skipped) = ranked(scores);
        let positives = ranked.iter().filter(|score| score.1).count() as f64;
        if positives == 0.0 {
            return Self { points: Vec::new(), area: None, chance: None, skipped };
        }
        let (mut points, mut area) = (Vec::new(), 0.0);
        let (mut found, mut seen) = (0.0, 0.0);
        for group in ranked.chunk_by(|a, b| a.0 == b.0) {
            let hits = group.iter().filter(|score| score.1).count() as f64;
            let before = found / positives;
            (found, seen) = (found + hits, seen + group.len() as f64);
            area += hits * found / seen;
            points.extend([(before, found / seen), (found / positives, found / seen)]);
        }
        let chance = Some(positives / ranked.len() as f64);
        Self { points: thinned(points), area: Some(area / positives), chance, skipped }
    }

    /// A curve that was computed elsewhere, with its area if it is known.
    pub fn from_points(points: impl IntoIterator<Item = (f64, f64)>, area: impl Into<Option<f64>>) -> Self {
        let area = area.into().filter(|area: &f64| area.is_finite());
        Self { points: points.into_iter().collect(), area, chance: None, skipped: 0 }
    }

    /// The area under the curve, if there is one.
    pub fn area(&self) -> Option<f64> {
        self.area
    }

    /// The points of the curve, from left to right.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
}

/// From the highest score to the lowest, and the number of scores that cannot be ordered.
fn ranked(scores: impl IntoIterator<Item = (f64, bool)>) -> (Vec<(f64, bool)>, usize) {
    let mut ranked: Vec<(f64, bool)> = scores.into_iter().collect();
    let all = ranked.len();
    ranked.retain(|score| !score.0.is_nan());
    // Adding zero makes −0 and 0 the same.
    ranked.sort_by(|a, b| (b.0 + 0.0).total_cmp(&(a.0 + 0.0)));
    let skipped = all - ranked.len();
    (ranked, skipped)
}

/// The curve without points next to the last one kept; both ends remain.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (at, &(x, y)) in points.iter().enumerate() {
        let far = kept.last().is_none_or(|last| (x - last.0).abs() >= STEP || (y - last.1).abs() >= STEP);
        if far || at + 1 == points.len() {
            kept.push((x, y));
        }
    }
    kept
}

impl Panel {
    /// ROC curves with their areas in the legend, and the diagonal of scores without information.
    pub fn roc<N: Into<String>>(title: impl Into<String>, curves: impl IntoIterator<Item = (N, RankCurve)>) -> Self {
        let axes = ["false positive rate", "true positive rate"];
        curves_panel(title.into(), axes, curves.into_iter().map(|(name, curve)| (name.into(), curve)).collect())
            .diagonal()
    }

    /// Precision–recall curves with their areas in the legend. A dashed line shows the fraction of positives if it is
    /// the same for all curves: the precision of scores without information.
    pub fn precision_recall<N: Into<String>>(
        title: impl Into<String>,
        curves: impl IntoIterator<Item = (N, RankCurve)>,
    ) -> Self {
        let curves: Vec<(String, RankCurve)> = curves.into_iter().map(|(name, curve)| (name.into(), curve)).collect();
        let chance = curves.first().and_then(|curve| curve.1.chance);
        let same = curves.iter().all(|curve| curve.1.chance == chance);
        let panel = curves_panel(title.into(), ["recall", "precision"], curves);
        match chance {
            Some(chance) if same => panel.horizontal(chance),
            _ => panel,
        }
    }
}

fn curves_panel(title: String, [x, y]: [&str; 2], curves: Vec<(String, RankCurve)>) -> Panel {
    // A little room, because curves run along the edges.
    let mut panel = Panel::new(title).x(Axis::linear(x).range(-0.01, 1.01)).y(Axis::linear(y).range(-0.01, 1.02));
    for (name, curve) in curves {
        let name = match (curve.area, name.is_empty()) {
            (Some(area), true) => format!("area {area:.3}"),
            (Some(area), false) => format!("{name} (area {area:.3})"),
            (None, _) => name,
        };
        panel.left_out += curve.skipped;
        panel.series.push(Series::new(name, curve.points, Look::Line));
    }
    panel
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;

    #[test]
    fn areas_are_known() {
        let scores = [(0.9, true), (0.8, false), (0.7, true), (0.1, false), (f64::NAN, true)];
        let roc = RankCurve::roc(scores);
        assert_eq!(roc.points(), [(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)]);
        assert_eq!((roc.area(), roc.skipped), (Some(0.75), 1));
        let curve = RankCurve::precision_recall(scores);
        assert!((curve.area().unwrap() - (0.5 + 0.5 * 2.0 / 3.0)).abs() < 1e-15);
        // Ties are one point, and count half.
        let tied = RankCurve::roc([(0.0, true), (-0.0, false)]);
        assert_eq!((tied.area(), tied.points().len()), (Some(0.5), 2));
        for one_sided in [vec![], vec![(1.0, false)], vec![(f64::NAN, true)]] {
            assert_eq!(RankCurve::roc(one_sided.clone()).area(), None);
            assert_eq!(RankCurve::precision_recall(one_sided).area(), None);
        }
    }

    #[test]
    fn curves_stay_small_and_name_their_area() {
        let scores = || (0..200_000_u32).map(|at| (f64::from(at.wrapping_mul(2_654_435_761) >> 8), at % 3 == 0));
        let curve = RankCurve::roc(scores());
        assert!(curve.points().len() < 2100 && (curve.area().unwrap() - 0.5).abs() < 0.01);
        let given = RankCurve::from_points([(0.0, 0.0), (f64::NAN, 0.5), (1.0, 1.0)], 0.625);
        let figure = Figure::new("").panel(Panel::roc("r", [("many", curve), ("given", given)]));
        assert_eq!(figure.skipped(), 1);
        let svg = figure.to_svg();
        assert!(svg.contains(">given (area 0.625)<") && svg.len() < 60_000, "{}", svg.len());
        let curves = [("a", RankCurve::precision_recall(scores())), ("", RankCurve::precision_recall(scores()))];
        let svg = Figure::new("").panel(Panel::precision_recall("p", curves)).to_svg();
        assert_eq!(svg.matches("stroke-dasharray=\"5 4\"").count(), 1, "one line of chance");
        assert!(svg.contains(">area 0.33"), "without a name");
    }
}
