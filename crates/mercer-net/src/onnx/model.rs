//! An ONNX model as stored in the file: messages are decoded, nothing is interpreted.

use super::record;
use super::tensor::{Surroundings, Tensor, entry};
use super::wire::{Fields, Payload, malformed};
use crate::error::Result;
use crate::graph::{label, shortened};
use crate::network::OURS;
use std::collections::HashSet;

/// The overhead of an allocation.
const HEAP: usize = 16;

/// The deepest nesting of graphs inside nodes.
const MAX_DEPTH: usize = 16;

/// The newest supported opset.
const NEWEST_OPSET: i64 = 28;

/// A model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) producer: String,
    pub(crate) opset: i64,
    pub(crate) graph: GraphDef,
    pub(crate) functions: Vec<FunctionDef>,
    /// `metadata_props`, as keys and values, which hold our own records.
    pub(crate) metadata: Vec<(String, String)>,
}

/// A graph of the model, or of an attribute of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphDef {
    pub(crate) nodes: Vec<NodeDef>,
    pub(crate) initializers: Vec<Tensor>,
    pub(crate) inputs: Vec<ValueInfo>,
    pub(crate) outputs: Vec<ValueInfo>,
    /// What PyTorch's new exporter records about the module's state; see [`record`](super::record).
    pub(crate) signature: Option<String>,
}

/// A model-local function.
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
    /// The call that the node implements, as recorded by PyTorch's new exporter; see [`record`](super::record).
    pub(crate) call: Option<String>,
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
    /// A list of strings. No supported operator reads one.
    Texts,
    /// The attribute of that name of the enclosing function.
    Reference(String),
}

/// The declared type of an input or output.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueInfo {
    pub(crate) name: String,
    /// ONNX's number for the element type; 0 if undeclared.
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
    /// Decodes a model. `around` gives the folder for external data and the budget.
    pub(crate) fn decode(bytes: &[u8], around: &mut Surroundings<'_>) -> Result<Self> {
        let mut model = Self::default();
        let (mut has_graph, mut opset_version) = (false, None);
        let mut fields = Fields::new(bytes);
        while let Some((number, payload)) = fields.next()? {
            match number {
                2 => model.producer = payload.text()?,
                7 => {
                    model.graph = GraphDef::decode(payload.bytes()?, around, 0)?;
                    has_graph = true;
                }
                8 => {
                    let (domain, version) = opset(payload.bytes()?)?;
                    if domain.is_empty() || domain == "ai.onnx" {
                        opset_version = Some(version);
                    }
                }
                14 => {
                    let note = entry(payload.bytes()?)?;
                    if note.0.starts_with(OURS) {
                        around.budget.spend(|| format!("metadata {:?}", note.0), note.0.len() + note.1.len())?;
                        model.metadata.push(note);
                    }
                }
                25 => model.functions.push(FunctionDef::decode(payload.bytes()?, around)?),
                _ => {}
            }
        }
        if !has_graph {
            return Err(malformed("it holds no graph"));
        }
        match opset_version {
            Some(version) if (1..=NEWEST_OPSET).contains(&version) => model.opset = version,
            Some(version) => {
                return Err(malformed(format!(
                    "it uses opset {version}, but only opsets 1 to {NEWEST_OPSET} are supported; export it for one of them"
                )));
            }
            None => return Err(malformed("it does not declare its opset")),
        }
        model.graph.check_names()?;
        model.functions.iter().try_for_each(|function| computed_once(&function.nodes, &mut HashSet::new()))?;
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

impl GraphDef {
    fn decode(message: &[u8], around: &mut Surroundings<'_>, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(malformed(format!("graphs are nested more than {MAX_DEPTH} deep")));
        }
        let mut graph = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => {
                    let node = NodeDef::decode(payload.bytes()?, around, depth)?;
                    around.budget.spend(|| format!("node {}", node.label()), node.bytes())?;
                    graph.nodes.push(node);
                }
                5 => graph.initializers.push(Tensor::decode(payload.bytes()?, around)?),
                11 => graph.inputs.push(ValueInfo::decode(payload.bytes()?, around)?),
                12 => graph.outputs.push(ValueInfo::decode(payload.bytes()?, around)?),
                15 => return Err(malformed("sparse initialisers are not supported")),
                16 => remember(&mut graph.signature, record::SIGNATURE, payload)?,
                _ => {}
            }
        }
        Ok(graph)
    }

    /// Checks that every name is unique, as the format requires. Otherwise its meaning would be ambiguous.
    fn check_names(&self) -> Result<()> {
        let twice = |what: &str, name: &str| malformed(format!("there are two {what} named {:?}", shortened(name)));
        for (what, infos) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            let mut seen = HashSet::new();
            if let Some(info) = infos.iter().find(|info| !seen.insert(info.name.as_str())) {
                return Err(twice(what, &info.name));
            }
        }
        let mut seen = HashSet::new();
        if let Some(tensor) = self.initializers.iter().find(|tensor| !seen.insert(tensor.name.as_str())) {
            return Err(twice("initialisers", &tensor.name));
        }
        // Old files list their initialisers among the inputs.
        seen.extend(self.inputs.iter().map(|info| info.name.as_str()));
        computed_once(&self.nodes, &mut seen)
    }
}

