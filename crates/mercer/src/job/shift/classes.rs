//! What the network's decisions say: rates of classes, and the accuracy on samples without labels.

use super::findings::{AccuracyFindings, LabelShiftFindings};
use super::opened::OpenedShift;
use super::passes::{FirstPass, Matched};
use crate::Error;
use mercer_lens::shift::{
    Permutations, View, corrected, decision_statistics, estimated_accuracy, label_shift, matched_rows,
};

/// Bootstrap samples behind the intervals of rates.
const RESAMPLES: usize = 200;

/// Fewer old samples with the rates of the new ones cannot be compared with these.
const LEAST_MATCHED: usize = 20;

/// What the decisions say.
pub(super) struct Decisions {
    /// The statistics of the test that the decisions differ.
    pub(super) statistics: Vec<f64>,
    pub(super) labels: LabelShiftFindings,
    pub(super) accuracy: AccuracyFindings,
    /// Old samples to compare with the new ones.
    pub(super) matched: Option<Matched>,
}

impl OpenedShift {
    /// Looks at the decisions of the network, if there are labels.
    pub(super) fn decisions(&self, first: &FirstPass, permutations: &Permutations) -> Result<Option<Decisions>, Error> {
        let Some(classes) = &self.classes else { return Ok(None) };
        let n_classes = classes.n_classes();
        let decisions: Vec<usize> = first.decided.iter().map(|one| one.class).collect();
        let statistics = decision_statistics(&decisions, n_classes, permutations)?;
        let (own, other) = decisions.split_at(permutations.n_first());
        let rates = label_shift((classes.indices(), own), other, n_classes, RESAMPLES, self.job.seed)?;
        let matched = rates.as_ref().map(|rates| matched_rows(classes.indices(), &rates.second, self.job.seed));
        let matched = match matched.transpose()?.filter(|rows| rows.len() >= LEAST_MATCHED) {
            None => None,
            Some(rows) => {
                let drawn = Permutations::draw(rows.len(), other.len(), self.job.permutations, self.job.seed)?;
                let view = View::new(first.pilot.view(), drawn.n_columns(), self.job.frequencies, self.job.seed)?;
                Some(Matched { rows, permutations: drawn, view })
            }
        };
        let (decided, undecided) = first.decided.split_at(permutations.n_first());
        let estimates = estimated_accuracy(decided, Some((classes.indices(), n_classes)), undecided)?;
        let test = self.test_classes.as_ref().map(|truth| {
            let right = truth.iter().zip(other).filter(|(truth, decision)| truth == decision).count();
            right as f64 / truth.len().max(1) as f64
        });
        let labels = LabelShiftFindings {
            classes: classes.names().to_vec(),
            rates,
            n_matched: matched.as_ref().map(|matched| matched.rows.len()),
            matched_p_value: None,
        };
        Ok(Some(Decisions { statistics, labels, accuracy: AccuracyFindings { estimates, test }, matched }))
    }
}

impl Matched {
    /// The corrected p-value of the comparison.
    pub(super) fn p_value(self) -> Result<f64, Error> {
        let (_, found) = self.view.fit()?;
        Ok(corrected(&[found.linear, found.gaussian, found.classifier])?.least)
    }
}
