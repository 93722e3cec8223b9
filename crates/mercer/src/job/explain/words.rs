//! What a kernel sees of a network, and which surrogate to use, in words.

use super::findings::SurrogateFindings;
use crate::job::surrogate::FitTo;
use mercer_kernel::Recipe;
use serde::Serialize;

/// What part of a network a kernel sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// Only the samples.
    Inputs,
    /// Only the architecture, with random weights.
    Architecture,
    /// Only the last hidden layer.
    LastLayer,
    /// The activations of some layers.
    SomeLayers,
    /// The gradients of some parameters.
    SomeParameters,
    /// The gradients of all parameters.
    AllParameters,
}

impl Sight {
    /// Of a kernel. A combination sees what its best part sees.
    pub(crate) fn of_recipe(recipe: &Recipe) -> Self {
        match recipe {
            Recipe::Classic(_) => Self::Inputs,
            Recipe::Limit { .. } | Recipe::MonteCarlo { .. } => Self::Architecture,
            Recipe::Conjugate { .. } => Self::LastLayer,
            Recipe::Embedding(_) => Self::SomeLayers,
            Recipe::Tangent { selection, .. } | Recipe::Directions { selection, .. } => {
                if selection.parameters.is_empty() { Self::AllParameters } else { Self::SomeParameters }
            }
            Recipe::Sketch(spec) => {
                if spec.selection.parameters.is_empty() {
                    Self::AllParameters
                } else {
                    Self::SomeParameters
                }
            }
            Recipe::Normalised(inner) | Recipe::Scaled { kernel: inner, .. } => Self::of_recipe(inner),
            Recipe::Sum(parts) | Recipe::Product(parts) => {
                parts.iter().map(Self::of_recipe).max().unwrap_or(Self::Inputs)
            }
            _ => Self::Inputs,
        }
    }

    /// In words, after "the kernel sees".
    fn words(self) -> &'static str {
        match self {
            Self::Inputs => "only the samples, not the network",
            Self::Architecture => "only the architecture, not the trained weights",
            Self::LastLayer => "only the last hidden layer",
            Self::SomeLayers => "the activations of the chosen layers",
            Self::SomeParameters => "the gradients of the chosen parameters",
            Self::AllParameters => "the gradients of all parameters",
        }
    }
}

/// A τ in words, with its interval.
fn tau(found: &SurrogateFindings) -> String {
    let Some(tau) = found.faithfulness.tau else { return "no τ, because all scores are equal".to_owned() };
    match found.faithfulness.tau_interval {
        Some([low, high]) => format!("τ {tau:.3} [{low:.3}, {high:.3}]"),
        None => format!("τ {tau:.3}"),
    }
}

/// Whether the intervals of two surrogates overlap.
fn overlap(a: &SurrogateFindings, b: &SurrogateFindings) -> bool {
    match (a.faithfulness.tau_interval, b.faithfulness.tau_interval) {
        (Some([low_a, high_a]), Some([low_b, high_b])) => low_a <= high_b && low_b <= high_a,
        _ => false,
    }
}

/// Which surrogate to use and what to keep in mind, one sentence each. The surrogates are in the order of their
/// faithfulness.
pub(super) fn recommendation(surrogates: &[SurrogateFindings]) -> Vec<String> {
    let Some(best) = surrogates.first() else { return Vec::new() };
    let mut sentences = Vec::new();
    let is_own_layer = |found: &SurrogateFindings| {
        found.to == FitTo::Network && found.sees == Sight::LastLayer && !found.kernel.starts_with("normalised")
    };
    let several_machines = surrogates.iter().any(|found| found.machine != best.machine);
    let name = |found: &SurrogateFindings| match several_machines {
        true => format!("{} with {}", found.kernel, found.machine),
        false => found.kernel.clone(),
    };
    // Among those that are as faithful, the one that sees most of the network, and of these the most faithful.
    let equals: Vec<&SurrogateFindings> =
        surrogates.iter().filter(|found| std::ptr::eq(*found, best) || overlap(found, best)).collect();
    let honest = surrogates.iter().filter(|found| !is_own_layer(found)).collect::<Vec<_>>();
    let advised = match equals.iter().rev().filter(|found| !is_own_layer(found)).max_by_key(|found| found.sees) {
        Some(found) => *found,
        None => honest.first().copied().unwrap_or(best),
    };
    if surrogates.len() == 1 {
        sentences.push(format!("{} sees {}; {}.", advised.kernel, advised.sees.words(), tau(advised)));
    } else if std::ptr::eq(advised, best) {
        let text = format!("Use {}: the most faithful, with {}; it sees {}.", name(best), tau(best), best.sees.words());
        sentences.push(text);
    } else {
        let reason = if overlap(advised, best) { "as faithful within the intervals" } else { "the next faithful" };
        sentences.push(format!(
            "Use {}: {reason} ({}; {} has {}), and it sees {}.",
            name(advised),
            tau(advised),
            name(best),
            tau(best),
            advised.sees.words()
        ));
    }
    // One sentence per kernel, however many machines were fitted on it.
    let mut told = |kernel: &str, rest: &str| {
        let text = format!("{kernel} {rest}");
        if !sentences.contains(&text) {
            sentences.push(text);
        }
    };
    for found in surrogates.iter().filter(|found| is_own_layer(found)) {
        told(
            &found.kernel,
            "is faithful by construction: fitted to the network's own outputs, it is the last layer itself. It explains \
             nothing below that layer.",
        );
    }
    let blind = surrogates.iter().filter(|found| found.sees <= Sight::LastLayer && !is_own_layer(found));
    for found in blind.filter(|found| surrogates.len() > 1 || found.sees < Sight::LastLayer) {
        told(&found.kernel, &format!("sees {}.", found.sees.words()));
    }
    for found in surrogates.iter().filter(|found| found.converged == Some(false)) {
        sentences
            .push(format!("The {} on {} did not converge: its numbers are not final.", found.machine, found.kernel));
    }
    if let Some(low) = advised.faithfulness.tau.filter(|tau| *tau < LOW) {
        sentences.push(format!(
            "A τ of {low:.2} is low: where network and surrogate differ, the attribution explains the surrogate, not \
             the network."
        ));
    }
    sentences
}

/// The report finds τ of at least 0.7 in all of its experiments, and 0.4 to 0.5 where surrogates fail.
const LOW: f64 = 0.6;
