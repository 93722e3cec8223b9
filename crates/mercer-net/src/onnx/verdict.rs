//! The role of a tensor in one use: weight, bias, scale, statistic, scalar of a formula.

use super::around::{Around, Exporter, is_made_up};
use super::model::NodeDef;
use super::record::{Call, State};
use super::tensor::{Data, Tensor};

/// The verdict of one use of a tensor: parameter or constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Parameter(&'static str),
    Constant(&'static str),
    /// A constant here, even if the tensor is a parameter elsewhere: exporters merge equal numbers.
    Fixed(&'static str),
}

/// Biases, scales and slopes. Exporters merge those of an untrained network, whereas a weight that is used twice is
/// tied.
pub(super) fn is_soft(role: &str) -> bool {
    matches!(role, "bias" | "scale" | "slope" | SCALE | SHIFT)
}

const SCALE: &str = "scale of normalisation";
const SHIFT: &str = "shift of normalisation";
const NUMBER: &str = "scalar of a formula";
const BUFFER: &str = "buffer of the module";
const ARGUMENT: &str = "argument of the operator";
const THROUGH: &str = "used through other operators";

/// A tensor, and what its numbers look like.
pub(super) struct Candidate<'a> {
    pub(super) tensor: &'a Tensor,
    pub(super) name: &'a str,
    /// The value of a Constant node.
    pub(super) from_node: bool,
    /// The common value of all elements, if there is one.
    pub(super) uniform: Option<f64>,
    /// Zeros and very negative numbers.
    is_mask: bool,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(tensor: &'a Tensor, name: &'a str, from_node: bool) -> Self {
        let (uniform, is_mask) = match &tensor.data {
            Data::F32(values) => looks(values.iter().map(|&x| f64::from(x))),
            Data::F64(values) => looks(values.iter().copied()),
            Data::Int(_) | Data::Bool(_) => (None, false),
        };
        Self { tensor, name, from_node, uniform, is_mask }
    }

    fn is_single(&self) -> bool {
        self.tensor.numel() <= 1
    }
}

/// The common value, and whether the tensor is a mask: attention masks consist of zeros and very negative numbers.
fn looks(mut values: impl Iterator<Item = f64> + Clone) -> (Option<f64>, bool) {
    let masked = |x: f64| x <= -1e4;
    let is_mask = values.clone().all(|x| x == 0.0 || masked(x)) && values.clone().any(masked);
    let first = values.next();
    (first.filter(|first| values.all(|x| x == *first)), is_mask)
}

impl<'a> Around<'a> {
    /// The verdict of a use as operand `which` of a node.
    pub(super) fn verdict(&self, node: &'a NodeDef, which: usize, candidate: &Candidate<'_>) -> Verdict {
        use Verdict::{Constant, Fixed, Parameter};
        let state = self.signature.state(candidate.name);
        if state == Some(State::Buffer) {
            return Constant(BUFFER);
        }
        let op = node.op.as_str();
        let is_product = matches!(op, "Conv" | "ConvTranspose" | "Gemm" | "MatMul");
        if !is_product && !candidate.from_node && self.takes_data_alone(node) {
            return Fixed(NUMBER);
        }
        if Call::read(node).is_some_and(|call| self.signature.takes_buffers_alone(&call)) {
            return Fixed(BUFFER);
        }
        match self.judge(node, which, candidate) {
            Constant(_) if state == Some(State::Parameter) && which < 3 && is_arithmetic(op) => Parameter(role(op)),
            verdict => verdict,
        }
    }

