//! Changes of an ONNX file that leave everything else in it as it is: other numbers, another end, other metadata.
//!
//! Trained files are written this way and not from their graph: their operators, names and free sizes stay, so programs
//! that read the file before read it afterwards. Messages are copied field by field.

use super::proto::{self, Attribute, Message};
use crate::error::{NetError, Result};
use crate::network::{OURS, Parameter};
use crate::onnx::wire::{Fields, Payload, malformed};
use std::collections::{HashMap, HashSet};

/// The fields of `onnx.proto` that are looked at.
mod field {
    pub(super) const MODEL_GRAPH: u64 = 7;
    pub(super) const MODEL_METADATA: u64 = 14;
    pub(super) const GRAPH_NODE: u64 = 1;
    pub(super) const GRAPH_INITIALIZER: u64 = 5;
    pub(super) const GRAPH_INPUT: u64 = 11;
    pub(super) const GRAPH_OUTPUT: u64 = 12;
    pub(super) const VALUE_NAME: u64 = 1;
    pub(super) const GRAPH_VALUE_INFO: u64 = 13;
    pub(super) const NODE_INPUT: u64 = 1;
    pub(super) const NODE_OUTPUT: u64 = 2;
    pub(super) const NODE_ATTRIBUTE: u64 = 5;
    pub(super) const ATTRIBUTE_GRAPH: u64 = 6;
    pub(super) const TENSOR_DIMS: u64 = 1;
    pub(super) const TENSOR_TYPE: u64 = 2;
    pub(super) const TENSOR_NAME: u64 = 8;
    /// Floats, bytes and doubles, as packed numbers.
    pub(super) const TENSOR_NUMBERS: [u64; 3] = [4, 9, 10];
    pub(super) const TENSOR_LOCATION: u64 = 14;
}

/// A dense layer behind a value of a file, which becomes the only output.
#[derive(Clone, Debug)]
pub struct Head {
    /// The value, by its name in the file.
    pub from: String,
    /// Whether a sample of it has several axes, which become one.
    pub flatten: bool,
    /// Weights, `[outputs, inputs]`, row-major.
    pub weight: Vec<f32>,
    /// Biases, one per output.
    pub bias: Vec<f32>,
}

/// A file that ends in a head. Nodes and tensors that only the old outputs need are left out.
///
/// # Errors
/// For a file that is not ONNX, and if sizes disagree.
pub fn with_head(bytes: &[u8], head: &Head) -> Result<Vec<u8>> {
    let (outputs, inputs) = (head.bias.len(), head.weight.len() / head.bias.len().max(1));
    if outputs == 0 || inputs * outputs != head.weight.len() {
        return Err(NetError::Setting("the weights of a head must be outputs × inputs".into()));
    }
    rewritten(bytes, |graph| {
        let needed = Needed::find(graph, &head.from)?;
        let (mut copy, mut names) = (Message::default(), HashSet::new());
        for one in fields(graph) {
            let (number, payload) = one?;
            let keep = match number {
                field::GRAPH_NODE => needed.node(&texts(payload.bytes()?, field::NODE_OUTPUT)?),
                field::GRAPH_INITIALIZER => needed.value(&tensor_name(payload.bytes()?)?),
                field::GRAPH_OUTPUT | field::GRAPH_VALUE_INFO => false,
                _ => true,
            };
            if !keep {
                continue;
            }
            match number {
                field::GRAPH_NODE => names.extend(texts(payload.bytes()?, field::NODE_OUTPUT)?),
                field::GRAPH_INPUT => names.extend(texts(payload.bytes()?, field::VALUE_NAME)?),
                field::GRAPH_INITIALIZER => {
                    names.insert(tensor_name(payload.bytes()?)?);
                }
                _ => {}
            }
            copy = copy.copied(number, payload);
        }
        let own = |base: &String| ["", ".weight", ".bias", "/flat"].map(|end| format!("{base}{end}"));
        let free = |base: &String| own(base).iter().all(|name| !names.contains(name));
        let name = std::iter::once("head".to_owned()).chain((2..).map(|n| format!("head{n}"))).find(free);
        let name = name.unwrap_or_default();
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let mut from = head.from.clone();
        if head.flatten {
            let flat = format!("{name}/flat");
            let node = proto::node("Flatten", &flat, &[from], &flat, &[("axis", Attribute::Int(1))]);
            copy = copy.message(field::GRAPH_NODE, &node);
            from = flat;
        }
        let operands = [from, weight.clone(), bias.clone()];
        copy = copy.message(
            field::GRAPH_NODE,
            &proto::node("Gemm", &name, &operands, &name, &[("transB", Attribute::Int(1))]),
        );
        let tensors = [
            proto::floats(&weight, &[outputs, inputs], head.weight.iter().copied()),
            proto::floats(&bias, &[outputs], head.bias.iter().copied()),
        ];
        copy = copy.messages(field::GRAPH_INITIALIZER, &tensors);
        Ok(copy.message(field::GRAPH_OUTPUT, &proto::value_info(&name, &[None, Some(outputs)])))
    })
}

