//! The tables that an explanation writes.

use super::attribute::Attributed;
use crate::csv::{Table, number};
use crate::job::surrogate::Ids;
use mercer_lens::neighbours::Neighbour;
use mercer_lens::{Doubt, Example, LocalGap};

/// All files that an explanation may write.
pub(super) const NAMES: [&str; 13] = [
    "faithfulness.svg",
    "means.svg",
    "boxes.svg",
    "examples.svg",
    "top.csv",
    "examples.csv",
    "local.csv",
    "scores.npy",
    "network_scores.npy",
    "distribution.npy",
    "means.npy",
    "attribution.npy",
    "layers.npy",
];

/// The largest and smallest attributions of every score. Positive ranks count from the largest, negative ones from the
/// smallest.
pub(super) fn top(found: &Attributed, classes: &[String], ids: &Ids) -> Table {
    let mut table = Table::new(&["test", "class", "rank", "train", "attribution", "kernel"]);
    for (test, own) in found.summaries.iter().enumerate() {
        for (class, summary) in own {
            let mut line = |rank: i64, example: &Example| {
                table.line(&[
                    &test.to_string(),
                    &classes[*class],
                    &rank.to_string(),
                    &ids.name(example.train),
                    &number(example.attribution),
                    &number(example.kernel),
                ]);
            };
            // With few training samples the two ends meet; a sample is listed once.
            let n_listed = summary.supporting.len();
            summary.supporting.iter().enumerate().for_each(|(at, example)| line(at as i64 + 1, example));
            let listed = |example: &&Example| summary.supporting.iter().any(|other| other.train == example.train);
            let others = summary.opposing.iter().filter(|example| !listed(example)).take(n_listed);
            others.enumerate().for_each(|(at, example)| line(-(at as i64) - 1, example));
        }
    }
    table
}

/// The training samples with the largest kernel values, for every kernel.
pub(super) fn examples(kernels: &[(String, Vec<Vec<Neighbour>>)], ids: &Ids) -> Table {
    let mut table = Table::new(&["test", "kernel", "rank", "train", "value"]);
    let n_test = kernels.first().map_or(0, |(_, samples)| samples.len());
    for test in 0..n_test {
        for (kernel, samples) in kernels {
            for (rank, neighbour) in samples[test].iter().enumerate() {
                let (rank, value) = ((rank + 1).to_string(), number(neighbour.value));
                table.line(&[&test.to_string(), kernel, &rank, &ids.name(neighbour.index), &value]);
            }
        }
    }
    table
}

/// Network and surrogate, sample by sample.
pub(super) fn local(gaps: &[LocalGap], correct: Option<&[usize]>, compared: &[usize], classes: &[String]) -> Table {
    let mut table = Table::new(&[
        "test",
        "label",
        "compared",
        "network",
        "surrogate",
        "network_log_odds",
        "surrogate_log_odds",
        "gap",
        "warning",
    ]);
    for (test, gap) in gaps.iter().enumerate() {
        let label = correct.map(|correct| classes[correct[test]].as_str()).unwrap_or_default();
        let warning = match gap.doubt {
            None => "",
            Some(Doubt::OtherDecision) => "the surrogate decides for another class",
            Some(Doubt::LargeGap) => "the surrogate is far more or less certain than the network",
        };
        table.line(&[
            &test.to_string(),
            label,
            &classes[compared[test]],
            &classes[gap.network],
            &classes[gap.surrogate],
            &number(gap.network_odds),
            &number(gap.surrogate_odds),
            &number(gap.gap()),
            warning,
        ]);
    }
    table
}
