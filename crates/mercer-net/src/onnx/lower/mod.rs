//! Lowering an ONNX graph to primitives, for given sample shapes.
//!
//! The graph is lowered for **one sample**: the batch axis has size one, and shape arithmetic is plain arithmetic on
//! known numbers. A primitive whose operands are all constants is evaluated at once with the code that runs it later,
//! so there is no second evaluator. To find what depends on the batch size, all constant arithmetic is done a second
//! time for two samples (`two`). Where the results differ the batch is involved, and the target of a reshape tells
//! where its axis went.

mod activation;
mod arithmetic;
mod attention;
mod constant;
mod cut;
mod gather;
mod linear;
mod normalise;
mod plumbing;
mod pool;
mod reduce;
mod reshape;
mod resize;
mod samples;
mod scope;

pub(super) use constant::Host;
pub use constant::NumberKind;
pub(super) use scope::{Operand, Scope};

use super::detect::{Detected, Tied};
use super::model::{Attribute, FunctionDef, GraphDef, Model, NodeDef, ValueInfo};
use crate::budget::Budget;
use crate::error::{NetError, Result};
use crate::graph::{Batch, Graph, GraphBuilder, ValueId, count, shortened};
use crate::op::Transpose;
use std::collections::HashMap;

/// An input of the model for lowering.
#[derive(Clone, Debug)]
pub(crate) struct InputShape {
    pub(crate) name: String,
    /// With size one at the batch axis.
    pub(crate) shape: Vec<usize>,
    pub(crate) batch: Batch,
    pub(crate) kind: NumberKind,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) one: Operand,
    /// The constant for two samples, where it differs.
    pub(super) two: Option<Host>,
}

/// The state of a lowering.
pub(super) struct Lowering<'a> {
    pub(super) builder: GraphBuilder,
    pub(super) names: HashMap<String, Known>,
    pub(super) kinds: HashMap<ValueId, NumberKind>,
    pub(super) opset: i64,
    /// The batch size that is written into the file, where it is not one.
    pub(super) baked: Option<usize>,
    /// By domain and name.
    functions: HashMap<(&'a str, &'a str), &'a FunctionDef>,
    depth: usize,
}

/// A request to lower a model.
pub(crate) struct Request<'a> {
    pub(crate) model: &'a Model,
    pub(crate) tensors: &'a [Detected],
    pub(crate) inputs: &'a [InputShape],
    pub(crate) baked: Option<usize>,
    /// The budget left after decoding the file.
    pub(crate) budget: Budget,
}

/// Lowers a model for inputs of these shapes.
pub(crate) fn lower(request: &Request<'_>) -> Result<Graph> {
    let Request { model, tensors, inputs, baked, budget } = *request;
    let functions = model.functions.iter().map(|function| ((&function.domain[..], &function.name[..]), function));
    let mut lowering = Lowering {
        builder: GraphBuilder::within(budget),
        names: HashMap::new(),
        kinds: HashMap::new(),
        opset: model.opset,
        baked,
        functions: functions.collect(),
        depth: 0,
    };
    for input in inputs {
        if count(&input.shape).is_none() {
            let reason = format!("samples of shape {:?} are too large", input.shape);
            return Err(NetError::Input { input: input.name.clone(), reason });
        }
        if input.shape.contains(&0) {
            let reason = format!("samples of shape {:?} have no elements", input.shape);
            return Err(NetError::Input { input: input.name.clone(), reason });
        }
        let id = lowering.builder.input(&input.name, input.shape.clone(), input.batch.clone());
        lowering.define(&input.name, Operand::Value(id), input.kind);
    }
    for detected in tensors.iter().filter(|detected| detected.is_parameter) {
        let id = lowering.builder.parameter(&detected.tensor.name, detected.tensor.shape.clone());
        lowering.define(&detected.tensor.name, Operand::Value(id), NumberKind::Float);
    }
    for detected in tensors.iter().filter(|detected| !detected.is_parameter) {
        lowering.tied(detected)?;
    }
    lowering.graph(&model.graph)?;
    for output in &model.graph.outputs {
        let id = lowering.output(&output.name)?;
        lowering.builder.output(&output.name, id);
    }
    let graph = lowering.builder.finish();
    check_elements(&graph)?;
    Ok(graph)
}

