//! Batch normalisation that an exporter folded into the layer before it.
//!
//! A folded file has different parameters from the module: `w ← w·γ/σ` and one bias instead of scale and shift.
//! PyTorch's new exporter names the call of the normalisation in the layer's notes. Without notes, the result keeps the
//! name of the normalisation's result (`getitem`), and an added bias is named after the weight. Tracing folds only
//! convolutions, and renames both weight and bias.

use super::around::{Around, Exporter};
use super::model::NodeDef;
use super::record::Call;

/// The number of layers into which batch normalisation was folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folded {
    pub(crate) convolutions: usize,
    pub(crate) dense: usize,
    /// How to export without folding.
    advice: &'static str,
}

impl Folded {
    pub(super) fn find(around: &Around<'_>) -> Self {
        let advice = match around.exporter {
            Exporter::TorchExport => "torch.onnx.export(…, dynamo=True, optimize=False)",
            _ => "torch.onnx.export(…, training=TrainingMode.PRESERVE) or do_constant_folding=False",
        };
        let mut folded = Self { advice, ..Self::default() };
        for node in around.nodes.iter().filter(|node| is_folded(node)) {
            if node.op.starts_with("Conv") {
                folded.convolutions += 1;
            } else {
                folded.dense += 1;
            }
        }
        folded
    }

    pub(crate) fn layers(&self) -> usize {
        self.convolutions + self.dense
    }

    /// The warning for the user.
    pub(crate) fn remark(&self) -> Option<String> {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let layers = match (self.convolutions, self.dense) {
            (0, 0) => return None,
            (n, 0) => count(n, "convolution"),
            (0, n) => count(n, "dense layer"),
            (n, m) => format!("{} and {}", count(n, "convolution"), count(m, "dense layer")),
        };
        Some(format!(
            "The exporter folded batch normalisation into {layers}. Parameters, tangent kernels and posteriors are those of \
             the folded network, not of the module. {} keeps the module's parameters.",
            self.advice
        ))
    }
}

fn is_folded(node: &NodeDef) -> bool {
    if !matches!(node.op.as_str(), "Conv" | "ConvTranspose" | "Gemm") {
        return false;
    }
    if let Some(call) = Call::read(node) {
        return call.target.contains("batch_norm");
    }
    let anonymous = |name: &String| name.starts_with("onnx::Conv_");
    let traced = matches!(&node.inputs[..], [_, weight, bias, ..] if anonymous(weight) && anonymous(bias));
    let named = matches!(&node.inputs[..], [_, weight, bias, ..] if bias.strip_suffix("_bias") == Some(weight));
    let result = node.outputs.first().map_or("", String::as_str);
    let kept = result == "getitem" || result.starts_with("getitem_");
    traced || named || (kept && node.name.starts_with("node_"))
}
