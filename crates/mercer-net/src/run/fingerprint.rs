//! A fingerprint of a network: what it computes, and with which numbers.
//!
//! It does not depend on the scalar that the network is run in: parameters count with the numbers they have, and constants
//! with those of the graph, which are in double precision.

use super::Weights;
use crate::element::Element;
use crate::graph::Graph;
use crate::network::{Network, Values};
use sha2::{Digest, Sha256};

impl<T: Element> Weights<T> {
    /// A fingerprint of these numbers and of the graph they are for. Networks with the same fingerprint compute the same;
    /// names of values do not matter, those of parameters do.
    pub fn fingerprint(&self, graph: &Graph) -> String {
        fingerprint(graph, self.parameters.iter().map(|array| array.iter().map(|x| x.wide())))
    }
}

impl Network {
    /// The fingerprint of the numbers that the file has, where `T` cannot hold them all: that of the [`Weights`] is then of
    /// rounded ones. `None` where both are the same.
    pub fn wide_fingerprint<T: Element>(&self, graph: &Graph) -> Option<String> {
        let rounded = |values: &Values| match values {
            Values::F32(_) => false,
            Values::F64(values) => values.iter().any(|&x| T::of(x).wide() != x),
        };
        let arrays = || self.parameters().iter().map(|parameter| parameter.values());
        arrays().any(rounded).then(|| fingerprint(graph, arrays().map(|values| values.to_vec::<f64>())))
    }
}

fn fingerprint(graph: &Graph, parameters: impl Iterator<Item = impl IntoIterator<Item = f64>>) -> String {
    // The name of a scalar was part of it once; double precision keeps the fingerprints that it had.
    let mut digest = Sha256::new().chain_update(b"mercer network").chain_update("f64");
    for node in graph.nodes() {
        let inputs: Vec<usize> = node.inputs.iter().map(|id| id.index()).collect();
        let shape = &graph.value(node.output).meta.shape;
        digest.update(format!("{:?} {inputs:?} {} {shape:?}\n", node.op, node.output.index()));
    }
    for &id in graph.inputs().iter().chain(graph.parameters()) {
        let value = graph.value(id);
        digest.update(format!("{} {} {:?}\n", id.index(), value.name, value.meta.shape));
    }
    let mut bytes = Vec::with_capacity(1 << 17);
    let mut add = |x: f64| {
        bytes.extend_from_slice(&x.to_le_bytes());
        if bytes.len() == 1 << 17 {
            digest.update(&bytes);
            bytes.clear();
        }
    };
    parameters.for_each(|array| array.into_iter().for_each(&mut add));
    graph.constants.iter().for_each(|array| array.iter().copied().for_each(&mut add));
    digest.update(&bytes);
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Mlp;

    /// The scalar does not matter, every number does; also those that single precision rounds.
    #[test]
    fn of_the_network_and_not_of_the_scalar() {
        let mut network = Mlp::new(3, &[4], 2).initialisation(crate::arch::Initialisation::Ntk).build(1).unwrap();
        let graph = network.declared_graph().unwrap();
        let both = |network: &Network| {
            let (single, double) = (network.weights::<f32>(&graph), network.weights::<f64>(&graph));
            let single = network.wide_fingerprint::<f32>(&graph).unwrap_or_else(|| single.fingerprint(&graph));
            assert_eq!(network.wide_fingerprint::<f64>(&graph), None);
            assert_eq!(single, double.fingerprint(&graph));
            single
        };
        let first = both(&network);
        let mut weights = network.weights::<f64>(&graph);
        weights.parameters[1][3] += 1e-12;
        network.set_weights(&weights);
        assert_ne!(both(&network), first);
    }
}
