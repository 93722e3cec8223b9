//! Settings shared by every kind of training.

use clap::Arg;
use std::num::NonZeroUsize;

/// The size of a step.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct StepOptions {
    /// Samples per training step
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<NonZeroUsize>,

    /// Learning rate
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub(crate) learning_rate: Option<f64>,
}

/// Help of `--weight-decay`.
pub(crate) const WEIGHT_DECAY: &str = "Weight decay of the training; decoupled from the gradient in adamw";

/// Adds a default to the help text; the command chooses it, not the flag.
pub(crate) fn with_default(arg: Arg, default: &str) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    arg.help(format!("{help} [default: {default}]"))
}
