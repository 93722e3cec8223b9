//! A node of a network.

/// Which value of a network is meant.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NodeOption {
    /// Output or node of the network (`mercer info` lists them)
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
}
