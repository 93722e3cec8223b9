//! Settings of the computation that many commands share.

use super::choice;
use mercer::spec::Precision;

/// The precision to compute in.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct PrecisionOption {
    /// Compute in single or double precision
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = choice::<Precision>())]
    pub(crate) precision: Precision,
}

/// The seed of random numbers.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct SeedOption {
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}
