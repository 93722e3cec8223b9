//! The number of eigenfunctions and of landmarks.

/// How many functions.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Eigenfunctions")]
pub(crate) struct ComponentsOption {
    /// Number of eigenfunctions
    #[arg(short = 'k', long = "components", id = "k", value_name = "K", default_value_t = 10)]
    pub(crate) k: usize,
}

/// How many landmarks.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Eigenfunctions")]
pub(crate) struct LandmarksOption {
    /// Number of landmarks: the samples that eigenfunctions are built from
    #[arg(long, value_name = "M")]
    pub(crate) landmarks: Option<usize>,
}
