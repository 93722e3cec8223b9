//! An ONNX model as it stands in the file: messages decoded, nothing interpreted.

use super::tensor::Tensor;
use super::wire::{Fields, Payload, malformed};
use crate::error::Result;
use crate::graph::label;
use crate::network::OURS;
use std::path::Path;

/// Graphs inside of nodes inside of graphs … no deeper than this.
const MAX_DEPTH: usize = 16;

/// A model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) producer: String,
    pub(crate) opset: i64,
    pub(crate) graph: GraphDef,
    pub(crate) functions: Vec<FunctionDef>,
    /// `metadata_props`, as keys and values: what we note about a model ourselves.
    pub(crate) metadata: Vec<(String, String)>,
}

/// A graph of the model, or of an attribute of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphDef {
    pub(crate) nodes: Vec<NodeDef>,
    pub(crate) initializers: Vec<Tensor>,
    pub(crate) inputs: Vec<ValueInfo>,
    pub(crate) outputs: Vec<ValueInfo>,
}

/// A function that the model brings along.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionDef {
    pub(crate) name: String,
    pub(crate) domain: String,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) nodes: Vec<NodeDef>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeDef {
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) domain: String,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) attributes: Vec<(String, Attribute)>,
}

/// An attribute of a node.
#[derive(Clone, Debug)]
pub(crate) enum Attribute {
    Float(f32),
    Int(i64),
    Text(String),
    Tensor(Tensor),
    Graph(GraphDef),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    /// A list of texts: no operator that is supported reads one.
    Texts,
    /// The attribute of that name of the function the node is in.
    Reference(String),
}

/// The declared type of an input or output.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueInfo {
    pub(crate) name: String,
    /// ONNX's number of the element type; 0 if undeclared.
    pub(crate) element: i64,
    /// `None` if the rank is undeclared.
    pub(crate) shape: Option<Vec<Dimension>>,
}

/// A declared size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    Fixed(usize),
    Named(String),
}

impl Model {
    /// Decodes a model; `folder` is where external data may lie.
    pub(crate) fn decode(bytes: &[u8], folder: Option<&Path>) -> Result<Self> {
        let mut model = Self::default();
        let mut has_graph = false;
        let mut fields = Fields::new(bytes);
        while let Some((number, payload)) = fields.next()? {
            match number {
                2 => model.producer = payload.text()?,
                7 => {
                    model.graph = GraphDef::decode(payload.bytes()?, folder, 0)?;
                    has_graph = true;
                }
                8 => {
                    let (domain, version) = opset(payload.bytes()?)?;
                    if domain.is_empty() || domain == "ai.onnx" {
                        model.opset = version;
                    }
                }
                14 => model.metadata.extend(Some(entry(payload.bytes()?)?).filter(|(key, _)| key.starts_with(OURS))),
                25 => model.functions.push(FunctionDef::decode(payload.bytes()?, folder)?),
                _ => {}
            }
        }
        if !has_graph {
            return Err(malformed("it holds no graph"));
        }
        Ok(model)
    }
}

fn opset(message: &[u8]) -> Result<(String, i64)> {
    let (mut domain, mut version) = (String::new(), 0);
    let mut fields = Fields::new(message);
    while let Some((number, payload)) = fields.next()? {
        match number {
            1 => domain = payload.text()?,
            2 => version = payload.integer()?,
            _ => {}
        }
    }
    Ok((domain, version))
}

/// A key and its value.
fn entry(message: &[u8]) -> Result<(String, String)> {
    let (mut key, mut value) = (String::new(), String::new());
    let mut fields = Fields::new(message);
    while let Some((number, payload)) = fields.next()? {
        match number {
            1 => key = payload.text()?,
            2 => value = payload.text()?,
            _ => {}
        }
    }
    Ok((key, value))
}

impl GraphDef {
    fn decode(message: &[u8], folder: Option<&Path>, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(malformed(format!("graphs are nested more than {MAX_DEPTH} deep")));
        }
        let mut graph = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => graph.nodes.push(NodeDef::decode(payload.bytes()?, folder, depth)?),
                5 => graph.initializers.push(Tensor::decode(payload.bytes()?, folder)?),
                11 => graph.inputs.push(ValueInfo::decode(payload.bytes()?)?),
                12 => graph.outputs.push(ValueInfo::decode(payload.bytes()?)?),
                15 => return Err(malformed("sparse initialisers are not supported")),
                _ => {}
            }
        }
        Ok(graph)
    }
}