/// Refuses nodes with empty operands or results: their derivatives, norms and kernels are meaningless. Nodes that no
/// output needs, and empty parts of a concatenation, have been removed before.
fn check_elements(graph: &Graph) -> Result<()> {
    for node in graph.nodes() {
        let mut values = std::iter::once(&node.output).chain(&node.inputs).map(|&id| graph.value(id));
        if let Some(value) = values.find(|value| value.meta.numel() == 0) {
            let reason = format!("{:?} of shape {:?} has no elements", shortened(&value.name), value.meta.shape);
            return Err(NetError::Shape { node: node.label(), reason });
        }
    }
    match graph.outputs().iter().find(|(_, id)| graph.value(*id).meta.numel() == 0) {
        None => Ok(()),
        Some((name, id)) => {
            let reason = format!("its shape {:?} has no elements", graph.value(*id).meta.shape);
            Err(NetError::Shape { node: format!("of output {:?}", shortened(name)), reason })
        }
    }
}

impl Lowering<'_> {
    fn define(&mut self, name: &str, operand: Operand, kind: NumberKind) {
        if let Operand::Value(id) = operand {
            self.kinds.insert(id, kind);
        }
        self.names.insert(name.to_owned(), Known { one: operand, two: None });
    }

    /// A copy of a parameter is that parameter, transposed if necessary.
    fn tied(&mut self, detected: &Detected) -> Result<()> {
        let Some(Tied { to, transposed, .. }) = &detected.tied else { return Ok(()) };
        let Some(Known { one: Operand::Value(source), .. }) = self.names.get(to) else { return Ok(()) };
        let (name, mut id) = (&detected.tensor.name, *source);
        if *transposed {
            id = self.builder.node(name, Transpose { perm: vec![1, 0] }, &[id])?;
        }
        self.define(name, Operand::Value(id), NumberKind::Float);
        Ok(())
    }

    /// Lowers the nodes of a graph in topological order.
    fn graph(&mut self, graph: &GraphDef) -> Result<()> {
        for tensor in &graph.initializers {
            if !self.names.contains_key(&tensor.name) {
                let place = || format!("tensor {:?} of shape {:?}", shortened(&tensor.name), tensor.shape);
                self.builder.budget().spend_numbers(place, tensor.numel())?;
                self.define(&tensor.name, Operand::Constant(Host::from_tensor(tensor)), NumberKind::Float);
            }
        }
        self.nodes(&graph.nodes)
    }

    fn nodes(&mut self, nodes: &[NodeDef]) -> Result<()> {
        let order = topological(nodes, |name| self.names.contains_key(name))?;
        for index in order {
            self.node(&nodes[index])?;
        }
        Ok(())
    }

    fn node(&mut self, node: &NodeDef) -> Result<()> {
        match node.op.as_str() {
            // A Constant node that was classified as a parameter is known already.
            "Constant" if node.outputs.iter().all(|name| self.names.contains_key(name)) => Ok(()),
            "If" => self.branch(node),
            _ => match self.functions.get(&(&node.domain[..], &node.op[..])) {
                Some(function) => self.function(node, function),
                None => self.operator(node),
            },
        }
    }

    fn operator(&mut self, node: &NodeDef) -> Result<()> {
        let before = self.builder.graph().values().len();
        let outputs = Scope::new(self, node, false).and_then(|mut scope| scope.lower())?;
        let depends = node.inputs.iter().any(|name| self.names.get(name).is_some_and(|known| known.two.is_some()));
        let folded = outputs.iter().all(|(operand, _)| matches!(operand, Operand::Constant(_)));
        if depends && !folded {
            self.check_operands(node)?;
        }
        // Constant arithmetic that involves the batch size is done for two samples as well.
        let seconds = if matches!(node.op.as_str(), "Shape" | "Size") {
            known(Scope::new(self, node, true).and_then(|mut scope| scope.shape_of_two()))?
                .flatten()
                .map(|host| vec![host])
        } else if depends && folded {
            let again = Scope::new(self, node, true).and_then(|mut scope| scope.lower());
            known(again)?.map(|outputs| {
                let host = |(operand, _)| if let Operand::Constant(host) = operand { Some(host) } else { None };
                outputs.into_iter().filter_map(host).collect()
            })
        } else {
            None
        };
        for (index, (name, (operand, kind))) in node.outputs.iter().zip(outputs).enumerate() {
            if name.is_empty() {
                continue;
            }
            if let Operand::Value(id) = operand
                && id.index() >= before
            {
                self.builder.rename(id, name.clone());
            }
            let mut two = seconds.as_ref().and_then(|hosts: &Vec<Host>| hosts.get(index).cloned());
            if let (Operand::Constant(one), Some(second)) = (&operand, &two)
                && one == second
            {
                two = None;
            }
            self.define(name, operand, kind);
            if let Some(known) = self.names.get_mut(name) {
                known.two = two;
            }
        }
        Ok(())
    }

    /// A conditional whose condition is known.
    fn branch(&mut self, node: &NodeDef) -> Result<()> {
        let unsupported = |reason: &str| NetError::Unsupported { node: node.label(), reason: reason.to_owned() };
        let condition = node.inputs.first().and_then(|name| self.names.get(name));
        let Some(Known { one: Operand::Constant(host), two }) = condition else {
            return Err(unsupported("a condition that depends on the data"));
        };
        if two.is_some() {
            return Err(NetError::MixesSamples { node: node.label() });
        }
        let chosen = if host.first() != 0.0 { "then_branch" } else { "else_branch" };
        let Some(Attribute::Graph(graph)) = node.attribute(chosen) else {
            return Err(unsupported("the branch is missing"));
        };
        // Names are local to a branch: another branch may use the same.
        let results = graph.nodes.iter().flat_map(|inner| &inner.outputs);
        let own: Vec<&String> = graph.initializers.iter().map(|tensor| &tensor.name).chain(results).collect();
        let hidden: Vec<Option<Known>> = own.iter().map(|&name| self.names.remove(name)).collect();
        self.graph(graph)?;
        let result = |inner: &ValueInfo| self.names.get(&inner.name).cloned();
        let results: Option<Vec<Known>> = graph.outputs.iter().map(result).collect();
        let results = results.ok_or_else(|| unsupported("a branch has no result"))?;
        for (name, hidden) in own.into_iter().zip(hidden) {
            match hidden {
                Some(known) => self.names.insert(name.clone(), known),
                None => self.names.remove(name),
            };
        }
        self.names.extend(node.outputs.iter().cloned().zip(results));
        Ok(())
    }

    /// A function of the model, inlined.
    fn function(&mut self, node: &NodeDef, function: &FunctionDef) -> Result<()> {
        const MAX_DEPTH: usize = 16;
        let unsupported = |reason: &str| NetError::Unsupported { node: node.label(), reason: reason.to_owned() };
        if self.depth >= MAX_DEPTH {
            return Err(unsupported("functions call each other too deeply"));
        }
        let prefix = node.outputs.first().map_or("", String::as_str);
        let local = |name: &String| if name.is_empty() { String::new() } else { format!("{prefix}/{name}") };
        for (formal, actual) in function.inputs.iter().zip(&node.inputs) {
            if let Some(known) = self.names.get(actual).cloned() {
                self.names.insert(local(formal), known);
            }
        }
        for inner in &function.nodes {
            let names = 1 + inner.inputs.len() + inner.outputs.len();
            let passed = inner.attributes.iter().filter(|(_, value)| matches!(value, Attribute::Reference(_))).count();
            // From here on, names are resolved in the function's scope.
            let own = inner.bytes() + names * (prefix.len() + 1) + inner.outputs.len() * (size_of::<Known>() + 64);
            let bytes = own.saturating_add(passed.saturating_mul(node.bytes()));
            self.builder.budget().spend(|| format!("node {}", node.label()), bytes)?;
        }
        let body: Vec<NodeDef> = function
            .nodes
            .iter()
            .map(|inner| NodeDef {
                name: format!("{prefix}/{}", inner.name),
                inputs: inner.inputs.iter().map(local).collect(),
                outputs: inner.outputs.iter().map(local).collect(),
                attributes: inner
                    .attributes
                    .iter()
                    .filter_map(|(name, value)| match value {
                        Attribute::Reference(outer) => {
                            node.attribute(outer).map(|actual| (name.clone(), actual.clone()))
                        }
                        other => Some((name.clone(), other.clone())),
                    })
                    .collect(),
                ..inner.clone()
            })
            .collect();
        self.depth += 1;
        self.nodes(&body)?;
        self.depth -= 1;
        for (outer, inner) in node.outputs.iter().zip(&function.outputs) {
            let known =
                self.names.get(&local(inner)).cloned().ok_or_else(|| unsupported("the function has no result"))?;
            self.names.insert(outer.clone(), known);
        }
        Ok(())
    }

    fn output(&mut self, name: &str) -> Result<ValueId> {
        self.check_output(name)?;
        match self.names.get(name).cloned() {
            Some(Known { one: Operand::Value(id), .. }) => Ok(id),
            Some(Known { one: Operand::Constant(host), .. }) => {
                self.builder.budget().spend_numbers(|| format!("output {:?}", shortened(name)), host.data.len())?;
                Ok(self.builder.shared_constant(name, host.shape, host.data))
            }
            None => Err(NetError::Malformed { reason: format!("output {name:?} is not computed by any node") }),
        }
    }
}

