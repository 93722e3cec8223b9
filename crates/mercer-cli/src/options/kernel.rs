//! Which kernel, and of which network.

use super::{ARCH, NET, ParameterOptions, SeedOption};
use mercer::spec::KernelSpec;
use std::path::PathBuf;

/// Help of `--kernel`, shared by all commands.
pub(crate) const KERNEL: &str = "Kernel, such as trace, 'normalised(ck)' or 'ck + 0.1*rbf' (see `mercer help kernel`)";

/// The kernel options, shared by all commands that need a kernel.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Kernel")]
pub(crate) struct KernelOptions {
    #[arg(long, value_name = "EXPRESSION", help = KERNEL)]
    kernel: Option<String>,

    #[arg(long, value_name = "MODEL.onnx", help = NET)]
    net: Option<PathBuf>,

    #[arg(long, value_name = "FILE.toml", help = ARCH, conflicts_with = "net")]
    arch: Option<PathBuf>,

    #[command(flatten)]
    seed: SeedOption,
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
            seed: self.seed.seed,
        }
    }
}
