//! Primitives as ONNX operators of opset 17.

use super::onnx::{Writer, batch_axis};
use super::proto::Attribute;
use crate::error::{NetError, Result};
use crate::graph::Node;
use crate::op::{
    BatchNorm, Binary, Combine, Concat, Conv, Margin, MatMul, Pad, Pool, Pooling, Reduce, Reduction, Reshape, Slice,
    Transpose, Unary, Window,
};

/// Writes one node. A primitive that cannot be exported is an error that names it.
pub(super) fn write(writer: &mut Writer<'_>, node: &Node) -> Result<()> {
    let op = node.op.as_any();
    if let Some(unary) = op.downcast_ref::<Unary>() {
        return super::functions::write(writer, node, unary.0);
    }
    let written = if let Some(binary) = op.downcast_ref::<Binary>() {
        combine(writer, node, binary.0)
    } else if let Some(product) = op.downcast_ref::<MatMul>() {
        matmul(writer, node, product)
    } else if let Some(conv) = op.downcast_ref::<Conv>() {
        let mut attributes = window(&conv.window);
        attributes.push(("group", Attribute::Int(conv.groups as i64)));
        plain(writer, node, "Conv", &attributes)
    } else if let Some(norm) = op.downcast_ref::<BatchNorm>() {
        plain(writer, node, "BatchNormalization", &[("epsilon", Attribute::Float(norm.epsilon))])
    } else if let Some(pool) = op.downcast_ref::<Pool>() {
        self::pool(writer, node, pool)
    } else if let Some(reduce) = op.downcast_ref::<Reduce>() {
        self::reduce(writer, node, reduce)
    } else if let Some(reshape) = op.downcast_ref::<Reshape>() {
        self::reshape(writer, node, reshape)
    } else if let Some(slice) = op.downcast_ref::<Slice>() {
        self::slice(writer, node, slice)
    } else if let Some(pad) = op.downcast_ref::<Pad>() {
        self::pad(writer, node, pad)
    } else if let Some(concat) = op.downcast_ref::<Concat>() {
        plain(writer, node, "Concat", &[("axis", Attribute::Int(concat.axis as i64))])
    } else if let Some(transpose) = op.downcast_ref::<Transpose>() {
        plain(writer, node, "Transpose", &[("perm", ints(&transpose.perm))])
    } else {
        None
    };
    written.ok_or_else(|| unsupported(node, &format!("{:?}", node.op)))
}

pub(super) fn unsupported(node: &Node, form: &str) -> NetError {
    let reason = format!("the primitive {} cannot be exported to ONNX in this form: {form}", node.op.name());
    NetError::Unsupported { node: node.label(), reason }
}

pub(super) fn operands(writer: &Writer<'_>, node: &Node) -> Vec<String> {
    node.inputs.iter().map(|&id| writer.name(id).to_owned()).collect()
}

/// One operator with the node's operands.
pub(super) fn plain(writer: &mut Writer<'_>, node: &Node, op: &str, attributes: &[(&str, Attribute)]) -> Option<()> {
    let inputs = operands(writer, node);
    finish(writer, node, op, &inputs, attributes)
}

/// The operator whose result is the node's.
pub(super) fn finish(
    writer: &mut Writer<'_>,
    node: &Node,
    op: &str,
    inputs: &[String],
    attributes: &[(&str, Attribute)],
) -> Option<()> {
    let output = writer.name(node.output).to_owned();
    writer.emit(op, &output, inputs, &output, attributes);
    Some(())
}

fn ints(values: &[usize]) -> Attribute {
    Attribute::Ints(values.iter().map(|&value| value as i64).collect())
}

fn window(window: &Window) -> Vec<(&'static str, Attribute)> {
    let pads: Vec<usize> = window.before.iter().chain(&window.after).copied().collect();
    vec![("strides", ints(&window.strides)), ("dilations", ints(&window.dilations)), ("pads", ints(&pads))]
}

fn combine(writer: &mut Writer<'_>, node: &Node, combine: Combine) -> Option<()> {
    let op = match combine {
        Combine::Add => "Add",
        Combine::Sub => "Sub",
        Combine::Mul => "Mul",
        Combine::Div => "Div",
        Combine::Pow => "Pow",
        Combine::Min => "Min",
        Combine::Max => "Max",
        Combine::PRelu => "PRelu",
        _ => return None,
    };
    plain(writer, node, op, &[])
}

