//! What a machine would say without some of its training samples.
//!
//! | | one sample, all at once | a group |
//! |---|---|---|
//! | ridge | [`RidgeInfluence`], closed form | [`RidgeInfluence::leave_out`], closed form |
//! | multinomial model | [`GlmInfluence`], one Newton step with the exact Hessian; up to some thousand samples | [`Removal::one_step`], [`Removal::leave_out`] (a refit); any number of samples |
//!
//! An attribution says which share of a score belongs to a sample. An influence says how the score would change without
//! it, when the others take over its work.

mod glm;
mod removal;
mod ridge;

pub use glm::GlmInfluence;
pub use removal::Removal;
pub use ridge::RidgeInfluence;

use super::rows::DualRows;
use crate::error::{Result, check_size, setting};
use mercer_run::Context;
use ndarray::{Array1, Array2};

/// The effects of removing training samples one at a time.
pub trait Influence {
    /// `f⁻ⁱ(x) − f(x)` of one output: a row per query, a column per training sample.
    ///
    /// # Errors
    /// For queries of another kind or width, an output that does not exist, and numbers that are not finite.
    fn effects(&self, queries: &DualRows<'_>, class: usize, context: &Context) -> Result<Array2<f64>>;

    /// The effect of every training sample on its own scores: a row per sample, a column per output.
    fn own(&self) -> &Array2<f64>;

    /// The effect of every training sample on its own score of one class, usually its own.
    ///
    /// # Errors
    /// For another number of classes than samples, and a class that does not exist.
    fn self_influence(&self, classes: &[usize]) -> Result<Array1<f64>> {
        let own = self.own();
        check_size("the number of classes", own.nrows(), classes.len())?;
        let value = |(row, &class): (usize, &usize)| {
            super::machine::check_class(class, own.ncols())?;
            Ok(own[(row, class)])
        };
        classes.iter().enumerate().map(value).collect()
    }
}

/// A group of samples, each once, ascending.
fn checked_group(group: &[usize], n_samples: usize) -> Result<Vec<usize>> {
    let mut group = group.to_vec();
    group.sort_unstable();
    group.dedup();
    match group.last() {
        None => Err(setting("the group", "empty", "there must be one sample at least")),
        Some(&last) if last >= n_samples => Err(setting("a sample of the group", last, "there are fewer samples")),
        Some(_) => Ok(group),
    }
}