impl FunctionDef {
    fn decode(message: &[u8], folder: Option<&Path>) -> Result<Self> {
        let mut function = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => function.name = payload.text()?,
                4 => function.inputs.push(payload.text()?),
                5 => function.outputs.push(payload.text()?),
                7 => function.nodes.push(NodeDef::decode(payload.bytes()?, folder, 0)?),
                10 => function.domain = payload.text()?,
                _ => {}
            }
        }
        Ok(function)
    }
}

impl NodeDef {
    fn decode(message: &[u8], folder: Option<&Path>, depth: usize) -> Result<Self> {
        let mut node = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => node.inputs.push(payload.text()?),
                2 => node.outputs.push(payload.text()?),
                3 => node.name = payload.text()?,
                4 => node.op = payload.text()?,
                5 => node.attributes.extend(decode_attribute(payload.bytes()?, folder, depth)?),
                7 => node.domain = payload.text()?,
                _ => {}
            }
        }
        Ok(node)
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// How errors and reports call this node.
    pub(crate) fn label(&self) -> String {
        label(self.title(), &self.op)
    }

    /// The node's name or, where it has none, its first result's.
    pub(crate) fn title(&self) -> &str {
        if self.name.is_empty() { self.outputs.first().map_or("", String::as_str) } else { &self.name }
    }
}

/// The kinds of attribute, as ONNX numbers them.
fn decode_attribute(message: &[u8], folder: Option<&Path>, depth: usize) -> Result<Option<(String, Attribute)>> {
    let mut name = String::new();
    let mut kind = 0;
    let mut single: Option<Attribute> = None;
    let (mut floats, mut ints, mut has_texts) = (Vec::new(), Vec::new(), false);
    let mut reference = String::new();
    let mut fields = Fields::new(message);
    while let Some((number, payload)) = fields.next()? {
        match number {
            1 => name = payload.text()?,
            2 => single = Some(Attribute::Float(payload.float()?)),
            3 => single = Some(Attribute::Int(payload.integer()?)),
            4 => single = Some(Attribute::Text(payload.text()?)),
            5 => single = Some(Attribute::Tensor(Tensor::decode(payload.bytes()?, folder)?)),
            6 => single = Some(Attribute::Graph(GraphDef::decode(payload.bytes()?, folder, depth + 1)?)),
            7 => payload.floats(&mut floats)?,
            8 => payload.integers(&mut ints)?,
            9 => has_texts = true,
            20 => kind = payload.integer()?,
            21 => reference = payload.text()?,
            _ => {}
        }
    }
    let value = match (reference.is_empty(), kind, single) {
        (false, _, _) => Attribute::Reference(reference),
        // Writers leave out zeros and empty lists: the kind says what is meant.
        (_, 1, None) => Attribute::Float(0.0),
        (_, 2, None) => Attribute::Int(0),
        (_, 3, None) => Attribute::Text(String::new()),
        (_, _, Some(single)) => single,
        (_, 8, None) => Attribute::Texts,
        (_, 6, None) => Attribute::Floats(floats),
        (_, 7, None) => Attribute::Ints(ints),
        (_, _, None) if !floats.is_empty() => Attribute::Floats(floats),
        (_, _, None) if has_texts => Attribute::Texts,
        (_, 0, None) => Attribute::Ints(ints),
        _ => return Ok(None),
    };
    Ok(Some((name, value)))
}

impl ValueInfo {
    fn decode(message: &[u8]) -> Result<Self> {
        let mut info = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => info.name = payload.text()?,
                2 => info.decode_type(payload.bytes()?)?,
                _ => {}
            }
        }
        Ok(info)
    }

    fn decode_type(&mut self, message: &[u8]) -> Result<()> {
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            if number != 1 {
                continue;
            }
            let mut tensor = Fields::new(payload.bytes()?);
            while let Some((number, payload)) = tensor.next()? {
                match number {
                    1 => self.element = payload.integer()?,
                    2 => self.shape = Some(decode_shape(payload)?),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn decode_shape(payload: Payload<'_>) -> Result<Vec<Dimension>> {
    let mut shape = Vec::new();
    let mut dimensions = Fields::new(payload.bytes()?);
    while let Some((number, payload)) = dimensions.next()? {
        if number != 1 {
            continue;
        }
        let mut dimension = Dimension::Named(String::new());
        let mut fields = Fields::new(payload.bytes()?);
        while let Some((number, payload)) = fields.next()? {
            dimension = match number {
                1 => match usize::try_from(payload.integer()?) {
                    // Some writers mark a free size as 0 or −1.
                    Ok(size) if size > 0 => Dimension::Fixed(size),
                    _ => Dimension::Named(String::new()),
                },
                2 => Dimension::Named(payload.text()?),
                _ => dimension,
            };
        }
        shape.push(dimension);
    }
    Ok(shape)
}
