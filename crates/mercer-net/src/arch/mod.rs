//! Networks from a description: in code, or in TOML.
//!
//! A description says what a network is. [`Architecture::build`] makes it from a seed: the same seed gives the same
//! weights on any machine. In TOML, one table names the kind:
//!
//! ```toml
//! [cnn]
//! inputs = [1, 8, 8]
//! outputs = 10
//! activation = "relu"
//! layers = [
//!     { conv = { channels = 16, kernel = 3 } },
//!     { max-pool = { size = 2 } },
//!     { dense = { width = 64 } },
//! ]
//! ```

mod activation;
mod assemble;
mod cnn;
mod initialise;
mod mlp;
mod residual;
mod resnet;
mod scaled;
mod widen;

pub use activation::Activation;
pub use cnn::{Cnn, CnnLayer};
pub use initialise::{Initialisation, WeightLaw};
pub use mlp::{Mlp, TwoLayer};
pub use residual::{Residual, Shortcut, Stem};
pub use resnet::{Normalisation, Resnet};
pub use scaled::{ActivationScale, ScaledActivation};

use crate::budget::Budget;
use crate::error::{NetError, Result};
use crate::network::Network;
use serde::{Deserialize, Serialize};

/// A description of a network.
///
/// ```
/// use mercer_net::arch::Architecture;
///
/// let text = "
///     [mlp]
///     inputs = [2]
///     widths = [32, 32]
///     outputs = 3
///     activation = \"tanh\"
/// ";
/// let network = Architecture::from_toml(text)?.build(7)?;
/// assert_eq!(network.n_params(), 3 * 32 + 33 * 32 + 33 * 3);
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// Fully connected.
    Mlp(Mlp),
    /// Convolutional, layer by layer.
    Cnn(Cnn),
    /// Residual, for small images.
    Resnet(Resnet),
    /// Residual, of any number of stages.
    Residual(Residual),
    /// Two layers in the NTK parametrisation.
    TwoLayer(TwoLayer),
}

impl Architecture {
    /// Reads a description. Errors show the line and say what is accepted.
    pub fn from_toml(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|error| NetError::Setting(error.to_string().trim_end().to_owned()))
    }

    /// The description as TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| NetError::Setting(error.to_string()))
    }

    /// How its weights are drawn.
    pub fn initialisation(&self) -> Initialisation {
        match self {
            Self::Mlp(mlp) => mlp.initialisation,
            Self::Cnn(cnn) => cnn.initialisation,
            Self::Resnet(resnet) => resnet.initialisation,
            Self::Residual(residual) => residual.initialisation,
            Self::TwoLayer(_) => Initialisation::Ntk,
        }
    }

    /// The law of its weights.
    pub fn law(&self) -> WeightLaw {
        match self {
            Self::Mlp(mlp) => mlp.law,
            Self::Cnn(cnn) => cnn.law,
            Self::Resnet(_) => WeightLaw::Normal,
            Self::Residual(residual) => residual.law,
            Self::TwoLayer(two_layer) => two_layer.law,
        }
    }

    /// The network with its initial weights. A description may come from an untrusted source, so the network may take
    /// at most [`crate::IMPORT_FLOOR`] bytes; see [`build_within`](Self::build_within).
    pub fn build(&self, seed: u64) -> Result<Network> {
        self.build_within(seed, None)
    }

    /// The network with its initial weights, within this many bytes in all.
    pub fn build_within(&self, seed: u64, limit: Option<usize>) -> Result<Network> {
        let budget = Budget::new(limit, 0);
        match self {
            Self::Mlp(mlp) => mlp.within(seed, budget),
            Self::Cnn(cnn) => cnn.within(seed, budget),
            Self::Resnet(resnet) => resnet.within(seed, budget),
            Self::Residual(residual) => residual.within(seed, budget),
            Self::TwoLayer(two_layer) => two_layer.within(seed, budget),
        }
    }
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests;
