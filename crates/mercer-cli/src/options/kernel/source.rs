//! Where a kernel comes from: a network file, the description of an architecture, or a formula.

use crate::console::Console;
use crate::failure::{AboutNetwork, Failure};
use crate::options::{DataOptions, ParameterOptions, Samples, open_architecture, open_network, saved_network};
use mercer::data::Columns;
use mercer::kernel::classic::{ClassicError, Expression};
use mercer::net::Network;
use mercer::net::arch::Initialisation;
use mercer::net::network::SavedNetwork;
use std::path::{Path, PathBuf};

/// What the kernel is of.
#[derive(Clone, Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct SourceOptions {
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
pub(crate) enum Source {
    /// A file with trained weights.
    Trained(Network),
    /// An architecture, with the initialisation that its description names.
    Described(Network, Initialisation),
    /// No network: a function of the data.
    Formula(Expression),
}

impl SourceOptions {
    /// Whether there is one.
    pub(crate) fn is_given(&self) -> bool {
        self.file().is_some() || self.kernel.is_some()
    }

    /// The file or the formula, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.file().or(self.kernel.as_deref().map(Path::new)).unwrap_or(Path::new("network"))
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.net.as_deref().or(self.arch.as_deref())
    }

    /// The formula, if there is one.
    pub(crate) fn formula(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    pub(crate) fn open(&self, parameters: &ParameterOptions, seed: u64) -> Result<Source, Failure> {
        if let Some(text) = &self.kernel {
            let wrong = |error: ClassicError| {
                Failure::new(format!("--kernel, {error}")).hint("`mercer kernel --help` lists the kernels")
            };
            return text.parse().map(Source::Formula).map_err(wrong);
        }
        match &self.arch {
            None if self.net.is_none() => Err(Failure::new("there is neither a network nor a kernel")
                .hint("--net MODEL.onnx, --arch FILE.toml or --kernel FORMULA")),
            None => Ok(Source::Trained(open_network(self.path(), parameters)?)),
            Some(_) if parameters.is_given() => {
                let flags = "--include, --exclude and --unmerge are for --net";
                Err(Failure::new(format!("{flags}: all weights of an --arch are parameters")))
            }
            Some(path) => {
                let (architecture, network) = open_architecture(path, seed, parameters.import)?;
                Ok(Source::Described(network, architecture.initialisation()))
            }
        }
    }
}

impl Source {
    pub(crate) fn network(&self) -> Option<&Network> {
        match self {
            Self::Trained(network) | Self::Described(network, _) => Some(network),
            Self::Formula(_) => None,
        }
    }

    /// The network of this file as it is saved within a result.
    pub(crate) fn saved(&self, path: &Path, parameters: &ParameterOptions) -> Result<Option<SavedNetwork>, Failure> {
        Ok(match self {
            Self::Trained(network) => Some(saved_network(path, network, parameters)?),
            Self::Described(network, _) => Some(SavedNetwork::new(network.to_onnx_bytes().about(path)?)),
            Self::Formula(_) => None,
        })
    }

    /// How weights are drawn if nothing else is said.
    pub(crate) fn initialisation(&self) -> Initialisation {
        match self {
            Self::Trained(_) | Self::Formula(_) => Initialisation::default(),
            Self::Described(_, initialisation) => *initialisation,
        }
    }

    /// Opens what the user wrote after a flag, for the network's inputs or as one set of samples.
    pub(crate) fn samples(
        &self,
        flag: &str,
        texts: &[String],
        options: &DataOptions,
        like: &[Option<Columns>],
        console: &Console,
    ) -> Result<Samples, Failure> {
        match self.network() {
            Some(network) => Samples::given(flag, texts, options, network, like, console),
            None => Samples::plain(flag, texts, options, like, console),
        }
    }

    /// Tells that the network is not made for such samples, before anything else is done.
    pub(crate) fn check_shapes(&self, shapes: &[Vec<usize>], path: &Path) -> Result<(), Failure> {
        match self.network() {
            Some(network) => network.graph(shapes).map(|_| ()).about(path),
            None => Ok(()),
        }
    }
}
