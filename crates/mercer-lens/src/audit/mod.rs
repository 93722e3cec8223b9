//! Training data that looks wrong.
//!
//! Several ways of looking at a training set each give an [`Opinion`]: a score per sample (higher is more suspicious),
//! the label it would suggest, and the reason in words.
//!
//! | opinion | score |
//! |---|---|
//! | [`neighbour_disagreement`] | the share of the nearest samples with another label |
//! | [`out_of_fold`] | one minus the out-of-fold probability of the label, or the margin to the best other class |
//! | [`leave_one_out`] | the margin by which leave-one-out scores prefer another class |
//! | [`leave_one_out_residuals`] | the length of the leave-one-out residual |
//! | [`conflicting_duplicates`] | the share of its copies with another label |
//! | [`Opinion::from_scores`] | any other score, such as self-influence or a spectral signature |
//!
//! [`review`] combines them: the score of a sample is the weighted mean of its normalised ranks
//! ([`joint_ranks`](crate::ranks::joint_ranks)), which needs no common scale. [`measure`] says how good such a list
//! is where the truth is known.

mod measure;
mod neighbours;
mod probabilities;
mod reason;
mod review;

pub use measure::{AtBudget, AuditMeasures, CurvePoint, measure, review_curve};
pub use neighbours::{Votes, conflicting_duplicates, neighbour_disagreement};
pub use probabilities::{
    Confidence, ConfidentJoint, confident_joint, leave_one_out, leave_one_out_residuals, out_of_fold,
};
pub use reason::Reason;
pub use review::{Review, review};

use crate::error::Result;
use crate::ranks::normalised_ranks;
use serde::Serialize;

/// From this normalised rank on, a score without a suggestion is a reason by itself.
const REMARKABLE: f64 = 0.95;

/// What one way of looking says about every sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Opinion {
    /// The score of every sample; higher is more suspicious.
    pub scores: Vec<f64>,
    /// The label that this opinion would give, which may be the label that the sample has.
    pub suggested: Vec<Option<usize>>,
    /// Why the sample looks wrong; `None` if it does not.
    pub reasons: Vec<Option<Reason>>,
}

impl Opinion {
    /// An opinion from any score. It suggests no label. The twentieth part of the samples with the highest scores have
    /// the score as a reason, unless all scores are tied.
    ///
    /// # Errors
    /// For scores that are not finite.
    pub fn from_scores(name: &str, scores: Vec<f64>) -> Result<Self> {
        let ranks = normalised_ranks(&scores)?;
        let (of, mut descending) = (scores.len(), scores.clone());
        descending.sort_unstable_by(|a, b| b.total_cmp(a));
        let reason = |(&score, rank): (&f64, f64)| {
            let place = 1 + descending.partition_point(|&other| other > score);
            (rank >= REMARKABLE).then(|| Reason::Score { name: name.to_owned(), score, place, of })
        };
        let reasons = scores.iter().zip(ranks).map(reason).collect();
        Ok(Self { suggested: vec![None; scores.len()], reasons, scores })
    }
}

/// The largest entry; the own class wins a tie, otherwise the smaller class does.
fn winner(votes: &[f64], own: usize) -> usize {
    let most = votes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if votes[own] == most { own } else { votes.iter().position(|&vote| vote == most).unwrap_or(own) }
}
