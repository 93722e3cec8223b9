//! How a network ends: in logits, or in probabilities from a softmax or sigmoid.
//!
//! A likelihood takes logits, and the tangent kernel of a classifier is that of its logits. Files often end one step
//! later, in many forms: `Softmax`, `LogSoftmax`, `Log(Softmax + ε)`, `Exp(LogSoftmax)`, `Clip(Softmax)`, `Sigmoid`,
//! and the same written out,
//!
//! ```text
//! softmax      exp(x − m) / Σ exp(x − m)                    m = max x, or none
//! log softmax  x − (m + ln Σ exp(x − m))
//! sigmoid      1 / (1 + exp(−x))     ½ + ½ tanh(x/2)     (its logarithm: −softplus(−x))
//! ```
//!
//! each possibly reshaped. A softmax counts as an ending only if it runs over all numbers of a sample. A softmax along
//! one of several axes (attention, a class per position) says nothing about the sample as a whole.

mod walk;

use crate::graph::{Graph, Node, ValueId};
use walk::{LONGEST, Step, Walk};

/// How logits become probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squash {
    /// Probabilities of classes, which sum to one.
    Softmax,
    /// Their logarithms.
    LogSoftmax,
    /// An independent probability for every number.
    Sigmoid,
    /// Its logarithm.
    LogSigmoid,
}

impl Squash {
    /// Whether every number is an independent probability.
    pub fn is_single(self) -> bool {
        matches!(self, Self::Sigmoid | Self::LogSigmoid)
    }

    fn log(self) -> Self {
        match self {
            Self::Softmax => Self::LogSoftmax,
            Self::Sigmoid => Self::LogSigmoid,
            other => other,
        }
    }

    fn exp(self) -> Self {
        match self {
            Self::LogSoftmax => Self::Softmax,
            Self::LogSigmoid => Self::Sigmoid,
            other => other,
        }
    }
}

/// The values before a final softmax or sigmoid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logits {
    /// The value. It has as many numbers as the output, in the same order.
    pub value: ValueId,
    /// Its name, by which it can be chosen.
    pub name: String,
    /// The node that turns it into probabilities, as `"name" (operator)`.
    pub node: String,
    /// What that node, and those after it, compute.
    pub squash: Squash,
    /// The name of the output, by which the probabilities can be chosen.
    pub output: String,
}

impl Logits {
    /// A note for the user: the logits are used, and the flag that chooses another value, if there is one.
    pub fn note(&self, what: &str, flag: Option<&str>) -> String {
        let Self { name, node, output, .. } = self;
        let other = flag.map(|flag| format!("; {flag} {output} uses the value after it")).unwrap_or_default();
        format!("{what} is that of the logits {name:?}, before the final {node}{other}")
    }
}

/// How a value ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No probabilities: the value may be logits, or any numbers.
    Open,
    /// The value is computed from these logits.
    Probabilities(Logits),
    /// The value contains probabilities, but not all of them, or they have no logits.
    Mixed {
        /// The node, as `"name" (operator)`.
        node: String,
        /// The reason.
        reason: &'static str,
    },
}

impl Ending {
    /// Walks back from an output, or any other value.
    pub fn find(graph: &Graph, output: ValueId) -> Self {
        let walk = Walk { graph };
        let mut at = output;
        // What follows the value: logarithms and exponentials, last one first.
        let mut after: Vec<fn(Squash) -> Squash> = Vec::new();
        // Whether values were sliced or concatenated.
        let mut mixed = false;
        for _ in 0..LONGEST {
            if let Some((value, squash)) = walk.squash(at) {
                let label = walk.node(at).map(Node::label).unwrap_or_default();
                if mixed {
                    return Self::Mixed {
                        node: label,
                        reason: "makes probabilities, but the output is only a part of them",
                    };
                }
                let Some((value, name)) = walk.named(value) else {
                    return Self::Mixed { node: label, reason: "makes probabilities from a value without a name" };
                };
                let squash = after.iter().rev().fold(squash, |squash, function| function(squash));
                let own = graph.outputs().iter().find(|(_, id)| *id == output);
                let output = own.map_or_else(|| graph.value(output).name.clone(), |(name, _)| name.clone());
                return Self::Probabilities(Logits { value, name, node: label, squash, output });
            }
            let Some(node) = walk.node(at) else { return Self::Open };
            let Some(next) = walk.operand(node) else { return Self::Open };
            match walk.step(node, &after) {
                Step::Same => {}
                Step::Log => after.push(Squash::log),
                Step::Exp => after.push(Squash::exp),
                Step::Part => mixed = true,
                Step::Positions => {
                    let reason =
                        "is a softmax along one of several axes, so its classes are not those of the whole sample";
                    return Self::Mixed { node: node.label(), reason };
                }
                Step::Normalised => {
                    let reason = "divides numbers by their sum, so the output is probabilities without logits";
                    return Self::Mixed { node: node.label(), reason };
                }
                Step::End => return Self::Open,
            }
            at = next;
        }
        Self::Open
    }

    /// The logits from which the value is computed, if there are any.
    pub fn logits(self) -> Option<Logits> {
        match self {
            Self::Probabilities(logits) => Some(logits),
            _ => None,
        }
    }
}

/// The logits of a network: the value before a final softmax or sigmoid of its first output, or else that output.
/// `None` if the network has no output.
pub fn default_logits(graph: &Graph) -> Option<(ValueId, Option<Logits>)> {
    let &(_, output) = graph.outputs().first()?;
    let logits = Ending::find(graph, output).logits();
    Some((logits.as_ref().map_or(output, |logits| logits.value), logits))
}

/// The number above which a single value stands for class 1: 0 for a logit, ½ for its sigmoid, and `ln ½` for the
/// logarithm of that.
///
/// ```
/// let graph = mercer_net::arch::Mlp::new(2, &[4], 1).build(0)?.declared_graph()?;
/// assert_eq!(mercer_net::network::threshold(&graph, graph.outputs()[0].1), 0.0);
/// # Ok::<(), mercer_net::NetError>(())
/// ```
pub fn threshold(graph: &Graph, value: ValueId) -> f64 {
    match Ending::find(graph, value).logits().map(|logits| logits.squash) {
        None => 0.0,
        Some(Squash::Sigmoid | Squash::Softmax) => 0.5,
        Some(Squash::LogSigmoid | Squash::LogSoftmax) => -std::f64::consts::LN_2,
    }
}
