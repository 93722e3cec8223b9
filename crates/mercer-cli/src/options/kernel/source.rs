//! Where a kernel comes from: a network file, or the description of an architecture.

use crate::failure::Failure;
use crate::options::{ParameterOptions, open_architecture, open_network};
use mercer::net::Network;
use mercer::net::arch::Initialisation;
use std::path::{Path, PathBuf};

/// What the kernel is of.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct SourceOptions {
    /// The network
    #[arg(long, value_name = "MODEL.onnx")]
    net: Option<PathBuf>,

    /// A network described in TOML, with random weights of --seed (see `mercer train --help`)
    #[arg(long, value_name = "FILE.toml")]
    arch: Option<PathBuf>,
}

/// An opened source.
pub(crate) enum Source {
    /// A file with trained weights.
    Trained(Network),
    /// An architecture, with the initialisation that its description names.
    Described(Network, Initialisation),
}

impl SourceOptions {
    /// Whether there is one.
    pub(crate) fn is_given(&self) -> bool {
        self.net.is_some() || self.arch.is_some()
    }

    /// The file, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.net.as_deref().or(self.arch.as_deref()).unwrap_or(Path::new("network"))
    }

    pub(crate) fn open(&self, parameters: &ParameterOptions, seed: u64) -> Result<Source, Failure> {
        match &self.arch {
            None if self.net.is_none() => {
                Err(Failure::new("which network? Its kernel is asked for")
                    .hint("--net MODEL.onnx, or --arch FILE.toml"))
            }
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
    pub(crate) fn network(&self) -> &Network {
        match self {
            Self::Trained(network) | Self::Described(network, _) => network,
        }
    }

    /// How weights are drawn if nothing else is said.
    pub(crate) fn initialisation(&self) -> Initialisation {
        match self {
            Self::Trained(_) => Initialisation::default(),
            Self::Described(_, initialisation) => *initialisation,
        }
    }
}