/// The result for two samples, if it could be computed. Exceeding the budget is an error, not an unknown.
fn known<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(error @ (NetError::OverBudget { .. } | NetError::TooMuchWork { .. })) => Err(error),
        Err(_) => Ok(None),
    }
}

/// A topological order of the nodes.
fn topological(nodes: &[NodeDef], known: impl Fn(&str) -> bool) -> Result<Vec<usize>> {
    let maker: HashMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .flat_map(|(index, node)| node.outputs.iter().map(move |name| (name.as_str(), index)))
        .collect();
    let mut waiting = vec![0usize; nodes.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        for name in node.inputs.iter().filter(|name| !name.is_empty() && !known(name)) {
            let Some(&source) = maker.get(name.as_str()) else {
                let reason = format!("node {} needs {name:?}, which nothing computes", node.label());
                return Err(NetError::Malformed { reason });
            };
            waiting[index] += 1;
            users[source].push(index);
        }
    }
    // Files are usually in order already; the heap keeps that order where there is a choice.
    let mut ready: std::collections::BinaryHeap<std::cmp::Reverse<usize>> =
        (0..nodes.len()).filter(|&index| waiting[index] == 0).map(std::cmp::Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(std::cmp::Reverse(index)) = ready.pop() {
        order.push(index);
        for &user in &users[index] {
            waiting[user] -= 1;
            if waiting[user] == 0 {
                ready.push(std::cmp::Reverse(user));
            }
        }
    }
    if order.len() < nodes.len() {
        let stuck = (0..nodes.len()).find(|&index| waiting[index] > 0).map_or(String::new(), |i| nodes[i].label());
        return Err(NetError::Malformed { reason: format!("the graph has a cycle through node {stuck}") });
    }
    Ok(order)
}
