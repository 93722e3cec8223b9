//! `auto`: the richest posterior that fits into the memory.
//!
//! The order is that of what a posterior keeps: all parameters exactly, with Kronecker factors, then the last layer alone,
//! exactly, with Kronecker factors, and without correlations. A diagonal of all parameters knows more parameters than a last
//! layer and is less calibrated nevertheless (Daxberger et al. 2021, arXiv 2106.14806); it is taken only where there is no
//! linear last layer, or where parameters were chosen. Sketches and eigenfunctions have sizes that somebody has to choose.
//!
//! The choice is the same for the same limit. What the process holds is therefore counted in steps, and without a limit the
//! choice counts on a fixed one. The job that is recorded has the method that was chosen.

use super::opened::Parts;
use super::{PosteriorMethod, PosteriorMethodName, UncertaintyJob};
use crate::Error;
use crate::text::{bytes, suggested};
use mercer_kernel::Real;
use mercer_learn::laplace::Likelihood;
use mercer_net::Network;
use mercer_run::names::Named;
use mercer_run::{Context, resident_memory};
use serde::Serialize;

/// From the richest to the smallest.
const ORDER: [PosteriorMethodName; 6] = [
    PosteriorMethodName::Full,
    PosteriorMethodName::Kron,
    PosteriorMethodName::LastLayerFull,
    PosteriorMethodName::LastLayerKron,
    PosteriorMethodName::LastLayerDiag,
    PosteriorMethodName::Diag,
];

/// What `auto` counts on where nobody set a limit, so that its choice does not depend on the machine.
const USUAL: usize = 2 << 30;

/// What the process itself is counted as, at least.
const PROCESS: usize = 256 << 20;

/// What was chosen, and what the next better posterior would need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AutoChoice {
    /// The method that was chosen.
    pub method: &'static str,
    /// The memory that it had to fit into.
    pub allowed_bytes: usize,
    /// Whether it does.
    pub fits: bool,
    /// The next better method; none if the best one fits.
    pub better: Option<Better>,
}

/// A method that did not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Better {
    /// The method.
    pub method: &'static str,
    /// The memory for which it would be chosen.
    pub bytes: usize,
}

impl AutoChoice {
    /// As a sentence.
    fn text(&self) -> String {
        let (method, allowed) = (self.method, bytes(self.allowed_bytes));
        let fits = if self.fits { "the best posterior that fits into" } else { "the smallest posterior, for" };
        let better = match &self.better {
            Some(Better { method, bytes }) => format!("; {method} is better and takes ‹memory› {}", suggested(*bytes)),
            None => String::new(),
        };
        format!("‹method› auto is {method}, {fits} {allowed}{better}")
    }
}

impl UncertaintyJob {
    /// The job with a method in the place of `auto`.
    pub(super) fn decided<T: Real>(
        &self,
        network: &Network,
        parts: &Parts,
        likelihood: Likelihood,
        context: &Context,
    ) -> Result<(Self, Option<AutoChoice>), Error> {
        if self.method != PosteriorMethod::Auto {
            return Ok((self.clone(), None));
        }
        let held = resident_memory().next_power_of_two().max(PROCESS);
        let allowed_bytes = context.promised_memory().unwrap_or_else(|| context.memory().min(USUAL));
        let (mut tried, mut failure) = (Vec::new(), None);
        for name in ORDER {
            if name == PosteriorMethodName::Diag && tried.iter().any(|&(tried, _)| is_of_last_layer(tried)) {
                break;
            }
            let job = Self { method: name.into(), ..self.clone() };
            let settings = job.settings(likelihood, parts.train.n_samples)?;
            match job.needs::<T>(network, parts, &settings) {
                Ok(needs) => tried.push((name, needs.own_bytes.saturating_add(held))),
                // Such as a network without a linear last layer.
                Err(error) => failure = failure.or(Some(error)),
            }
            if tried.last().is_some_and(|&(_, bytes)| bytes <= allowed_bytes) {
                break;
            }
        }
        // If nothing fits, the smallest: the check of the memory says what it needs.
        let Some((name, bytes)) = tried.pop() else {
            return Err(failure.unwrap_or_else(|| Error::new("‹method› auto: this network has no posterior")));
        };
        let better = tried.pop().map(|(name, bytes)| Better { method: name.name(), bytes });
        let choice = AutoChoice { method: name.name(), allowed_bytes, fits: bytes <= allowed_bytes, better };
        context.note(&choice.text());
        Ok((Self { method: name.into(), ..self.clone() }, Some(choice)))
    }
}

fn is_of_last_layer(name: PosteriorMethodName) -> bool {
    use PosteriorMethodName::{LastLayerDiag, LastLayerFull, LastLayerKron};
    matches!(name, LastLayerFull | LastLayerKron | LastLayerDiag)
}
