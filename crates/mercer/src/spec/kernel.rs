//! A kernel as text in the kernel language, and its network.

use super::{DataRef, DataSpec, Opening, ParameterSpec, Samples, open_architecture, open_network, saved_network};
use crate::Error;
use crate::error::AboutNetwork;
use mercer_data::Columns;
use mercer_kernel::language::{Defaults, SyntaxError};
use mercer_kernel::{Built, KernelError, Real, Recipe, SavedKernel};
use mercer_net::Network;
use mercer_net::arch::{Initialisation, WeightLaw};
use mercer_net::network::SavedNetwork;
use mercer_run::Context;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A kernel, shared by all jobs that need one.
///
/// ```
/// use mercer::spec::KernelSpec;
///
/// KernelSpec::new("rbf(lengthscale=2) + 0.1*linear").check()?;
/// KernelSpec::new("normalised(trace)").with_net("model.onnx").check()?;
/// assert!(KernelSpec::new("normalised(trace)").check().is_err(), "the network is missing");
/// # Ok::<(), mercer::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelSpec {
    /// The kernel in the [kernel language](mercer_kernel::language), as in `normalised(trace)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The file of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<PathBuf>,
    /// A network described in TOML, with random weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<PathBuf>,
    /// Which tensors of the network are parameters.
    #[serde(skip_serializing_if = "is_default")]
    pub parameters: ParameterSpec,
    /// The seed of everything random whose seed the text does not give.
    #[serde(with = "crate::job::seed")]
    pub seed: u64,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The network of a kernel, opened.
#[derive(Debug)]
pub enum NetworkSource {
    /// A file with trained weights.
    Trained(Network),
    /// A description, with the initialisation that it names.
    Described(Network, Initialisation),
    /// No network: the kernel is a function of the data.
    Absent,
}

impl KernelSpec {
    /// A kernel in the kernel language.
    pub fn new(kernel: impl Into<String>) -> Self {
        Self { kernel: Some(kernel.into()), ..Self::default() }
    }

    /// The same kernel with the network in this file.
    pub fn with_net(self, net: impl Into<PathBuf>) -> Self {
        Self { net: Some(net.into()), ..self }
    }

    /// A kernel of a job's network, with the job's parameters and seed.
    pub(crate) fn of_network(kernel: &str, net: &Path, parameters: &ParameterSpec, seed: u64) -> Self {
        Self { parameters: parameters.clone(), seed, ..Self::new(kernel).with_net(net) }
    }

    /// Whether a kernel or a network is named at all.
    pub fn is_given(&self) -> bool {
        self.kernel.is_some() || self.file().is_some()
    }

    /// The kernel as the user wrote it.
    pub fn name(&self) -> String {
        self.kernel.clone().unwrap_or_default()
    }