/// Checks that every result is computed by one node, and is not among the `known` names.
fn computed_once<'a>(nodes: &'a [NodeDef], known: &mut HashSet<&'a str>) -> Result<()> {
    for node in nodes {
        for name in node.outputs.iter().filter(|name| !name.is_empty()) {
            if !known.insert(name) {
                let (node, name) = (node.label(), shortened(name));
                return Err(malformed(format!("node {node} computes {name:?}, which already exists")));
            }
        }
    }
    Ok(())
}

impl FunctionDef {
    fn decode(message: &[u8], around: &mut Surroundings<'_>) -> Result<Self> {
        let mut function = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => function.name = payload.text()?,
                4 => function.inputs.push(payload.text()?),
                5 => function.outputs.push(payload.text()?),
                7 => {
                    let node = NodeDef::decode(payload.bytes()?, around, 0)?;
                    around.budget.spend(|| format!("node {}", node.label()), node.bytes())?;
                    function.nodes.push(node);
                }
                10 => function.domain = payload.text()?,
                _ => {}
            }
        }
        Ok(function)
    }
}

impl NodeDef {
    fn decode(message: &[u8], around: &mut Surroundings<'_>, depth: usize) -> Result<Self> {
        let mut node = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => node.inputs.push(payload.text()?),
                2 => node.outputs.push(payload.text()?),
                3 => node.name = payload.text()?,
                4 => node.op = payload.text()?,
                5 => node.attributes.extend(decode_attribute(payload.bytes()?, around, depth)?),
                7 => node.domain = payload.text()?,
                9 => remember(&mut node.call, record::CALL, payload)?,
                _ => {}
            }
        }
        Ok(node)
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The bytes of this node in memory. The elements of its tensors are counted where they are decoded.
    pub(crate) fn bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(|text| text.len() + size_of::<String>() + HEAP).sum::<usize>();
        let attribute = |(name, value): &(String, Attribute)| {
            let content = match value {
                Attribute::Text(text) | Attribute::Reference(text) => text.len(),
                Attribute::Floats(values) => size_of_val(&values[..]),
                Attribute::Ints(values) => size_of_val(&values[..]),
                Attribute::Tensor(tensor) => tensor.name.len() + size_of_val(&tensor.shape[..]),
                Attribute::Graph(graph) => graph.nodes.iter().map(Self::bytes).sum(),
                Attribute::Float(_) | Attribute::Int(_) | Attribute::Texts => 0,
            };
            size_of::<(String, Attribute)>() + name.len() + content + HEAP
        };
        size_of::<Self>()
            + self.name.len()
            + self.op.len()
            + self.domain.len()
            + texts(&self.inputs)
            + texts(&self.outputs)
            + self.attributes.iter().map(attribute).sum::<usize>()
    }

    /// The label of this node in errors and reports.
    pub(crate) fn label(&self) -> String {
        label(self.title(), &self.op)
    }

    /// The node's name or, where it has none, its first result's.
    pub(crate) fn title(&self) -> &str {
        if self.name.is_empty() { self.outputs.first().map_or("", String::as_str) } else { &self.name }
    }
}

/// Keeps the value of a metadata entry if it has this key.
fn remember(to: &mut Option<String>, key: &str, payload: Payload<'_>) -> Result<()> {
    let (own, text) = entry(payload.bytes()?)?;
    if own == key {
        *to = Some(text);
    }
    Ok(())
}

/// The kinds of attribute, as ONNX numbers them.
fn decode_attribute(
    message: &[u8],
    around: &mut Surroundings<'_>,
    depth: usize,
) -> Result<Option<(String, Attribute)>> {
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
            5 => single = Some(Attribute::Tensor(Tensor::decode(payload.bytes()?, around)?)),
            6 => single = Some(Attribute::Graph(GraphDef::decode(payload.bytes()?, around, depth + 1)?)),
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
        // Exporters omit zeros and empty lists, so the kind decides.
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
    fn decode(message: &[u8], around: &mut Surroundings<'_>) -> Result<Self> {
        let mut info = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => info.name = payload.text()?,
                2 => info.decode_type(payload.bytes()?)?,
                _ => {}
            }
        }
        let sizes = info.shape.as_ref().map_or(0, |shape| size_of_val(&shape[..]));
        let bytes = size_of::<Self>() + info.name.len() + sizes;
        around.budget.spend(|| format!("value {:?}", shortened(&info.name)), bytes)?;
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
