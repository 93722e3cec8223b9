//! Where a kernel comes from: a network file, the description of an architecture, or a formula.

use crate::failure::Failure;
use crate::options::{ParameterOptions, open_architecture, open_network};
use mercer::kernel::classic::{ClassicError, Expression};
use mercer::net::Network;
use mercer::net::arch::Initialisation;
use std::path::{Path, PathBuf};

/// What the kernel is of.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct SourceOptions {
    /// The network
    #[arg(long, value_name = "MODEL.onnx")]
    net: Option<PathBuf>,

    /// A network described in TOML, with random weights of --seed (see `mercer train --help`)
    #[arg(long, value_name = "FILE.toml")]
    arch: Option<PathBuf>,

    /// A classic kernel of the data alone, as in 'rbf(lengthscale=1.5) + 0.1*linear()' (see below)
    #[arg(long, value_name = "FORMULA")]
    kernel: Option<String>,
}

/// An opened source.
pub(super) enum Source {
    /// A file with trained weights.
    Trained(Network),
    /// An architecture, with the initialisation that its description names.
    Described(Network, Initialisation),
    /// No network: a function of the data.
    Formula(Expression),
}

impl SourceOptions {
    /// The file or the formula, for messages.
    pub(super) fn path(&self) -> &Path {
        self.file().or(self.kernel.as_deref().map(Path::new)).unwrap_or(Path::new("network"))
    }

    /// The file, if there is one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.net.as_deref().or(self.arch.as_deref())
    }

    /// The formula, if there is one.
    pub(super) fn formula(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    pub(super) fn open(&self, parameters: &ParameterOptions, seed: u64) -> Result<Source, Failure> {
        if let Some(text) = &self.kernel {
            let wrong = |error: ClassicError| {
                Failure::new(format!("--kernel, {error}")).hint("`mercer kernel --help` lists the kernels")
            };
            return text.parse().map(Source::Formula).map_err(wrong);
        }
        match &self.arch {
            None => Ok(Source::Trained(open_network(self.path(), parameters)?)),
            Some(_) if parameters.is_given() => {
                Err(Failure::new("--include and --exclude are for --net: all weights of an --arch are parameters"))
            }
            Some(path) => {
                let (architecture, network) = open_architecture(path, seed)?;
                Ok(Source::Described(network, architecture.initialisation()))
            }
        }
    }
}

impl Source {
    pub(super) fn network(&self) -> Option<&Network> {
        match self {
            Self::Trained(network) | Self::Described(network, _) => Some(network),
            Self::Formula(_) => None,
        }
    }

    /// How weights are drawn if nothing else is said.
    pub(super) fn initialisation(&self) -> Initialisation {
        match self {
            Self::Trained(_) | Self::Formula(_) => Initialisation::default(),
            Self::Described(_, initialisation) => *initialisation,
        }
    }
}
