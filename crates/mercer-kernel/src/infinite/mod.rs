//! Networks of infinite width: the neural network Gaussian process (NNGP) and the neural tangent kernel (NTK).
//!
//! As all widths go to infinity the outputs of a random network become a Gaussian process with covariance `K`, and the tangent
//! kernel a deterministic `Θ` (Jacot et al. 2018, arXiv 1806.07572; convolutions: Garriga-Alonso et al., arXiv 1808.05587, Novak
//! et al., arXiv 1810.05148, Arora et al., arXiv 1904.11955). Both follow layer by layer,
//!
//! ```text
//! K' = σ_w² E[φ(u)φ(v)] + σ_b²,   Θ' = K' + Θ · σ_w² E[φ'(u)φ'(v)],   (u, v) ~ N(0, K)
//! ```
//!
//! in the NTK parametrisation; [`Scales`] has the standard one. A limit does not exist primitive by primitive, so a
//! graph is first [`lower`]ed to a [`LimitNet`] with few layers. A node without a limit is rejected by name. [`Limit`]
//! is the kernel.

mod activation;
mod contract;
mod dual;
mod expression;
mod limit;
mod lower;
mod net;
mod patch;
mod prepare;
mod program;
mod run;
mod series;

pub use activation::LimitActivation;
pub use expression::Elementwise;
pub use limit::{Limit, LimitKind};
pub(crate) use lower::uniform;
pub use lower::{LimitFeatures, Lowered, Parametrisation, Rule, Variances, lower};
pub use net::{LimitInput, LimitLayer, LimitNet, LimitNode, NodeId, Scales};
pub use patch::{Patch, Space};

use crate::error::{KernelError, Result};

/// The error of a node without a limit.
fn refuse<T>(node: &str, reason: &str) -> Result<T> {
    Err(KernelError::NoLimit { node: node.to_owned(), reason: reason.to_owned() })
}
