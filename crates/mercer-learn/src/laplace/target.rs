//! The network value that a posterior describes.

use super::settings::LaplaceSettings;
use crate::error::Result;
use mercer_net::NetError;
use mercer_net::graph::{Graph, ValueId};
use mercer_net::network::{Ending, Logits, find};

/// The value, and how it was chosen.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) value: ValueId,
    pub(super) name: String,
    /// The logits that replace the network's output.
    pub(super) logits: Option<Logits>,
}

impl Target {
    /// The value named in the settings; otherwise the first output or, for classes, its logits.
    pub(super) fn new(graph: &Graph, settings: &LaplaceSettings) -> Result<Self> {
        if let Some(name) = &settings.output {
            return Ok(Self { value: find(graph, name)?, name: name.clone(), logits: None });
        }
        let Some((name, value)) = graph.outputs().first() else {
            return Err(NetError::Setting("the network has no output".to_owned()).into());
        };
        let own = Self { value: *value, name: name.clone(), logits: None };
        if !settings.likelihood.is_of_classes() {
            return Ok(own);
        }
        let refused = |node, reason| Err(NetError::Unsupported { node, reason }.into());
        match Ending::find(graph, *value) {
            Ending::Open => Ok(own),
            Ending::Probabilities(logits) if logits.squash.is_single() && graph.value(*value).meta.numel() > 1 => {
                let reason = format!(
                    "gives every output an independent probability, but labels are one class per sample; name its \
                     operand {:?} as the logits to take the softmax of that",
                    logits.name
                );
                refused(logits.node, reason)
            }
            Ending::Probabilities(logits) => {
                Ok(Self { value: logits.value, name: logits.name.clone(), logits: Some(logits) })
            }
            Ending::Mixed { node, reason } => {
                refused(node, format!("{reason}; name the value that is the logits of the classes"))
            }
        }
    }
}
