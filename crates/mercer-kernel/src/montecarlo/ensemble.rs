//! Random networks of one architecture.

use super::roles::{Role, roles};
use crate::error::{KernelError, Result};
use crate::infinite::{Parametrisation, Rule, Variances};
use crate::kernel::{Real, with_precision};
use mercer_data::random::stream;
use mercer_net::Network;
use mercer_net::graph::{Graph, GraphBuilder, Meta, Node, Origin, ValueId};
use mercer_net::network::Values;
use mercer_net::op::{Conv, Function, MatMul, Unary};
use mercer_net::run::Weights;
use rand::RngExt;
use rand_distr::StandardNormal;
use std::collections::HashMap;
use std::sync::Arc;

/// The distribution of a parameter's values.
#[derive(Clone, Debug)]
enum Draw {
    /// Independent, normal, with this standard deviation.
    Normal(f64),
    /// All the same.
    Constant(f64),
    /// The values of the network that the ensemble was made from.
    Kept(Values),
}

/// Random networks of one architecture: the graph of a network with newly drawn weights.
///
/// The variances are those of a [`Rule`], as for the [limit](crate::infinite::lower) of the same graph, so that both describe the
/// same distribution. All weights are normal, because a limit depends only on variances. Scales and shifts of
/// normalisations are one and zero, tables of embeddings standard normal, and all other parameters (class tokens,
/// positions, slopes) keep the values of the network.
///
/// If the rule uses a different parametrisation from the graph, scales are inserted into the graph. Network `i` depends
/// on the seed, on `i` and on the names of the parameters, but not on the number of networks.
#[derive(Clone, Debug)]
pub struct Ensemble {
    graph: Arc<Graph>,
    draws: Vec<Draw>,
    rule: Rule,
    seed: u64,
}

impl Ensemble {
    /// Networks with the architecture of this one, for samples of these shapes (one per input).
    pub fn new(network: &Network, samples: &[Vec<usize>], rule: &Rule, seed: u64) -> Result<Self> {
        rule.check()?;
        let graph = network.graph(samples)?;
        let roles = roles(&graph);
        if !roles.iter().any(|role| matches!(role, Role::Weight { .. } | Role::Table)) {
            return Err(KernelError::Setting("the network has no weights that could be drawn".to_owned()));
        }
        let (mut draws, mut scales) = (Vec::with_capacity(roles.len()), Vec::with_capacity(roles.len()));
        for (role, parameter) in roles.iter().zip(network.parameters()) {
            let (draw, scale) = drawn(rule, role, parameter.values());
            draws.push(draw);
            scales.push(scale);
        }
        let graph = if scales.iter().all(|&scale| scale == 1.0) { graph } else { Arc::new(rescaled(&graph, &scales)?) };
        Ok(Self { graph, draws, rule: *rule, seed })
    }

    /// The graph that all networks share.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The weights of a network, drawn in single precision, so that runs in either precision draw the same networks.
    pub fn weights<T: Real>(&self, index: usize) -> Weights<T> {
        let parameters = self.graph.parameters().iter().zip(&self.draws);
        let numbers = |(&id, draw): (&ValueId, &Draw)| {
            let value = self.graph.value(id);
            let count = value.meta.numel();
            match draw {
                Draw::Kept(values) => values.to_vec(),
                Draw::Constant(value) => vec![T::narrow(*value); count],
                Draw::Normal(0.0) => vec![T::zero(); count],
                Draw::Normal(deviation) => {
                    let mut random = stream(self.seed, &format!("network {index}/{}", value.name));
                    let next = |_| T::narrow(f64::from((deviation * random.sample::<f64, _>(StandardNormal)) as f32));
                    (0..count).map(next).collect()
                }
            }
        };
        Weights::new(&self.graph, parameters.map(numbers).collect())
    }

    /// The total number of scalar parameters.
    pub fn n_params(&self) -> usize {
        self.graph.parameters().iter().map(|&id| self.graph.value(id).meta.numel()).sum()
    }

    /// The identity of the networks, for manifests.
    pub(super) fn identity<T: Real>(&self) -> serde_json::Value {
        // The graph with its constants, and the parameters that are kept; drawn numbers follow from the rest.
        let shapes = self.graph.parameters().iter().zip(&self.draws).map(|(&id, draw)| match draw {
            Draw::Kept(values) => values.to_vec(),
            _ => vec![T::zero(); self.graph.value(id).meta.numel()],
        });
        let weights = Weights::<T>::new(&self.graph, shapes.collect());
        with_precision::<T>(serde_json::json!({
            "architecture": weights.fingerprint(&self.graph), "rule": format!("{:?}", self.rule), "seed": self.seed,
        }))
    }
}

