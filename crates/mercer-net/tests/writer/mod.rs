//! Writes small ONNX models, so that tests need no Python.

#![allow(dead_code, reason = "each test file uses a part of it")]

/// ONNX's numbers of element types.
pub(crate) const FLOAT: u64 = 1;
pub(crate) const INT64: u64 = 7;

/// A size of an input: fixed or free.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    Fixed(usize),
    Free(&'static str),
}

impl From<usize> for Size {
    fn from(size: usize) -> Self {
        Self::Fixed(size)
    }
}

impl From<&'static str> for Size {
    fn from(name: &'static str) -> Self {
        Self::Free(name)
    }
}

/// An attribute of a node.
#[derive(Clone)]
pub(crate) enum Attribute {
    Int(&'static str, i64),
    Ints(&'static str, Vec<i64>),
    Float(&'static str, f32),
    Text(&'static str, &'static str),
    /// Floats of a shape.
    Tensor(&'static str, Vec<usize>, Vec<f32>),
    /// The graph of another model.
    Graph(&'static str, Model),
}

/// A node with everything it can have.
#[derive(Clone, Default)]
pub(crate) struct Node<'a> {
    pub(crate) name: &'a str,
    pub(crate) domain: &'a str,
    pub(crate) op: &'a str,
    pub(crate) inputs: &'a [&'a str],
    pub(crate) outputs: &'a [&'a str],
    pub(crate) attributes: &'a [Attribute],
}

/// A model being written.
#[derive(Clone, Default)]
pub(crate) struct Model {
    graph: Vec<u8>,
    functions: Vec<u8>,
    opset: u64,
    producer: &'static str,
}

fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

fn number(to: &mut Vec<u8>, field: u64, value: u64) {
    varint(to, field << 3);
    varint(to, value);
}

fn bytes(to: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(to, field << 3 | 2);
    varint(to, value.len() as u64);
    to.extend_from_slice(value);
}

fn value_info(name: &str, element: u64, shape: Option<&[Size]>) -> Vec<u8> {
    let mut tensor = Vec::new();
    number(&mut tensor, 1, element);
    if let Some(shape) = shape {
        let mut dimensions = Vec::new();
        for size in shape {
            let mut dimension = Vec::new();
            match size {
                Size::Fixed(size) => number(&mut dimension, 1, *size as u64),
                Size::Free(name) => bytes(&mut dimension, 2, name.as_bytes()),
            }
            bytes(&mut dimensions, 1, &dimension);
        }
        bytes(&mut tensor, 2, &dimensions);
    }
    let mut kind = Vec::new();
    bytes(&mut kind, 1, &tensor);
    let mut info = Vec::new();
    bytes(&mut info, 1, name.as_bytes());
    bytes(&mut info, 2, &kind);
    info
}

impl Model {
    /// An empty model of opset 17.
    pub(crate) fn new() -> Self {
        Self { opset: 17, ..Self::default() }
    }

    /// An empty model of this opset.
    pub(crate) fn of_opset(opset: u64) -> Self {
        Self { opset, ..Self::default() }
    }

    /// Written by this program.
    pub(crate) fn by(self, producer: &'static str) -> Self {
        Self { producer, ..self }
    }

    /// An input.
    pub(crate) fn input(mut self, name: &str, element: u64, shape: &[Size]) -> Self {
        bytes(&mut self.graph, 11, &value_info(name, element, Some(shape)));
        self
    }

    /// An output.
    pub(crate) fn output(mut self, name: &str) -> Self {
        bytes(&mut self.graph, 12, &value_info(name, FLOAT, None));
        self
    }

    /// An initialiser of any element type.
    pub(crate) fn tensor(mut self, name: &str, shape: &[usize], element: u64, raw: &[u8]) -> Self {
        let mut tensor = Vec::new();
        shape.iter().for_each(|&size| number(&mut tensor, 1, size as u64));
        number(&mut tensor, 2, element);
        bytes(&mut tensor, 8, name.as_bytes());
        bytes(&mut tensor, 9, raw);
        bytes(&mut self.graph, 5, &tensor);
        self
    }

    /// An initialiser of floats: numbers that look random and are not.
    pub(crate) fn weights(self, name: &str, shape: &[usize]) -> Self {
        let count: usize = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|i| ((i * 37 + 11) % 101) as f32 / 101.0 - 0.45).collect();
        self.floats(name, shape, &values)
    }

    /// An initialiser of floats.
    pub(crate) fn floats(self, name: &str, shape: &[usize], values: &[f32]) -> Self {
        let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensor(name, shape, FLOAT, &raw)
    }

    /// An initialiser of integers, a vector.
    pub(crate) fn ints(self, name: &str, values: &[i64]) -> Self {
        let shape = [values.len()];
        self.shaped_ints(name, &shape, values)
    }

    /// A scalar integer.
    pub(crate) fn int(self, name: &str, value: i64) -> Self {
        self.shaped_ints(name, &[], &[value])
    }

    fn shaped_ints(self, name: &str, shape: &[usize], values: &[i64]) -> Self {
        let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensor(name, shape, INT64, &raw)
    }

    /// A node with one result; its name is that of the result.
    pub(crate) fn node(self, op: &str, inputs: &[&str], output: &str) -> Self {
        self.node_with(op, inputs, output, &[])
    }

    /// A node with one result and attributes.
    pub(crate) fn node_with(self, op: &str, inputs: &[&str], output: &str, attributes: &[Attribute]) -> Self {
        self.full(&Node { name: output, op, inputs, outputs: &[output], attributes, ..Node::default() })
    }

    /// Any node.
    pub(crate) fn full(mut self, node: &Node<'_>) -> Self {
        bytes(&mut self.graph, 1, &node.bytes());
        self
    }

    /// A function of the model, in domain `local`.
    pub(crate) fn function(mut self, name: &str, inputs: &[&str], outputs: &[&str], nodes: &[Node<'_>]) -> Self {
        let mut function = Vec::new();
        bytes(&mut function, 1, name.as_bytes());
        inputs.iter().for_each(|input| bytes(&mut function, 4, input.as_bytes()));
        outputs.iter().for_each(|output| bytes(&mut function, 5, output.as_bytes()));
        nodes.iter().for_each(|node| bytes(&mut function, 7, &node.bytes()));
        bytes(&mut function, 10, b"local");
        bytes(&mut self.functions, 25, &function);
        self
    }

    /// An initialiser of floats whose bytes lie in another file.
    pub(crate) fn external(mut self, name: &str, shape: &[usize], entries: &[(&str, &str)]) -> Self {
        let mut tensor = Vec::new();
        shape.iter().for_each(|&size| number(&mut tensor, 1, size as u64));
        number(&mut tensor, 2, FLOAT);
        bytes(&mut tensor, 8, name.as_bytes());
        for (key, value) in entries {
            let mut entry = Vec::new();
            bytes(&mut entry, 1, key.as_bytes());
            bytes(&mut entry, 2, value.as_bytes());
            bytes(&mut tensor, 13, &entry);
        }
        number(&mut tensor, 14, 1);
        bytes(&mut self.graph, 5, &tensor);
        self
    }

    /// A field of the graph as it is.
    pub(crate) fn raw(mut self, field: u64, content: &[u8]) -> Self {
        bytes(&mut self.graph, field, content);
        self
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut model = Vec::new();
        number(&mut model, 1, 8);
        bytes(&mut model, 2, self.producer.as_bytes());
        bytes(&mut model, 7, &self.graph);
        let mut opset = Vec::new();
        number(&mut opset, 2, self.opset);
        bytes(&mut model, 8, &opset);
        model.extend_from_slice(&self.functions);
        model
    }
}

impl Node<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut node = Vec::new();
        self.inputs.iter().for_each(|name| bytes(&mut node, 1, name.as_bytes()));
        self.outputs.iter().for_each(|name| bytes(&mut node, 2, name.as_bytes()));
        bytes(&mut node, 3, self.name.as_bytes());
        bytes(&mut node, 4, self.op.as_bytes());
        self.attributes.iter().for_each(|attribute| bytes(&mut node, 5, &attribute.bytes()));
        bytes(&mut node, 7, self.domain.as_bytes());
        node
    }
}

impl Attribute {
    fn bytes(&self) -> Vec<u8> {
        let mut message = Vec::new();
        let (name, kind) = match self {
            Self::Float(name, value) => {
                varint(&mut message, 2 << 3 | 5);
                message.extend_from_slice(&value.to_le_bytes());
                (name, 1)
            }
            Self::Int(name, value) => {
                number(&mut message, 3, *value as u64);
                (name, 2)
            }
            Self::Text(name, value) => {
                bytes(&mut message, 4, value.as_bytes());
                (name, 3)
            }
            Self::Ints(name, values) => {
                values.iter().for_each(|&value| number(&mut message, 8, value as u64));
                (name, 7)
            }
            Self::Tensor(name, shape, values) => {
                let mut tensor = Vec::new();
                shape.iter().for_each(|&size| number(&mut tensor, 1, size as u64));
                number(&mut tensor, 2, FLOAT);
                let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                bytes(&mut tensor, 9, &raw);
                bytes(&mut message, 5, &tensor);
                (name, 4)
            }
            Self::Graph(name, model) => {
                bytes(&mut message, 6, &model.graph);
                (name, 5)
            }
        };
        bytes(&mut message, 1, name.as_bytes());
        number(&mut message, 20, kind);
        message
    }
}
