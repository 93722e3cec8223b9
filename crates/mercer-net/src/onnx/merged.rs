//! Tensors that an exporter merged because their values are equal.
//!
//! Both PyTorch exporters store equal tensors once, so an untrained transformer loses most of its biases and scales.
//! Tracing leaves evidence: `Identity(norm1.weight) → norm2.weight`. The new exporter names the module's parameters in
//! the calls that it records with its nodes ([`record`](super::record)). Without evidence, constant biases, scales and
//! slopes that several nodes use are assumed to be merged; weights, and tensors that were trained, are assumed to be
//! shared.
//!
//! Every parameter of the module gets its own tensor here, tied to the first one. The user may untie them.

use super::around::{Around, Exporter, is_made_up};
use super::detect::{Detected, Tied, Use};
use super::model::{Attribute, GraphDef};
use super::record::Call;
use super::tensor::{Data, Tensor};
use super::verdict::{Candidate, Verdict, is_soft};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A zero bias that the new exporter dropped from a layer.
#[derive(Clone, Debug)]
pub(crate) struct Dropped {
    /// The layers that it belongs to.
    pub(crate) nodes: Vec<usize>,
    pub(crate) detected: Detected,
}

/// Names that are taken.
pub(super) struct Names(HashSet<String>);

impl Names {
    pub(super) fn read(graph: &GraphDef) -> Self {
        let tensors = graph.initializers.iter().map(|tensor| &tensor.name);
        let inputs = graph.inputs.iter().map(|input| &input.name);
        let results = graph.nodes.iter().flat_map(|node| &node.outputs);
        Self(tensors.chain(inputs).chain(results).cloned().collect())
    }

    fn is_free(&self, name: &str) -> bool {
        !self.0.contains(name)
    }

    /// The name, or a similar one that is free.
    fn take(&mut self, wanted: String) -> String {
        let mut name = wanted.clone();
        let mut count = 1;
        while !self.0.insert(name.clone()) {
            count += 1;
            name = format!("{wanted}/{count}");
        }
        name
    }
}

/// Replaces `Identity` of an initialiser by a second initialiser with the same values; returns the pairs.
pub(super) fn take_identities(graph: &mut GraphDef) -> HashMap<String, String> {
    let outputs: HashSet<&str> = graph.outputs.iter().map(|output| output.name.as_str()).collect();
    let index: HashMap<&str, usize> =
        graph.initializers.iter().enumerate().map(|(at, tensor)| (tensor.name.as_str(), at)).collect();
    let mut roots: HashMap<String, String> = HashMap::new();
    let mut copies = Vec::new();
    let mut taken = vec![false; graph.nodes.len()];
    for (at, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.op == "Identity") {
        let ([input], [output]) = (&node.inputs[..], &node.outputs[..]) else { continue };
        let root = roots.get(input).unwrap_or(input).clone();
        let Some(&source) = index.get(root.as_str()) else { continue };
        let tensor = &graph.initializers[source];
        if tensor.is_float() && !outputs.contains(output.as_str()) && !index.contains_key(output.as_str()) {
            copies.push(Tensor { name: output.clone(), ..tensor.clone() });
            roots.insert(output.clone(), root);
            taken[at] = true;
        }
    }
    let mut keep = taken.iter().map(|taken| !taken);
    graph.nodes.retain(|_| keep.next().unwrap_or(true));
    graph.initializers.extend(copies);
    roots
}

/// A part of a tensor: the uses that stand for one parameter of the module, or for a constant.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) reason: String,
    /// Its role as a parameter; `None` for constants.
    pub(super) role: Option<&'static str>,
    pub(super) uses: Vec<(usize, usize)>,
    /// Whether it needs its own tensor.
    pub(super) is_split: bool,
}

/// Uses that stand for the same thing.
struct Group<'a> {
    owner: Option<&'a str>,
    role: &'static str,
    uses: Vec<(usize, usize)>,
}

/// Separates the uses of a tensor.
pub(super) fn parts(around: &Around<'_>, candidate: &Candidate<'_>, uses: &[Use<'_>], names: &mut Names) -> Vec<Part> {
    let own = candidate.name;
    let label = |at: (usize, usize), role: &str| format!("{role} of {}", around.nodes[at.0].label());
    let mut groups = groups(around, candidate, uses);
    let is_own = |group: &Group<'_>| group.owner.and_then(|owner| around.signature.target(owner)) == Some(own);
    if let Some(first) = groups.iter().position(is_own) {
        groups.swap(0, first);
    }
    if groups.is_empty() {
        let reason = uses.first().map_or_else(
            || "not used".to_owned(),
            |first| match first.verdict {
                Verdict::Parameter(role) | Verdict::Constant(role) | Verdict::Fixed(role) => {
                    label((first.node, first.operand), role)
                }
            },
        );
        return vec![Part { name: own.to_owned(), reason, role: None, uses: Vec::new(), is_split: false }];
    }
    let fixed = |used: &Use<'_>| match used.verdict {
        Verdict::Fixed(role) => Some(((used.node, used.operand), role)),
        _ => None,
    };
    let fixed: Vec<_> = uses.iter().filter_map(fixed).collect();
    let beside = |at: (usize, usize)| format!("{own}@{}", around.nodes[at.0].title());
    let mut parts = Vec::new();
    for (number, Group { owner, role, uses }) in groups.into_iter().enumerate() {
        let named = owner.and_then(|owner| around.signature.target(owner)).filter(|name| names.is_free(name));
        let name = match number {
            0 => own.to_owned(),
            _ => names.take(named.map_or_else(|| beside(uses[0]), str::to_owned)),
        };
        parts.push(Part { name, reason: label(uses[0], role), role: Some(role), uses, is_split: number > 0 });
    }
    if let Some(&(first, role)) = fixed.first() {
        let uses = fixed.iter().map(|(at, _)| *at).collect();
        let name = names.take(beside(first));
        parts.push(Part { name, reason: label(first, role), role: None, uses, is_split: true });
    }
    parts
}

