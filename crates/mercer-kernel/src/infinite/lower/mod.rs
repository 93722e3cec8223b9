//! From a graph of primitives to a network of infinite width.
//!
//! What depends on the inputs but on no parameter is a fixed [feature map](Features) and stays a graph. Behind the first
//! parameters every value is an elementwise function of a layer's units, kept as an [`Expression`] until something other than
//! elementwise reads it: an exported GELU, a product of correlated branches, is one activation that way. A product with a
//! parameter is a random layer and a sum with one its bias; scales around them say the parametrisation.
//!
//! Scales and shifts per unit behind normalisations are trained too: they begin at one and zero, and add `K` and 1 to `Θ`, in
//! either parametrisation. Where an activation follows before the next random layer, scales have no such rule, and there is an
//! NNGP only.
//!
//! A sum of a value and an activation of it (`x + relu(x)`) is a shortcut without a layer of its own, not an activation: it is
//! refused as a sum of branches that are not independent.

mod binary;
mod features;
mod layers;
mod layout;
mod rule;
mod walk;

pub use features::Features;
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
    /// What the layers get instead of the network's inputs.
    pub features: Features,
}

/// The limit of the first output of a graph, or of its logits where it ends in a softmax or sigmoid. An error names the node that
/// has none.
pub fn lower(graph: &Graph, rule: &Rule) -> Result<Lowered> {
    let logits = default_logits(graph).and_then(|(_, logits)| logits).map(|logits| graph.until(logits.value));
    let graph = logits.as_ref().unwrap_or(graph);
    let mut walk = Walk::new(graph, rule)?;
    for node in graph.nodes() {
        walk.node(node)?;
    }
    walk.finish()
}
