//! A fingerprint of a network: what it computes, and with which numbers.

use super::Weights;
use crate::element::Element;
use crate::graph::Graph;
use sha2::{Digest, Sha256};

impl<T: Element> Weights<T> {
    /// A fingerprint of these numbers and of the graph they are for. Networks with the same fingerprint compute the same;
    /// names of values do not matter, those of parameters do.
    pub fn fingerprint(&self, graph: &Graph) -> String {
        let mut digest = Sha256::new().chain_update(b"mercer network").chain_update(T::NAME);
        for node in graph.nodes() {
            let inputs: Vec<usize> = node.inputs.iter().map(|id| id.index()).collect();
            let shape = &graph.value(node.output).meta.shape;
            digest.update(format!("{:?} {inputs:?} {} {shape:?}\n", node.op, node.output.index()));
        }
        for &id in graph.inputs().iter().chain(graph.parameters()) {
            let value = graph.value(id);
            digest.update(format!("{} {} {:?}\n", id.index(), value.name, value.meta.shape));
        }
        let mut bytes = Vec::new();
        for array in self.parameters.iter().chain(&self.constants) {
            for piece in array.chunks(1 << 14) {
                bytes.clear();
                piece.iter().for_each(|x| bytes.extend_from_slice(&x.wide().to_le_bytes()));
                digest.update(&bytes);
            }
        }
        digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}