    /// The network's file or description, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.net.as_deref().or(self.arch.as_deref())
    }

    /// The setting that names the network.
    pub fn setting(&self) -> &'static str {
        if self.net.is_some() { "net" } else { "arch" }
    }

    /// The network's file or the text of the kernel, for messages.
    pub fn path(&self) -> &Path {
        self.file().or(self.kernel.as_deref().map(Path::new)).unwrap_or(Path::new("kernel"))
    }

    /// Rejects a text that is not a kernel, or does not fit the network.
    ///
    /// # Errors
    /// The column of the text, or what is missing.
    pub fn check(&self) -> Result<(), Error> {
        let Some(text) = &self.kernel else {
            let hint =
                "‹kernel› trace, 'normalised(ck)', 'rbf(lengthscale=2)', …; `mercer help kernel` lists all kernels";
            return Err(Error::new("‹kernel› is missing: which kernel?").hint(hint));
        };
        let recipe = self.parsed(Initialisation::default())?;
        match (recipe.needs_network(), self.file()) {
            (true, None) => Err(Error::new(format!("‹kernel› {text}: this kernel is computed from a network"))
                .hint("‹net› MODEL.onnx, or ‹arch› FILE.toml")),
            (false, Some(_)) => {
                let setting = self.setting();
                Err(Error::new(format!("‹kernel› {text} is a function of the data alone; it does not use ‹{setting}›"))
                    .hint(format!("leave ‹{setting}› out, or choose a kernel of the network, such as trace")))
            }
            _ => Ok(()),
        }
    }

    /// Opens the network. For a description, the seed determines the weights.
    ///
    /// # Errors
    /// As [`check`](Self::check), and if the network cannot be opened.
    pub fn open(&self) -> Result<NetworkSource, Error> {
        self.check()?;
        match (&self.net, &self.arch) {
            (Some(_), Some(_)) => Err(Error::new("‹net› and ‹arch› both name a network").hint("give one of them")),
            (Some(path), None) => Ok(NetworkSource::Trained(open_network(path, &self.parameters)?)),
            (None, Some(_)) if self.parameters.selects() => {
                let flags = "‹include›, ‹exclude› and ‹unmerge› are for ‹net›";
                Err(Error::new(format!("{flags}: all weights of an ‹arch› are parameters")))
            }
            (None, Some(path)) => {
                let (architecture, network) = open_architecture(path, self.seed, &self.parameters)?;
                let (law, initialisation) = (architecture.law(), architecture.initialisation());
                if law != WeightLaw::Normal && self.parsed(initialisation)?.draws_weights() {
                    let text = self.kernel.as_deref().unwrap_or_default();
                    let path = path.display();
                    return Err(Error::new(format!(
                        "‹kernel› {text} draws normal weights, but {path} has `law = \"{law}\"`, without a variance"
                    ))
                    .hint(format!("leave `law` out of {path}, or choose a kernel of its weights, such as trace")));
                }
                Ok(NetworkSource::Described(network, architecture.initialisation()))
            }
            (None, None) => Ok(NetworkSource::Absent),
        }
    }

    /// The kernel as data, complete: what the text leaves open comes from the seed and from the description of the network.
    ///
    /// # Errors
    /// The column where the text is wrong.
    pub fn recipe(&self, source: &NetworkSource) -> Result<Recipe, Error> {
        self.parsed(source.initialisation())
    }

    fn parsed(&self, initialisation: Initialisation) -> Result<Recipe, Error> {
        let defaults = Defaults { seed: self.seed, initialisation };
        let wrong = |error: SyntaxError| {
            Error::new(format!("‹kernel›, {error}")).hint("`mercer help kernel` lists the kernels and their settings")
        };
        Recipe::parse(self.kernel.as_deref().unwrap_or_default(), &defaults).map_err(wrong)
    }

    /// The kernel in the form saved within a result. It can be built again from that alone.
    ///
    /// # Errors
    /// If the network cannot be written.
    pub fn saved<T: Real>(
        &self,
        recipe: &Recipe,
        source: &NetworkSource,
        built: &Built<T>,
    ) -> Result<SavedKernel, Error> {
        let saved = SavedKernel::new(recipe.clone(), source.saved(self.path(), &self.parameters)?);
        // A rewritten network computes the same function from another graph; its digest identifies it.
        let is_file = self.arch.is_none() && self.parameters.weights.is_none();
        Ok(if is_file { saved.with_identity(built.kernel.identity()) } else { saved })
    }

    /// Notes that the kernel uses the logits behind the network's output, and remarks on the parameters that it depends
    /// on.
    pub fn tell(&self, recipe: &Recipe, source: &NetworkSource, shapes: &[Vec<usize>], context: &Context) {
        if let Some(logits) = recipe.logits(source.network(), shapes) {
            let mut note = logits.note("the kernel", None);
            if recipe.depends_on_parameters() {
                note += &format!("; node={:?} in ‹kernel› takes what comes after it", logits.output);
            }
            context.note(&note);
        }
        crate::job::remark(source.network().filter(|_| recipe.depends_on_parameters()), context);
    }

    /// Adds the file to an error of the kernel.
    pub fn failure(&self, error: KernelError) -> Error {
        match error {
            KernelError::Network(error) => Error::of_network(self.path(), *error),
            KernelError::NotFinite { .. } | KernelError::Overflow { .. } => {
                let text = format!("{}: {error}", self.path().display());
                Error::from(error).with_message(text)
            }
            KernelError::NoLimit { ref node, ref reason } => {
                let mean = if self.name().contains("nngp") { "nngp-mc" } else { "ntk-mc" };
                let path = self.path().display();
                let text = format!("{path}: node {node} has no known limit at infinite width: {reason}");
                let hint = format!("‹kernel› '{mean}(networks=1000)' takes the mean over random networks instead");
                Error::from(error).with_message(text).hint(hint)
            }
            other => other.into(),
        }
    }
}

impl NetworkSource {
    /// The network, if there is one.
    pub fn network(&self) -> Option<&Network> {
        match self {
            Self::Trained(network) | Self::Described(network, _) => Some(network),
            Self::Absent => None,
        }
    }

    /// The network in the form saved within a result.
    fn saved(&self, path: &Path, parameters: &ParameterSpec) -> Result<Option<SavedNetwork>, Error> {
        Ok(match self {
            Self::Absent => None,
            Self::Trained(network) => Some(saved_network(path, parameters, network)?),
            Self::Described(network, _) => Some(SavedNetwork::new(network.to_onnx_bytes().about(path)?)),
        })
    }

    /// The default initialisation.
    fn initialisation(&self) -> Initialisation {
        match self {
            Self::Trained(_) | Self::Absent => Initialisation::default(),
            Self::Described(_, initialisation) => *initialisation,
        }
    }

    /// Opens the sources under a setting, for the network's inputs or as one set of samples.
    ///
    /// # Errors
    /// If the data cannot be read or do not fit the network.
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

    /// Rejects samples that do not fit the network, before any other work.
    ///
    /// # Errors
    /// The node that does not fit.
    pub fn check_shapes(&self, shapes: &[Vec<usize>], path: &Path) -> Result<(), Error> {
        match self.network() {
            Some(network) => network.graph(shapes).map(|_| ()).about(path),
            None => Ok(()),
        }
    }
}