/// A file with other numbers in its tensors. Types, shapes and everything else stay.
///
/// # Errors
/// For a parameter that is not a tensor of the file in single or double precision, and for tensors in other files.
pub fn with_parameters(bytes: &[u8], parameters: &[Parameter]) -> Result<Vec<u8>> {
    let values: HashMap<&str, &Parameter> = parameters.iter().map(|own| (own.name(), own)).collect();
    let mut written = HashSet::new();
    let edited = rewritten(bytes, |graph| {
        let mut copy = Message::default();
        for one in fields(graph) {
            let (number, payload) = one?;
            if number != field::GRAPH_INITIALIZER {
                copy = copy.copied(number, payload);
                continue;
            }
            let message = payload.bytes()?;
            let name = tensor_name(message)?;
            copy = match values.get(name.as_str()) {
                Some(parameter) => {
                    written.insert(name);
                    copy.message(number, &replaced(message, parameter)?)
                }
                None if is_elsewhere(message)? => return Err(elsewhere(&name)),
                None => copy.copied(number, payload),
            };
        }
        Ok(copy)
    })?;
    match parameters.iter().find(|own| !written.contains(own.name())) {
        None => Ok(edited),
        Some(own) => Err(NetError::Unsupported {
            node: own.name().to_owned(),
            reason: "is not an initialiser of the file's main graph, so trained numbers cannot be written to it".into(),
        }),
    }
}

/// A file with these notes of ours instead of its own.
pub(crate) fn with_notes(bytes: &[u8], notes: &[(&str, String)]) -> Result<Vec<u8>> {
    let (mut version, mut has_producer) = (0, false);
    for one in fields(bytes) {
        match one? {
            (1, payload) => version = payload.integer()?,
            (2, _) => has_producer = true,
            _ => {}
        }
    }
    // Files that we wrote are recognised by their beginning. The producer counts as well, because exporters differ in
    // what they write; of a field that is there twice, the last one holds.
    let mut copy = Message::default().int(1, version).text(2, "mercer");
    if !has_producer {
        copy = copy.text(2, "");
    }
    for one in fields(bytes) {
        let (number, payload) = one?;
        let is_ours =
            number == field::MODEL_METADATA && texts(payload.bytes()?, 1)?.iter().any(|key| key.starts_with(OURS));
        if !is_ours {
            copy = copy.copied(number, payload);
        }
    }
    let entry = |(key, value): &(&str, String)| Message::default().text(1, key).text(2, value);
    let entries: Vec<Message> = notes.iter().map(entry).collect();
    Ok(copy.messages(field::MODEL_METADATA, &entries).finish())
}

/// The model with another graph.
fn rewritten(bytes: &[u8], mut edit: impl FnMut(&[u8]) -> Result<Message>) -> Result<Vec<u8>> {
    let mut copy = Message::default();
    for one in fields(bytes) {
        let (number, payload) = one?;
        copy = match number {
            field::MODEL_GRAPH => copy.message(number, &edit(payload.bytes()?)?),
            _ => copy.copied(number, payload),
        };
    }
    Ok(copy.finish())
}

