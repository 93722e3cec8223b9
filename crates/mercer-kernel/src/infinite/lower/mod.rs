//! Lowers a graph of primitives to a network of infinite width.
//!
//! Values that depend on the inputs but on no parameter form a fixed [feature map](LimitFeatures), which stays a graph.
//! After the first parameters, every value is an elementwise function of a layer's units. It is kept as an
//! [`Elementwise`] until an operation that is not elementwise reads it, so that an exported GELU, a product of
//! correlated branches, becomes one activation. A product with a parameter is a random layer and a sum with one its
//! bias; scales around them define the parametrisation.
//!
//! Scales and shifts per unit after normalisations are trained too. They are initially one and zero, and add `K` and 1
//! to `Θ`, in either parametrisation. If an activation follows before the next random layer, there is no such rule for
//! scales, and only the NNGP exists.
//!
//! A sum of a value and an activation of it (`x + relu(x)`) is a shortcut without its own layer, not an activation. It
//! is rejected as a sum of branches that are not independent.

mod binary;
mod features;
mod layers;
mod layout;
mod rule;
mod walk;

pub use features::LimitFeatures;
pub use rule::{Parametrisation, Rule, Variances};
pub(crate) use walk::uniform;

use super::net::LimitNet;
use crate::error::Result;
use mercer_net::graph::Graph;
use mercer_net::network::default_logits;
use walk::Walk;

/// A network of infinite width and the fixed features it reads.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The layers.
    pub net: LimitNet,
    /// The inputs of the layers, in place of the network's inputs.
    pub features: LimitFeatures,
}

/// The limit of the first output of a graph, or of its logits if it ends in a softmax or sigmoid. An error names the
/// node without a limit.
pub fn lower(graph: &Graph, rule: &Rule) -> Result<Lowered> {
    let logits = default_logits(graph).and_then(|(_, logits)| logits).map(|logits| graph.until(logits.value));
    let graph = logits.as_ref().unwrap_or(graph);
    let mut walk = Walk::new(graph, rule)?;
    for node in graph.nodes() {
        walk.node(node)?;
    }
    walk.finish()
}
