//! How the weights of infinitely wide and of random networks are distributed.

use mercer::kernel::infinite::Parametrisation;
use mercer::net::arch::Initialisation;
use mercer::spec::RandomSpec;
use std::num::NonZeroUsize;

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
    /// As data.
    pub(crate) fn spec(&self) -> RandomSpec {
        RandomSpec {
            samples: self.samples.map(NonZeroUsize::get),
            initialisation: self.initialisation.map(|name| match name {
                InitialisationName::Standard => Initialisation::Standard,
                InitialisationName::He => Initialisation::He,
                InitialisationName::Lecun => Initialisation::LeCun,
                InitialisationName::Ntk => Initialisation::Ntk,
            }),
            weight_std: self.weight_std,
            bias_std: self.bias_std,
            parametrisation: self.parametrisation.map(|name| match name {
                ParametrisationName::AsWritten => Parametrisation::AsWritten,
                ParametrisationName::Ntk => Parametrisation::Ntk,
                ParametrisationName::Standard => Parametrisation::Standard,
            }),
        }
    }
}
