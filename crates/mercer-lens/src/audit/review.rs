//! The list of samples to look at, most suspicious first.

use super::{Opinion, Reason};
use crate::checks::{check_count, check_rows};
use crate::error::Result;
use crate::ranks::{joint_ranks, normalised_ranks};
use serde::Serialize;

/// One sample of the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Review {
    /// Its place, from 1.
    pub rank: usize,
    /// The sample.
    pub index: usize,
    /// Its label.
    pub label: usize,
    /// The label that the opinions would give; `None` if none of them suggests one.
    pub suggested: Option<usize>,
    /// Its ranks by all opinions in one number between 0 and 1 ([`joint_ranks`](crate::ranks::joint_ranks)).
    pub score: f64,
    /// Why it looks wrong, the strongest reason first; empty if no opinion speaks against its label.
    pub reasons: Vec<Reason>,
}

/// Combines opinions, each with its weight, into one list of all samples.
///
/// Equal scores are ordered by index. The suggested label has most votes, where an opinion votes with its weight times
/// the normalised rank of the sample in it; a tie goes to the smaller class.
///
/// ```
/// use mercer_lens::audit::{Confidence, out_of_fold, review};
/// let opinion = out_of_fold(ndarray::array![[0.9, 0.1], [0.98, 0.02]].view(), &[0, 1], Confidence::OfLabel)?;
/// let list = review(&[0, 1], &[(&opinion, 1.0)])?;
/// assert_eq!((list[0].index, list[0].label, list[0].suggested), (1, 1, Some(0)));
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For no samples, no opinions, opinions about another number of samples, scores that are not finite, and weights that
/// are negative or all zero.
pub fn review(labels: &[usize], opinions: &[(&Opinion, f64)]) -> Result<Vec<Review>> {
    let n = labels.len();
    check_count("an audit", 1, n)?;
    for (opinion, _) in opinions {
        check_rows("the scores of an opinion", n, opinion.scores.len())?;
        check_rows("the suggestions of an opinion", n, opinion.suggested.len())?;
        check_rows("the reasons of an opinion", n, opinion.reasons.len())?;
    }
    let weighted: Vec<(&[f64], f64)> = opinions.iter().map(|(opinion, weight)| (&*opinion.scores, *weight)).collect();
    let scores = joint_ranks(&weighted)?;
    let ranks = weighted.iter().map(|(scores, _)| normalised_ranks(scores)).collect::<Result<Vec<_>>>()?;
    let order = suspicious_first(&scores);
    let entry = |(place, index): (usize, usize)| {
        let mut reasons: Vec<(f64, &Reason)> = opinions
            .iter()
            .zip(&ranks)
            .filter_map(|((opinion, _), ranks)| Some((ranks[index], opinion.reasons[index].as_ref()?)))
            .collect();
        reasons.sort_by(|a, b| b.0.total_cmp(&a.0));
        let votes = opinions
            .iter()
            .zip(&ranks)
            .filter_map(|((opinion, weight), ranks)| Some((opinion.suggested[index]?, weight * ranks[index])));
        Review {
            rank: place + 1,
            index,
            label: labels[index],
            suggested: elected(votes.collect()),
            score: scores[index],
            reasons: reasons.into_iter().map(|reason| reason.1.clone()).collect(),
        }
    };
    Ok(order.into_iter().enumerate().map(entry).collect())
}

/// Samples by descending score; equal scores by index.
pub(super) fn suspicious_first(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&i, &j| (scores[j] + 0.0).total_cmp(&(scores[i] + 0.0)));
    order
}

/// The class with most votes; the smaller one of a tie.
fn elected(mut votes: Vec<(usize, f64)>) -> Option<usize> {
    votes.sort_by_key(|vote| vote.0);
    let mut best: Option<(usize, f64)> = None;
    for group in votes.chunk_by(|a, b| a.0 == b.0) {
        let sum = group.iter().map(|vote| vote.1).sum();
        if best.is_none_or(|(_, most)| sum > most) {
            best = Some((group[0].0, sum));
        }
    }
    best.map(|(class, _)| class)
}
