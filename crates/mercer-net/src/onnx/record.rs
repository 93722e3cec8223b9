//! What PyTorch's new exporter records with a graph.
//!
//! The notes of a node hold the call of the module that it implements,
//!
//! ```text
//! %linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_fc_weight, %p_fc_bias), …)
//! ```
//!
//! and those of the graph one line per tensor of the module, `p_fc_bias: PARAMETER target='fc.bias'` or
//! `b_mean: BUFFER target='mean' persistent=True`. They show what the graph no longer shows: which parameter a merged
//! tensor stands for, whether a number belongs to the module or to a formula, and what was folded. The notes may be
//! missing.

use super::model::{GraphDef, NodeDef};
use std::collections::HashMap;

/// The key of a node's note.
pub(super) const CALL: &str = "pkg.torch.onnx.fx_node";

/// The key of the graph's note.
pub(super) const SIGNATURE: &str = "pkg.torch.export.ExportedProgram.graph_signature";

/// The call that a node implements.
pub(super) struct Call<'a> {
    /// As `torch.ops.aten.linear.default`.
    pub(super) target: &'a str,
    arguments: &'a str,
}

impl<'a> Call<'a> {
    pub(super) fn read(node: &'a NodeDef) -> Option<Self> {
        let (_, rest) = node.call.as_deref()?.split_once("[target=")?;
        let (target, arguments) = rest.split_once(']')?;
        Some(Self { target, arguments })
    }

    /// The values that the call takes: results, inputs and state.
    pub(super) fn operands(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let word = |text: &'a str| {
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
            &text[..end]
        };
        self.arguments.split('%').skip(1).map(word)
    }
}

/// The role of a tensor in the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Parameter,
    Buffer,
}

/// The state of the module: by the names in calls, and by the names in the file.
#[derive(Debug, Default)]
pub(super) struct Signature<'a> {
    by_operand: HashMap<&'a str, (State, &'a str)>,
    by_name: HashMap<&'a str, State>,
}

impl<'a> Signature<'a> {
    pub(super) fn read(graph: &'a GraphDef) -> Self {
        let mut signature = Self::default();
        for line in graph.signature.as_deref().unwrap_or_default().lines() {
            let Some((operand, rest)) = line.split_once(": ") else { continue };
            let state = match rest.split(' ').next() {
                Some("PARAMETER") => State::Parameter,
                Some("BUFFER" | "CONSTANT_TENSOR") => State::Buffer,
                _ => continue,
            };
            let name = rest.split('\'').nth(1).unwrap_or_default();
            signature.by_operand.insert(operand.trim(), (state, name));
            signature.by_name.insert(name, state);
        }
        signature
    }

    /// The role of the file's tensor of this name, if known.
    pub(super) fn state(&self, name: &str) -> Option<State> {
        self.by_name.get(name).copied()
    }

    /// The parameters that a call takes, as operands.
    pub(super) fn parameters<'b>(&self, call: &Call<'b>) -> Vec<&'b str> {
        let is_parameter = |operand: &&str| match self.by_operand.get(operand) {
            Some((state, _)) => *state == State::Parameter,
            None => self.by_operand.is_empty() && operand.starts_with("p_"),
        };
        call.operands().filter(is_parameter).collect()
    }

    /// Whether a call takes buffers of the module, and none of its parameters.
    pub(super) fn takes_buffers_alone(&self, call: &Call<'_>) -> bool {
        let states = || call.operands().filter_map(|operand| self.by_operand.get(operand)).map(|(state, _)| *state);
        states().any(|state| state == State::Buffer) && states().all(|state| state == State::Buffer)
    }

    /// The name in the module of an operand.
    pub(super) fn target(&self, operand: &str) -> Option<&'a str> {
        self.by_operand.get(operand).map(|(_, name)| *name).filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_signatures_are_read() {
        let text = "%linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default]\
                    (args = (%x, %p_fc_weight, %p_fc_bias), kwargs = {})";
        let node = NodeDef { call: Some(text.to_owned()), ..NodeDef::default() };
        let call = Call::read(&node).expect("a call");
        assert_eq!(call.target, "torch.ops.aten.linear.default");
        assert_eq!(call.operands().collect::<Vec<_>>(), ["x", "p_fc_weight", "p_fc_bias"]);
        let lines = "\n# inputs\np_fc_weight: PARAMETER target='fc.weight'\np_fc_bias: PARAMETER target='fc.bias'\n\
                     b_mean: BUFFER target='mean' persistent=True\nx: USER_INPUT\n";
        let graph = GraphDef { signature: Some(lines.to_owned()), ..GraphDef::default() };
        let signature = Signature::read(&graph);
        assert_eq!(signature.parameters(&call), ["p_fc_weight", "p_fc_bias"]);
        assert_eq!(signature.target("p_fc_bias"), Some("fc.bias"));
        assert_eq!((signature.state("mean"), signature.state("fc")), (Some(State::Buffer), None));
        for text in ["", "[target=", "[target=]", "%%%", "[target=a](%"] {
            let node = NodeDef { call: Some(text.to_owned()), ..NodeDef::default() };
            Call::read(&node).map(|call| call.operands().count());
        }
    }
}
