//! Writing the part of the protobuf wire format that an ONNX model needs, and the messages of a model.
//!
//! A message is a sequence of fields; a field is a key, `number · 8 + wire type` as a varint, and a payload: a varint
//! (wire type 0) or bytes after their length (2). Nested messages are bytes. Field numbers are those of `onnx.proto`.

use crate::onnx::wire::Payload;

/// A message being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// An integer. Negative integers take ten bytes, as the format requires.
    pub(super) fn int(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    pub(super) fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A field of another message.
    pub(super) fn copied(mut self, field: u64, payload: Payload<'_>) -> Self {
        match payload {
            Payload::Varint(value) => {
                self.varint(field << 3);
                self.varint(value);
            }
            Payload::Fixed64(value) => {
                self.varint(field << 3 | 1);
                self.0.extend_from_slice(&value.to_le_bytes());
            }
            Payload::Bytes(bytes) => return self.bytes(field, bytes),
            Payload::Fixed32(value) => {
                self.varint(field << 3 | 5);
                self.0.extend_from_slice(&value.to_le_bytes());
            }
        }
        self
    }

    pub(super) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn message(self, field: u64, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }

    pub(super) fn messages<'a>(self, field: u64, messages: impl IntoIterator<Item = &'a Message>) -> Self {
        messages.into_iter().fold(self, |all, message| all.message(field, message))
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// ONNX's numbers for element types.
const FLOAT: i64 = 1;
const INT64: i64 = 7;

/// A `TensorProto` of single-precision numbers.
pub(super) fn floats(name: &str, shape: &[usize], values: impl Iterator<Item = f32>) -> Message {
    let data: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    tensor(name, shape, FLOAT, &data)
}

/// A `TensorProto` of integers with one axis.
pub(super) fn integers(name: &str, values: &[i64]) -> Message {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor(name, &[values.len()], INT64, &data)
}

fn tensor(name: &str, shape: &[usize], element: i64, data: &[u8]) -> Message {
    let dims = shape.iter().fold(Message::default(), |dims, &size| dims.int(1, size as i64));
    dims.int(2, element).text(8, name).bytes(9, data)
}

/// A `ValueInfoProto`: single precision; `None` is the free batch axis.
pub(super) fn value_info(name: &str, shape: &[Option<usize>]) -> Message {
    let dimension = |size: &Option<usize>| match size {
        Some(size) => Message::default().int(1, *size as i64),
        None => Message::default().text(2, "batch"),
    };
    let dimensions: Vec<Message> = shape.iter().map(dimension).collect();
    let shape = Message::default().messages(1, &dimensions);
    let kind = Message::default().int(1, FLOAT).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &kind))
}

/// An attribute of a node.
#[derive(Clone, Debug)]
pub(super) enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f64),
    Text(&'static str),
}

/// A `NodeProto`.
pub(super) fn node(op: &str, name: &str, inputs: &[String], output: &str, attributes: &[(&str, Attribute)]) -> Message {
    let mut node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
    node = node.text(2, output).text(3, name).text(4, op);
    for (key, value) in attributes {
        let attribute = Message::default().text(1, key);
        let attribute = match value {
            Attribute::Float(value) => attribute.float(2, *value as f32).int(20, 1),
            Attribute::Int(value) => attribute.int(3, *value).int(20, 2),
            Attribute::Text(text) => attribute.text(4, text).int(20, 3),
            Attribute::Ints(values) => {
                values.iter().fold(attribute, |attribute, &value| attribute.int(8, value)).int(20, 7)
            }
        };
        node = node.message(5, &attribute);
    }
    node
}

/// A `ModelProto` of this IR version and opset around a graph, with notes about it.
pub(super) fn model(
    ir_version: i64,
    opset: i64,
    nodes: &[Message],
    tensors: &[Message],
    ends: [&[Message]; 2],
    metadata: &[(&str, String)],
) -> Vec<u8> {
    let graph = Message::default().messages(1, nodes).text(2, "mercer").messages(5, tensors);
    let graph = graph.messages(11, ends[0]).messages(12, ends[1]);
    let imported = Message::default().text(1, "").int(2, opset);
    let model = Message::default().int(1, ir_version).text(2, "mercer").text(3, env!("CARGO_PKG_VERSION"));
    let entry = |(key, value): &(&str, String)| Message::default().text(1, key).text(2, value);
    let entries: Vec<Message> = metadata.iter().map(entry).collect();
    model.message(7, &graph).message(8, &imported).messages(14, &entries).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_format_says() {
        assert_eq!(Message::default().int(1, 150).finish(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().int(2, -1).finish().len(), 11);
        assert_eq!(Message::default().text(2, "ab").finish(), [0x12, 2, b'a', b'b']);
        assert_eq!(Message::default().float(2, 1.0).finish(), [0x15, 0, 0, 0x80, 0x3f]);
    }
}
