//! How the weights of infinitely wide and of random networks are distributed.

use super::kind::KernelKind;
use crate::failure::Failure;
use mercer::kernel::infinite::{Parametrisation, Rule, Variances};
use mercer::net::arch::Initialisation;
use std::num::NonZeroUsize;

/// Random networks over which to average, if nothing is said.
const DEFAULT_SAMPLES: usize = 100;

/// The distribution of weights.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Random weights (--kind nngp, ntk-limit, nngp-mc, ntk-mc)")]
pub(crate) struct RandomOptions {
    /// Average over so many random networks [default: 100]
    #[arg(long, value_name = "S")]
    samples: Option<NonZeroUsize>,

    /// Variances of weights and biases by this rule [default: that of --arch, or standard]
    #[arg(long, value_name = "NAME", conflicts_with = "weight_std")]
    initialisation: Option<InitialisationName>,

    /// Weights of variance σ²/fan-in in every layer
    #[arg(long, value_name = "σ", allow_negative_numbers = true)]
    weight_std: Option<f64>,

    /// Biases of variance σ² in every layer that has them [default: 0]
    #[arg(long, value_name = "σ", requires = "weight_std", allow_negative_numbers = true)]
    bias_std: Option<f64>,

    /// Which parameters gradients are taken in [default: as-written, or ntk with --weight-std]
    #[arg(long, value_name = "NAME")]
    parametrisation: Option<ParametrisationName>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum InitialisationName {
    /// Variance 1/(3·fan-in), biases too: PyTorch's default
    Standard,
    /// Variance 2/fan-in, biases 0
    He,
    /// Variance 1/fan-in, biases 0
    Lecun,
    /// Variance 1; the network itself has the scales
    Ntk,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ParametrisationName {
    /// Those that the network has
    AsWritten,
    /// σ_w/√fan-in · W x + σ_b b with weights of variance 1
    Ntk,
    /// W x + b with the fan-in that the network has
    Standard,
}

impl RandomOptions {
    /// The rule that the flags and the source say.
    pub(crate) fn rule(&self, own: Initialisation) -> Rule {
        let (variances, usual) = match self.weight_std {
            Some(weight) => {
                let bias = self.bias_std.unwrap_or(0.0);
                (Variances::Deviations { weight, bias }, Parametrisation::Ntk)
            }
            None => {
                let named = self.initialisation.map(|name| match name {
                    InitialisationName::Standard => Initialisation::Standard,
                    InitialisationName::He => Initialisation::He,
                    InitialisationName::Lecun => Initialisation::LeCun,
                    InitialisationName::Ntk => Initialisation::Ntk,
                });
                (Variances::Initialisation(named.unwrap_or(own)), Parametrisation::AsWritten)
            }
        };
        let parametrisation = self.parametrisation.map_or(usual, |name| match name {
            ParametrisationName::AsWritten => Parametrisation::AsWritten,
            ParametrisationName::Ntk => Parametrisation::Ntk,
            ParametrisationName::Standard => Parametrisation::Standard,
        });
        Rule { variances, parametrisation }
    }

    /// Random networks to average over.
    pub(crate) fn samples(&self) -> usize {
        self.samples.map_or(DEFAULT_SAMPLES, NonZeroUsize::get)
    }

    /// Flags that mean nothing for a kind are refused instead of ignored.
    pub(crate) fn check(&self, kind: KernelKind) -> Result<(), Failure> {
        let flags = [
            ("--initialisation", self.initialisation.is_some()),
            ("--weight-std", self.weight_std.is_some()),
            ("--parametrisation", self.parametrisation.is_some()),
        ];
        if let Some((flag, _)) = flags.iter().find(|(_, given)| *given && !kind.draws_weights()) {
            return Err(Failure::new(format!("{flag}: --kind {kind} is of the weights that the network has"))
                .hint("--kind nngp, ntk-limit, nngp-mc or ntk-mc"));
        }
        if self.samples.is_some() && !matches!(kind, KernelKind::MonteCarlo(_)) {
            return Err(Failure::new(format!("--samples: --kind {kind} is no average over random networks"))
                .hint("--kind nngp-mc or ntk-mc"));
        }
        Ok(())
    }
}
