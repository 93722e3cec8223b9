//! Where a kernel comes from: a network file, the description of an architecture, or a formula.

use crate::Error;
use crate::error::AboutNetwork;
use crate::spec::{DataRef, DataSpec, Opening, ParameterSpec, Samples, open_architecture, open_network, saved_network};
use mercer_data::Columns;
use mercer_kernel::classic::{ClassicError, Expression};
use mercer_net::Network;
use mercer_net::arch::Initialisation;
use mercer_net::network::SavedNetwork;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the kernel is of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceSpec {
    /// A network file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<PathBuf>,
    /// A network described in TOML, with random weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<PathBuf>,
    /// A classic kernel of the data alone, as in `rbf(lengthscale=1.5) + 0.1*linear()`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// An opened source.
#[derive(Debug)]
pub enum Source {
    /// A file with trained weights.
    Trained(Network),
    /// An architecture, with the initialisation that its description names.
    Described(Network, Initialisation),
    /// No network: a function of the data.
    Formula(Expression),
}

impl SourceSpec {
    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        self.file().is_some() || self.kernel.is_some()
    }

    /// The file or the formula, for messages.
    pub fn path(&self) -> &Path {
        self.file().or(self.kernel.as_deref().map(Path::new)).unwrap_or(Path::new("network"))
    }

    /// The file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.net.as_deref().or(self.arch.as_deref())
    }

    /// The formula, if there is one.
    pub fn formula(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    /// Opens it; a seed gives a description its weights.
    pub fn open(&self, parameters: &ParameterSpec, seed: u64) -> Result<Source, Error> {
        if let Some(text) = &self.kernel {
            let wrong = |error: ClassicError| {
                Error::new(format!("‹kernel›, {error}")).hint("`mercer kernel --help` lists the kernels")
            };
            return text.parse().map(Source::Formula).map_err(wrong);
        }
        match &self.arch {
            None if self.net.is_none() => Err(Error::new("there is neither a network nor a kernel")
                .hint("‹net› MODEL.onnx, ‹arch› FILE.toml or ‹kernel› FORMULA")),
            None => Ok(Source::Trained(open_network(self.path(), parameters)?)),
            Some(_) if parameters.selects() => {
                let flags = "‹include›, ‹exclude› and ‹unmerge› are for ‹net›";
                Err(Error::new(format!("{flags}: all weights of an ‹arch› are parameters")))
            }
            Some(path) => {
                let (architecture, network) = open_architecture(path, seed, parameters)?;
                Ok(Source::Described(network, architecture.initialisation()))
            }
        }
    }
}

impl Source {
    /// The network, if there is one.
    pub fn network(&self) -> Option<&Network> {
        match self {
            Self::Trained(network) | Self::Described(network, _) => Some(network),
            Self::Formula(_) => None,
        }
    }

    /// The network as it is saved within a result.
    pub fn saved(&self, path: &Path, parameters: &ParameterSpec) -> Result<Option<SavedNetwork>, Error> {
        Ok(match self {
            Self::Formula(_) => None,
            Self::Trained(network) => Some(saved_network(path, parameters, network)?),
            Self::Described(network, _) => Some(SavedNetwork::new(network.to_onnx_bytes().about(path)?)),
        })
    }

    /// How weights are drawn if nothing else is said.
    pub fn initialisation(&self) -> Initialisation {
        match self {
            Self::Trained(_) | Self::Formula(_) => Initialisation::default(),
            Self::Described(_, initialisation) => *initialisation,
        }
    }

    /// Opens what the user wrote under a setting, for the network's inputs or as one set of samples.
    pub fn samples(
        &self,
        setting: &str,
        data: &[DataRef],
        options: &DataSpec,
        like: &[Option<Columns>],
        opening: Opening<'_>,
    ) -> Result<Samples, Error> {
        match self.network() {
            Some(network) => Samples::given(setting, data, options, network, like, opening),
            None => Samples::plain(setting, data, options, like, opening),
        }
    }

    /// Tells that the network is not made for such samples, before anything else is done.
    pub fn check_shapes(&self, shapes: &[Vec<usize>], path: &Path) -> Result<(), Error> {
        match self.network() {
            Some(network) => network.graph(shapes).map(|_| ()).about(path),
            None => Ok(()),
        }
    }
}
