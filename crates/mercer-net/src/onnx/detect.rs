//! Which tensors of a file are parameters.
//!
//! A parameter is a floating-point initialiser that acts as a weight, bias, scale or embedding. Statistics of batch
//! normalisation, scalars of formulas, limits and masks are constants. The reason is kept for reports.
//!
//! Exporters store equal tensors once, so one tensor may stand for several tensors of the module.
//! [`merged`](super::merged) separates its uses. A tensor that is a constant in one place and a parameter in another
//! becomes two tensors. A tensor that is a parameter in both places stays one parameter with a second name, unless the
//! user unmerges it.

use super::around::{Around, Exporter, is_made_up};
use super::folded::Folded;
use super::merged::{self, Dropped, Part};
use super::model::{Attribute, Model};
use super::tensor::{Data, Tensor};
use super::verdict::{Candidate, Verdict};
use std::collections::HashMap;

/// A floating-point tensor of the file and its verdict.
#[derive(Clone, Debug)]
pub(crate) struct Detected {
    pub(crate) tensor: Tensor,
    pub(crate) is_parameter: bool,
    pub(crate) reason: String,
    /// The parameter of which this is a copy.
    pub(crate) tied: Option<Tied>,
}

impl Detected {
    /// The reason for the verdict, and the parameter it was merged with.
    pub(crate) fn description(&self) -> String {
        match &self.tied {
            Some(Tied { to, merged: true, .. }) => format!("{}; merged with {to} by the exporter", self.reason),
            Some(Tied { to, transposed, .. }) => {
                format!("a copy of {to}{}", if *transposed { ", transposed" } else { "" })
            }
            None => self.reason.clone(),
        }
    }
}

/// A copy of a parameter. Exporters write an embedding that is also the output layer twice, the second time transposed,
/// and equal tensors once.
#[derive(Clone, Debug)]
pub(crate) struct Tied {
    pub(crate) to: String,
    pub(crate) transposed: bool,
    /// The module has two parameters that the exporter merged because their values are equal.
    pub(crate) merged: bool,
}

/// Everything known about the tensors of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detection {
    /// The floating-point tensors that nodes use, in the order of the file.
    pub(crate) tensors: Vec<Detected>,
    /// Zero biases that the exporter dropped.
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) folded: Folded,
}

/// A use of a tensor: which operand of which node.
pub(super) struct Use<'a> {
    pub(super) node: usize,
    pub(super) operand: usize,
    pub(super) verdict: Verdict,
    /// The parameter of the module for which it stands, if the file says.
    pub(super) owner: Option<&'a str>,
}

/// Classifies all floating-point tensors of a file, and gives merged uses their own names.
pub(crate) fn detect(model: &mut Model) -> Detection {
    let aliases = merged::take_identities(&mut model.graph);
    let around = Around::new(model);
    let candidates = candidates(model);
    let index: HashMap<&str, usize> = candidates.iter().enumerate().map(|(at, found)| (found.name, at)).collect();
    let mut uses: Vec<Vec<Use<'_>>> = candidates.iter().map(|_| Vec::new()).collect();
    for (number, node) in model.graph.nodes.iter().enumerate() {
        for (operand, name) in node.inputs.iter().enumerate() {
            let Some(&at) = index.get(name.as_str()) else { continue };
            let verdict = around.verdict(node, operand, &candidates[at]);
            let owner = match verdict {
                Verdict::Parameter(role) => around.owner(node, role, name),
                _ => None,
            };
            uses[at].push(Use { node: number, operand, verdict, owner });
        }
    }
    let (folded, exporter) = (Folded::find(&around), around.exporter);
    let mut names = merged::Names::read(&model.graph);
    let dropped = merged::dropped(&around, &index, &candidates, &mut names);
    let mut families = merged::Families::new(&aliases);
    let (mut tensors, mut edits) = (Vec::new(), Vec::new());
    for (candidate, uses) in candidates.iter().zip(&uses) {
        for part in merged::parts(&around, candidate, uses, &mut names) {
            let Part { name, reason, role, uses, .. } = part;
            let tensor = Tensor { name: name.clone(), ..candidate.tensor.clone() };
            let tied = role.and_then(|role| families.tie(candidate.name, &name, role, part.is_split));
            tensors.push(Detected { tensor, is_parameter: role.is_some() && tied.is_none(), reason, tied });
            if part.is_split {
                edits.extend(uses.into_iter().map(|(node, operand)| (node, operand, name.clone())));
            }
        }
    }
    merged::apply(&mut model.graph, &tensors, edits);
    tie(&mut tensors, exporter);
    Detection { tensors, dropped, folded }
}