fn groups<'a>(around: &Around<'_>, candidate: &Candidate<'_>, uses: &[Use<'a>]) -> Vec<Group<'a>> {
    // Tracing records what it merges, and our own files merge nothing.
    let tells = matches!(around.exporter, Exporter::TorchTracing | Exporter::Own);
    let guess = |role: &str| !tells && is_soft(role) && candidate.uniform.is_some();
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut by_owner: HashMap<&str, usize> = HashMap::new();
    let mut by_node: HashMap<usize, usize> = HashMap::new();
    let mut others = Vec::new();
    for used in uses {
        let Verdict::Parameter(role) = used.verdict else { continue };
        let next = groups.len();
        let at = match used.owner {
            Some(owner) => *by_owner.entry(owner).or_insert(next),
            None if guess(role) => *by_node.entry(used.node).or_insert(next),
            None => {
                others.push((used, role));
                continue;
            }
        };
        if at == next {
            groups.push(Group { owner: used.owner, role, uses: Vec::new() });
        }
        groups[at].uses.push((used.node, used.operand));
    }
    // Uses without evidence belong to the first parameter.
    for (used, role) in others {
        if groups.is_empty() {
            groups.push(Group { owner: None, role, uses: Vec::new() });
        }
        groups[0].uses.push((used.node, used.operand));
    }
    groups
}

/// Parameters with equal values: the first of each family is the parameter, the others are tied to it.
pub(super) struct Families<'a> {
    roots: &'a HashMap<String, String>,
    first: HashMap<String, String>,
}

impl<'a> Families<'a> {
    pub(super) fn new(roots: &'a HashMap<String, String>) -> Self {
        Self { roots, first: HashMap::new() }
    }

    /// Ties a parameter called `name`, a part of the tensor `whole`, to the first one of its family.
    pub(super) fn tie(&mut self, whole: &str, name: &str, role: &str, is_split: bool) -> Option<Tied> {
        let root = self.roots.get(whole).map_or(whole, String::as_str);
        match self.first.get(root) {
            None => {
                self.first.insert(root.to_owned(), name.to_owned());
                None
            }
            Some(first) => {
                // A weight under an invented name may be a tied weight that was folded twice.
                let merged = is_split || is_soft(role) || !is_made_up(name);
                Some(Tied { to: first.clone(), transposed: false, merged })
            }
        }
    }
}

/// Gives the uses of new tensors their names, and adds those tensors to the graph.
pub(super) fn apply(graph: &mut GraphDef, tensors: &[Detected], edits: Vec<(usize, usize, String)>) {
    let new: HashSet<String> = edits.iter().map(|(_, _, name)| name.clone()).collect();
    for (node, operand, name) in edits {
        graph.nodes[node].inputs[operand] = name;
    }
    let split = tensors.iter().map(|detected| &detected.tensor).filter(|tensor| new.contains(&tensor.name));
    graph.initializers.extend(split.cloned());
}

/// The zero biases of the module that the new exporter dropped.
pub(super) fn dropped(
    around: &Around<'_>,
    index: &HashMap<&str, usize>,
    candidates: &[Candidate<'_>],
    names: &mut Names,
) -> Vec<Dropped> {
    let mut found: Vec<Dropped> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (number, node) in around.nodes.iter().enumerate() {
        let flag = |name: &str| matches!(node.attribute(name), Some(Attribute::Int(value)) if *value != 0);
        let channels = match (node.op.as_str(), &node.inputs[..]) {
            ("Gemm" | "Conv", [_, weight]) => index.get(weight.as_str()).and_then(|&at| {
                let shape = &candidates[at].tensor.shape;
                if node.op == "Gemm" && !flag("transB") { shape.get(1) } else { shape.first() }.copied()
            }),
            _ => None,
        };
        let (Some(channels), Some(call)) = (channels, Call::read(node)) else { continue };
        if !["linear", "addmm", "conv"].iter().any(|name| call.target.contains(name)) {
            continue;
        }
        let own = around.signature.parameters(&call);
        let Some(bias) = own.iter().find(|operand| operand.ends_with("bias")).filter(|_| own.len() == 2) else {
            continue;
        };
        let name = around.signature.target(bias).unwrap_or(bias);
        if let Some(&at) = known.get(name) {
            found[at].nodes.push(number);
            continue;
        }
        if !names.is_free(name) {
            continue;
        }
        let data = Data::F32(Arc::new(vec![0.0; channels]));
        let tensor = Tensor { name: names.take(name.to_owned()), shape: vec![channels], data };
        let reason = format!("bias of {}; the exporter dropped its zeros", node.label());
        known.insert(name, found.len());
        found.push(Dropped {
            nodes: vec![number],
            detected: Detected { tensor, is_parameter: true, reason, tied: None },
        });
    }
    found
}