fn fields<'a>(message: &'a [u8]) -> impl Iterator<Item = Result<(u64, Payload<'a>)>> {
    let mut fields = Fields::new(message);
    std::iter::from_fn(move || fields.next().transpose())
}

/// The texts of a field.
fn texts(message: &[u8], wanted: u64) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for one in fields(message) {
        let (number, payload) = one?;
        if number == wanted {
            found.push(payload.text()?);
        }
    }
    Ok(found)
}

fn tensor_name(message: &[u8]) -> Result<String> {
    texts(message, field::TENSOR_NAME)?.pop().ok_or_else(|| malformed("an initialiser has no name"))
}

fn is_elsewhere(message: &[u8]) -> Result<bool> {
    for one in fields(message) {
        let (number, payload) = one?;
        if number == field::TENSOR_LOCATION && payload.integer()? == 1 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn elsewhere(name: &str) -> NetError {
    let reason = "has its numbers in another file; save the model as one file first".into();
    NetError::Unsupported { node: name.to_owned(), reason }
}

/// A tensor with other numbers.
fn replaced(message: &[u8], parameter: &Parameter) -> Result<Message> {
    let (mut copy, mut kind, mut held) = (Message::default(), 0, None);
    for one in fields(message) {
        let (number, payload) = one?;
        if field::TENSOR_NUMBERS.contains(&number) {
            held = payload.bytes().ok().map(<[u8]>::len);
        }
        if number == field::TENSOR_TYPE {
            kind = payload.integer()?;
        }
        if matches!(number, field::TENSOR_DIMS | field::TENSOR_TYPE | field::TENSOR_NAME) {
            copy = copy.copied(number, payload);
        }
    }
    let values = parameter.values();
    let raw: Vec<u8> = match kind {
        1 => values.to_vec::<f32>().iter().flat_map(|x| x.to_le_bytes()).collect(),
        11 => values.to_vec::<f64>().iter().flat_map(|x| x.to_le_bytes()).collect(),
        _ => {
            let reason = "is in half precision or another type; export the model in single precision".into();
            return Err(NetError::Unsupported { node: parameter.name().to_owned(), reason });
        }
    };
    if held.is_some_and(|held| held != raw.len()) {
        let reason = format!("is another layer in the file: {} numbers do not fit it", parameter.numel());
        return Err(NetError::Unsupported { node: parameter.name().to_owned(), reason });
    }
    Ok(copy.bytes(9, &raw))
}

/// The values that a result needs; all of them if a node has a graph of its own.
struct Needed(Option<HashSet<String>>);

impl Needed {
    fn find(graph: &[u8], result: &str) -> Result<Self> {
        let (mut nodes, mut has_graphs) = (Vec::new(), false);
        for one in fields(graph) {
            let (number, payload) = one?;
            if number != field::GRAPH_NODE {
                continue;
            }
            let message = payload.bytes()?;
            nodes.push((texts(message, field::NODE_INPUT)?, texts(message, field::NODE_OUTPUT)?));
            for attribute in fields(message) {
                let (number, payload) = attribute?;
                if number == field::NODE_ATTRIBUTE {
                    has_graphs |= fields(payload.bytes()?).any(|one| matches!(one, Ok((field::ATTRIBUTE_GRAPH, _))));
                }
            }
        }
        if has_graphs {
            return Ok(Self(None));
        }
        let mut needed = HashSet::from([result.to_owned()]);
        // Nodes are in the order of execution.
        for (inputs, outputs) in nodes.into_iter().rev() {
            if outputs.iter().any(|name| needed.contains(name)) {
                // An omitted input has no name.
                needed.extend(inputs.into_iter().filter(|name| !name.is_empty()));
            }
        }
        Ok(Self(Some(needed)))
    }

    fn value(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|needed| needed.contains(name))
    }

    fn node(&self, outputs: &[String]) -> bool {
        outputs.iter().any(|name| self.value(name))
    }
}