/// The distribution of a parameter, and the factor in the graph that makes gradients follow the rule.
fn drawn(rule: &Rule, role: &Role, values: &Values) -> (Draw, f64) {
    let (deviation, factor) = match *role {
        Role::Weight { fan_in, factor } => (deviation(rule, fan_in, factor)[0], factor),
        Role::Bias { fan_in, factor } => (deviation(rule, fan_in, factor)[1], factor),
        Role::Scale => return (Draw::Constant(1.0), 1.0),
        Role::Shift => return (Draw::Constant(0.0), 1.0),
        Role::Table => return (Draw::Normal(1.0), 1.0),
        Role::Other => return (Draw::Kept(values.clone()), 1.0),
    };
    match rule.parametrisation {
        Parametrisation::AsWritten => (Draw::Normal(deviation), 1.0),
        Parametrisation::Ntk => (Draw::Normal(1.0), deviation),
        Parametrisation::Standard => (Draw::Normal(deviation * factor.abs()), factor.abs().recip()),
    }
}

/// The standard deviations of a weight and of a bias that the graph multiplies by `factor`.
fn deviation(rule: &Rule, fan_in: usize, factor: f64) -> [f64; 2] {
    let drawn = rule.drawn(fan_in).map(f64::sqrt);
    match rule.variances {
        Variances::Initialisation(_) => drawn,
        // Whatever scales the graph has.
        Variances::Deviations { .. } => drawn.map(|deviation| deviation / factor.abs()),
    }
}

/// The same graph with every parameter times a number.
///
/// A weight that is used once is scaled after its product, so that its gradient is still an outer product.
fn rescaled(graph: &Graph, scales: &[f64]) -> Result<Graph> {
    let mut builder = GraphBuilder::new();
    let mut new: HashMap<ValueId, ValueId> = HashMap::new();
    for &id in graph.inputs() {
        let value = graph.value(id);
        if let Meta { shape, batch: Some(batch) } = &value.meta {
            new.insert(id, builder.input(value.name.clone(), shape.clone(), batch.clone()));
        }
    }
    let affine = |scale: f64| Unary(Function::Affine { scale, shift: 0.0 });
    let mut behind: HashMap<ValueId, f64> = HashMap::new();
    for (&id, &scale) in graph.parameters().iter().zip(scales) {
        let value = graph.value(id);
        let made = builder.parameter(value.name.clone(), value.meta.shape.clone());
        let scaled = match only_product(graph, id) {
            _ if scale == 1.0 => made,
            Some(node) => {
                behind.insert(node.output, scale);
                made
            }
            None => builder.node(&format!("{}/scale", value.name), affine(scale), &[made])?,
        };
        new.insert(id, scaled);
    }
    for node in graph.nodes() {
        for &id in &node.inputs {
            if let (Origin::Constant(_), Some(data)) = (graph.value(id).origin, graph.constant(id)) {
                let value = graph.value(id);
                let shape = value.meta.shape.clone();
                new.entry(id).or_insert_with(|| builder.constant(value.name.clone(), shape, data.to_vec()));
            }
        }
        let inputs: Vec<ValueId> = node.inputs.iter().filter_map(|id| new.get(id).copied()).collect();
        let mut made = builder.push_node(&node.name, &node.operator, Arc::clone(&node.op), &inputs)?;
        let set = |builder: &mut GraphBuilder, made: ValueId| {
            if let Some(batch) = &graph.value(node.output).meta.batch {
                builder.set_batch(made, batch.clone());
            }
        };
        set(&mut builder, made);
        if let Some(&scale) = behind.get(&node.output) {
            made = builder.node(&format!("{}/scale", node.name), affine(scale), &[made])?;
            set(&mut builder, made);
        }
        new.insert(node.output, made);
    }
    for (name, id) in graph.outputs() {
        if let Some(&made) = new.get(id) {
            builder.output(name.clone(), made);
        }
    }
    Ok(builder.finish())
}

/// The product that is the only use of a weight and adds nothing.
fn only_product(graph: &Graph, weight: ValueId) -> Option<&Node> {
    let [only] = graph.uses(weight) else { return None };
    let node = &graph.nodes()[*only];
    let any = node.op.as_any();
    let product = any.is::<MatMul>() || any.is::<Conv>() && node.inputs.len() == 2;
    (product && graph.value(node.output).meta.is_batched()).then_some(node)
}
