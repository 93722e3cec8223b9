//! How a network ends: in logits, or in the probabilities that a softmax or a sigmoid makes of them.
//!
//! A likelihood takes logits, and the tangent kernel of a classifier is that of its logits. Files often end one step later, and in many
//! ways: `Softmax`, `LogSoftmax`, `Log(Softmax + ε)`, `Exp(LogSoftmax)`, `Clip(Softmax)`, `Sigmoid`, and the same written out,
//!
//! ```text
//! softmax      exp(x − m) / Σ exp(x − m)                    m = max x, or none
//! log softmax  x − (m + ln Σ exp(x − m))
//! sigmoid      1 / (1 + exp(−x))     ½ + ½ tanh(x/2)     (its logarithm: −softplus(−x))
//! ```
//!
//! each of them under other shapes. A softmax is an ending only if it runs over all numbers of a sample: one along another axis
//! (attention, a class for every position) says nothing about the sample as a whole.

mod walk;

use crate::graph::{Graph, Node, ValueId};
use walk::{LONGEST, Step, Walk};

/// What makes probabilities of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squash {
    /// Probabilities of classes, which sum to one.
    Softmax,
    /// Their logarithms.
    LogSoftmax,
    /// A probability for every number by itself.
    Sigmoid,
    /// Its logarithm.
    LogSigmoid,
}

impl Squash {
    /// Whether every number is a probability by itself.
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
    /// The value; it has as many numbers as the output, in the same order.
    pub value: ValueId,
    /// Its name, by which it can be chosen.
    pub name: String,
    /// The node that makes probabilities of it, as `"name" (operator)`.
    pub node: String,
    /// What that node computes, and what follows it.
    pub squash: Squash,
    /// The name of the output, by which the probabilities can be chosen.
    pub output: String,
}

impl Logits {
    /// For the user: what is taken of the logits, and the flag that chooses another value, if there is one.
    pub fn note(&self, what: &str, flag: Option<&str>) -> String {
        let Self { name, node, output, .. } = self;
        let other = flag.map(|flag| format!("; {flag} {output} takes what comes after it")).unwrap_or_default();
        format!("{what} is that of the logits {name:?}, before the final {node}{other}")
    }
}

/// How a value ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing makes probabilities: the value may be logits, or any numbers.
    Open,
    /// The value is made of these logits.
    Probabilities(Logits),
    /// Probabilities enter the value, but it is not all of them, or they have no logits.
    Mixed {
        /// The node, as `"name" (operator)`.
        node: String,
        /// What about it.
        reason: &'static str,
    },
}

impl Ending {
    /// Walks back from an output, or any other value.
    pub fn find(graph: &Graph, output: ValueId) -> Self {
        let walk = Walk { graph };
        let mut at = output;
        // What follows the value: logarithms and exponentials, the last one first.
        let mut after: Vec<fn(Squash) -> Squash> = Vec::new();
        // Whether a part of the values was taken, or several were joined.
        let mut mixed = false;
        for _ in 0..LONGEST {
            if let Some((value, squash)) = walk.squash(at) {
                let label = walk.node(at).map(Node::label).unwrap_or_default();
                if mixed {
                    return Self::Mixed { node: label, reason: "makes probabilities of which the output is a part" };
                }
                let Some((value, name)) = walk.named(value) else {
                    return Self::Mixed { node: label, reason: "makes probabilities of a value without a name" };
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
                        "is a softmax along one axis of several, so that it has no classes of the whole sample";
                    return Self::Mixed { node: node.label(), reason };
                }
                Step::Normalised => {
                    let reason = "divides numbers by their sum, so that the output is probabilities without logits";
                    return Self::Mixed { node: node.label(), reason };
                }
                Step::End => return Self::Open,
            }
            at = next;
        }
        Self::Open
    }

    /// The logits behind the value, if it is made of them.
    pub fn logits(self) -> Option<Logits> {
        match self {
            Self::Probabilities(logits) => Some(logits),
            _ => None,
        }
    }
}

/// The value that is meant by the logits of a network: what lies before a final softmax or sigmoid of its first output, or else that
/// output. `None` if the network has no output.
pub fn default_logits(graph: &Graph) -> Option<(ValueId, Option<Logits>)> {
    let &(_, output) = graph.outputs().first()?;
    let logits = Ending::find(graph, output).logits();
    Some((logits.as_ref().map_or(output, |logits| logits.value), logits))
}