/// `Gemm` where both operands are matrices, which keeps a weight as it is stored.
fn matmul(writer: &mut Writer<'_>, node: &Node, product: &MatMul) -> Option<()> {
    let [a, b] = [node.inputs[0], node.inputs[1]].map(|id| writer.meta(id).rank());
    match (product.transposed, a, b) {
        (transposed, 2, 2) => plain(writer, node, "Gemm", &[("transB", Attribute::Int(transposed.into()))]),
        (false, ..) => plain(writer, node, "MatMul", &[]),
        (true, ..) => None,
    }
}

fn pool(writer: &mut Writer<'_>, node: &Node, pool: &Pool) -> Option<()> {
    let mut attributes = window(&pool.window);
    attributes.push(("kernel_shape", ints(&pool.kernel)));
    attributes.push(("ceil_mode", Attribute::Int(pool.round_up.into())));
    match pool.kind {
        Pooling::Max => plain(writer, node, "MaxPool", &attributes),
        Pooling::Average { count_padding } => {
            // Dilated average pools came with opset 19.
            if pool.window.dilations.iter().any(|&dilation| dilation != 1) {
                return None;
            }
            attributes.retain(|(key, _)| *key != "dilations");
            attributes.push(("count_include_pad", Attribute::Int(count_padding.into())));
            plain(writer, node, "AveragePool", &attributes)
        }
    }
}

/// Before opset 18 the axes are an attribute, except for sums, where they are an operand.
fn reduce(writer: &mut Writer<'_>, node: &Node, reduce: &Reduce) -> Option<()> {
    let keep = ("keepdims", Attribute::Int(reduce.keep.into()));
    let op = match reduce.kind {
        Reduction::Sum => {
            let axes: Vec<i64> = reduce.axes.iter().map(|&axis| axis as i64).collect();
            let axes = writer.integers(node, &axes);
            let inputs = [writer.name(node.inputs[0]).to_owned(), axes];
            return finish(writer, node, "ReduceSum", &inputs, &[keep]);
        }
        Reduction::Mean => "ReduceMean",
        Reduction::Max => "ReduceMax",
        Reduction::Min => "ReduceMin",
        Reduction::Prod => "ReduceProd",
    };
    plain(writer, node, op, &[("axes", ints(&reduce.axes)), keep])
}

/// The batch axis becomes −1, the inferred size.
fn reshape(writer: &mut Writer<'_>, node: &Node, reshape: &Reshape) -> Option<()> {
    let meta = writer.meta(node.output);
    let mut sizes: Vec<i64> = reshape.shape.iter().map(|&size| size as i64).collect();
    if meta.is_batched() {
        sizes[batch_axis(meta)?] = -1;
    }
    let sizes = writer.integers(node, &sizes);
    let inputs = [writer.name(node.inputs[0]).to_owned(), sizes];
    finish(writer, node, "Reshape", &inputs, &[])
}

fn slice(writer: &mut Writer<'_>, node: &Node, slice: &Slice) -> Option<()> {
    let shape = &writer.meta(node.inputs[0]).shape;
    let whole = |axis: usize| slice.starts[axis] == 0 && slice.steps[axis] == 1 && slice.sizes[axis] == shape[axis];
    let axes: Vec<usize> = (0..shape.len()).filter(|&axis| !whole(axis)).collect();
    if slice.sizes.contains(&0) {
        return None;
    }
    let column = |value: &dyn Fn(usize) -> i64| axes.iter().map(|&axis| value(axis)).collect::<Vec<i64>>();
    let start = |axis: usize| slice.starts[axis] as i64;
    let step = |axis: usize| slice.steps[axis] as i64;
    // One past the last index; below the first one, the smallest integer.
    let end = |axis: usize| {
        let past = start(axis) + (slice.sizes[axis] as i64 - 1) * step(axis) + step(axis).signum();
        if past < 0 { i64::MIN } else { past }
    };
    let axis = |axis: usize| axis as i64;
    let columns = [column(&start), column(&end), column(&axis), column(&step)];
    let mut inputs = vec![writer.name(node.inputs[0]).to_owned()];
    for values in &columns {
        inputs.push(writer.integers(node, values));
    }
    finish(writer, node, "Slice", &inputs, &[])
}

fn pad(writer: &mut Writer<'_>, node: &Node, pad: &Pad) -> Option<()> {
    let sizes: Vec<i64> = pad.before.iter().chain(&pad.after).map(|&size| size as i64).collect();
    let mut inputs = vec![writer.name(node.inputs[0]).to_owned(), writer.integers(node, &sizes)];
    let mode = match pad.mode {
        Margin::Constant(value) => {
            inputs.push(writer.scalar(node, value));
            "constant"
        }
        Margin::Reflect => "reflect",
        Margin::Edge => "edge",
        Margin::Wrap => return None,
    };
    finish(writer, node, "Pad", &inputs, &[("mode", Attribute::Text(mode))])
}