/// The floating-point initialisers and values of Constant nodes.
fn candidates(model: &Model) -> Vec<Candidate<'_>> {
    let initialisers = model.graph.initializers.iter().filter(|tensor| tensor.is_float());
    let mut found: Vec<Candidate<'_>> =
        initialisers.map(|tensor| Candidate::new(tensor, &tensor.name, false)).collect();
    for node in model.graph.nodes.iter().filter(|node| node.op == "Constant") {
        if let (Some(Attribute::Tensor(tensor)), Some(name)) = (node.attribute("value"), node.outputs.first())
            && tensor.is_float()
            && tensor.numel() > 1
        {
            found.push(Candidate::new(tensor, name, true));
        }
    }
    found
}

/// Finds weights that are copies of an embedding, and weights that tracing transposed and renamed. One weight used
/// twice counts once.
fn tie(found: &mut [Detected], exporter: Exporter) {
    let is = |detected: &Detected, role: &str| {
        detected.is_parameter && detected.tensor.shape.len() == 2 && detected.reason.starts_with(role)
    };
    let traced = |name: &str| exporter == Exporter::TorchTracing && is_made_up(name);
    // Copies have the same first and last number, even when transposed.
    let mut originals: HashMap<[u32; 2], Vec<usize>> = HashMap::new();
    for (at, detected) in found.iter().enumerate() {
        let named = is(detected, "weight") && !traced(&detected.tensor.name);
        if let (true, Some(corners)) = (is(detected, "embedding") || named, corners(&detected.tensor)) {
            originals.entry(corners).or_default().push(at);
        }
    }
    for at in (0..found.len()).filter(|&at| is(&found[at], "weight")).collect::<Vec<_>>() {
        let Some(candidates) = corners(&found[at].tensor).and_then(|corners| originals.get(&corners)) else { continue };
        for &original in candidates {
            let of_embedding = is(&found[original], "embedding");
            if original == at || !(of_embedding || traced(&found[at].tensor.name)) {
                continue;
            }
            let Some(transposed) = copies(&found[original].tensor, &found[at].tensor) else { continue };
            let to = found[original].tensor.name.clone();
            let entry = &mut found[at];
            entry.is_parameter = false;
            entry.tied = Some(Tied { to, transposed, merged: false });
            break;
        }
    }
}

/// The first and the last number.
fn corners(tensor: &Tensor) -> Option<[u32; 2]> {
    let Data::F32(values) = &tensor.data else { return None };
    Some([values.first()?.to_bits(), values.last()?.to_bits()])
}

/// Whether a matrix equals another one, directly (`false`) or transposed (`true`). Constant matrices prove nothing.
fn copies(a: &Tensor, b: &Tensor) -> Option<bool> {
    let (Data::F32(x), Data::F32(y)) = (&a.data, &b.data) else { return None };
    if x.iter().all(|number| *number == x[0]) {
        return None;
    }
    let [rows, columns] = a.shape[..] else { return None };
    if b.shape == [columns, rows] && (0..x.len()).all(|at| x[at] == y[at % columns * rows + at / columns]) {
        return Some(true);
    }
    (a.shape == b.shape && x == y).then_some(false)
}