    fn judge(&self, node: &'a NodeDef, which: usize, candidate: &Candidate<'_>) -> Verdict {
        use Verdict::{Constant, Fixed, Parameter};
        match (node.op.as_str(), which) {
            ("Conv" | "ConvTranspose", 1) | ("Gemm" | "MatMul", 0 | 1) => Parameter("weight"),
            ("Conv" | "ConvTranspose", 2) | ("Gemm", 2) => Parameter("bias"),
            _ if candidate.from_node => Constant("value of a Constant node"),
            ("BatchNormalization", 3..) => Fixed("running statistic"),
            (op, 1 | 2) if op.ends_with("Normalization") => {
                if self.is_plain(node, which, candidate) {
                    Fixed("ones and zeros of a normalisation without parameters")
                } else {
                    Parameter(if which == 1 { SCALE } else { SHIFT })
                }
            }
            ("Gather" | "GatherElements" | "GatherND", 0) => Parameter("embedding"),
            ("PRelu", 1) => Parameter("slope"),
            ("BiasGelu" | "FastGelu", 1) => Parameter("bias"),
            ("Add" | "Sub" | "Mul" | "Div" | "Sum", _) => {
                if candidate.is_single() {
                    self.judge_single(node, which, candidate)
                } else if candidate.is_mask {
                    Constant("mask")
                } else {
                    Parameter(role(&node.op))
                }
            }
            ("Pow", 1) if candidate.is_single() => self.judge_single(node, which, candidate),
            ("Pow" | "Min" | "Max" | "Where" | "Equal", _) => {
                if candidate.is_single() {
                    Constant(NUMBER)
                } else {
                    Constant(if candidate.is_mask { "mask" } else { "operand of a comparison or power" })
                }
            }
            ("Concat", _) | (_, 0) if is_movement(&node.op) || is_function(&node.op) => {
                if candidate.is_single() {
                    self.judge_single(node, which, candidate)
                } else {
                    Parameter(THROUGH)
                }
            }
            _ => Constant(ARGUMENT),
        }
    }

    /// A single number is a parameter if the module names it, or if it is the bias of a product.
    fn judge_single(&self, node: &'a NodeDef, which: usize, candidate: &Candidate<'_>) -> Verdict {
        if self.exporter.is_torch() && !is_made_up(candidate.name) {
            Verdict::Parameter(role(&node.op))
        } else if !candidate.tensor.shape.is_empty() && self.is_added_to_product(node, which) {
            Verdict::Parameter("bias")
        } else {
            Verdict::Constant(NUMBER)
        }
    }

    /// Whether scale and shift of a normalisation are ones and zeros that the operator requires but the module does not
    /// have. An untrained InstanceNorm has such values too, but under its own names.
    fn is_plain(&self, node: &'a NodeDef, which: usize, candidate: &Candidate<'_>) -> bool {
        if candidate.uniform != Some(if which == 1 { 1.0 } else { 0.0 }) {
            return false;
        }
        if let Some(call) = Call::read(node) {
            return node.op == "InstanceNormalization" && call.target.contains("group_norm");
        }
        let made_up = self.exporter == Exporter::TorchExport && is_made_up(candidate.name);
        made_up || (node.op == "InstanceNormalization" && self.is_inside_group(node))
    }

    /// The parameter of the module that a use stands for, by its name in the calls.
    pub(super) fn owner(&self, node: &'a NodeDef, role: &str, name: &str) -> Option<&'a str> {
        let own = self.signature.parameters(&Call::read(node)?);
        if let Some(same) = own.iter().find(|operand| self.signature.target(operand) == Some(name)) {
            return Some(same);
        }
        let is_bias = |operand: &&&str| operand.ends_with("bias");
        let chosen = if matches!(role, "bias" | SHIFT) {
            own.iter().rev().find(is_bias).or(own.last())
        } else {
            own.iter().find(|operand| !is_bias(operand)).or(own.first())
        };
        chosen.copied()
    }
}

/// The role of a tensor that an operator adds or multiplies.
fn role(op: &str) -> &'static str {
    match op {
        "Mul" | "Div" => "scale",
        "Add" | "Sub" | "Sum" => "bias",
        "PRelu" => "slope",
        "Pow" => "exponent",
        _ => THROUGH,
    }
}

/// Operators that can take a parameter.
fn is_arithmetic(op: &str) -> bool {
    let elementwise = ["Add", "Sub", "Mul", "Div", "Sum", "Pow", "Min", "Max", "Where", "Clip", "PRelu"];
    elementwise.contains(&op) || is_function(op) || is_movement(op)
}

/// Functions of parameters, as in `exp(temperature)`.
fn is_function(op: &str) -> bool {
    let names = ["Exp", "Log", "Sqrt", "Neg", "Abs", "Sigmoid", "Tanh", "Softplus", "Reciprocal", "Relu", "Softmax"];
    names.contains(&op) || ["ReduceSum", "ReduceMean", "ReduceL2"].contains(&op)
}

fn is_movement(op: &str) -> bool {
    let names = ["Concat", "Expand", "Tile", "Transpose", "Reshape", "Slice", "Split", "Squeeze", "Unsqueeze"];
    names.contains(&op) || ["Identity", "Cast", "CastLike", "Flatten"].contains(&op)
}
