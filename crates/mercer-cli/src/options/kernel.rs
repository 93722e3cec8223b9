//! Which kernel, and of which network.

use super::ParameterOptions;
use mercer::spec::KernelSpec;
use std::path::PathBuf;

/// The options of a kernel, for all commands that need one.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Kernel")]
pub(crate) struct KernelOptions {
    /// Which kernel, as in trace, 'normalised(ck)' or '0.5*ck + rbf(lengthscale=2)'; `mercer help kernel` lists them
    #[arg(long, value_name = "EXPRESSION")]
    kernel: Option<String>,

    /// The network
    #[arg(long, value_name = "MODEL.onnx")]
    net: Option<PathBuf>,

    /// A network described in TOML, with random weights; `mercer help train` shows descriptions
    #[arg(long, value_name = "FILE.toml", conflicts_with = "net")]
    arch: Option<PathBuf>,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl KernelOptions {
    /// Whether there is a kernel or a network.
    pub(crate) fn is_given(&self) -> bool {
        self.kernel.is_some() || self.net.is_some() || self.arch.is_some()
    }

    /// As data.
    pub(crate) fn spec(&self, parameters: &ParameterOptions) -> KernelSpec {
        KernelSpec {
            kernel: self.kernel.clone(),
            net: self.net.clone(),
            arch: self.arch.clone(),
            parameters: parameters.spec(),
            seed: self.seed,
        }
    }
}
