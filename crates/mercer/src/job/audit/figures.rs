//! Figures of an audit.

use super::opened::OpenedAudit;
use crate::Error;
use crate::job::folder::ResultFolder;
use mercer_lens::audit::{Review, review_curve};
use mercer_report::figure::{Axis, Figure, Panel, RankCurve, Series};

/// If the truth is known: wrong samples found against samples inspected, and precision against recall.
pub(super) fn write(folder: &ResultFolder, opened: &OpenedAudit, list: &[Review]) -> Result<(), Error> {
    let Some(truth) = &opened.truth else { return Ok(()) };
    let mut scores = vec![0.0; list.len()];
    list.iter().for_each(|entry| scores[entry.index] = entry.score);
    let curve = review_curve(&scores, truth, 400)?;
    let n_wrong = truth.iter().filter(|wrong| **wrong).count().max(1) as f64;
    let all = list.len().max(1) as f64;
    let points = curve.iter().map(|point| (point.inspected as f64 / all, point.found / n_wrong));
    let panel = Panel::lines(
        "",
        Axis::linear("share of samples inspected").range(0.0, 1.0),
        Axis::linear("share of wrong samples found").range(0.0, 1.0),
        [
            Series::line("combined score", points.collect::<Vec<_>>()),
            Series::line("at random", vec![(0.0, 0.0), (1.0, 1.0)]),
        ],
    );
    let ranked = RankCurve::precision_recall(scores.iter().copied().zip(truth.iter().copied()));
    let precision = Panel::precision_recall("", [("combined score", ranked)]);
    folder.file("found.svg", Figure::new("").panel(panel).panel(precision).to_svg().as_bytes())
}
