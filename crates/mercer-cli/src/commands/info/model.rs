//! Describes an ONNX model.

use crate::format::shortened;
use crate::visible;
use mercer::info::{EndingFindings, InputFindings, LayerInfo, ModelFindings, OutputFindings, TensorFindings};
use mercer::text::{count, grouped, shape, short};
use std::fmt::Write;

/// Maximum length of a line of text.
const LINE: usize = 110;

/// Inputs, outputs, layers, parameters.
pub(super) fn text(found: &ModelFindings, most: usize) -> String {
    let exporter = visible::line(found.exporter.as_deref().unwrap_or("an unnamed exporter"));
    let opset = found.opset.map_or_else(String::new, |opset| format!(", opset {opset}"));
    let mut text = format!("{}: ONNX model from {exporter}{opset}\n", found.file);
    let _ = write!(text, "\nInputs\n{}", shortened(found.inputs.iter().map(input).collect(), most, &[]));
    let _ = write!(text, "\nOutputs\n{}", shortened(found.outputs.iter().map(output).collect(), most, &[]));
    if let Some(classes) = &found.trained_on.classes {
        let _ = writeln!(text, "\nClasses, in output order: {}", classes.join(", "));
    }
    for columns in found.trained_on.columns.iter().flatten() {
        let _ = writeln!(text, "\nColumns of the table it was trained on: {}", columns.inputs.join(", "));
    }
    if let (Some(layers), Some(flops)) = (&found.layers, found.flops) {
        let title = format!("{}, {}FLOPs per sample", count(layers.len(), "primitive"), spaced(flops));
        let _ = write!(text, "\nLayers ({title})\n{}", shortened(rows(layers), most, &[3]));
    } else if found.is_free {
        let names: Vec<&str> = found.inputs.iter().filter(|input| input.is_free()).map(|input| &*input.name).collect();
        let _ = writeln!(
            text,
            "\nLayers and FLOPs depend on sizes that the file leaves free; give them with --shape {}=SIZES",
            names.first().unwrap_or(&"INPUT")
        );
    }
    let title = format!("{}, {}", count(found.n_tensors, "tensor"), count(found.n_params, "number"));
    let parameters = found.parameters.iter().map(tensor).collect();
    let _ = write!(text, "\nParameters ({title})\n{}", shortened(parameters, most, &[2]));
    if !found.constants.is_empty() {
        let constants = found.constants.iter().map(tensor).collect();
        let title = count(found.constants.len(), "tensor");
        let _ = write!(text, "\nConstants ({title})\n{}", shortened(constants, most, &[2]));
    }
    for remark in &found.remarks {
        let _ = writeln!(text, "\n{}", wrapped(remark));
    }
    text
}

/// One row per node of the file. A node that was lowered to several primitives is one layer.
fn rows(layers: &[LayerInfo]) -> Vec<Vec<String>> {
    let nodes = layers.chunk_by(|left, right| left.name == right.name && left.operator == right.operator);
    nodes
        .filter_map(|node| {
            let last = node.last()?;
            let mut primitives: Vec<&str> = node.iter().map(|layer| layer.primitive).collect();
            primitives.dedup();
            let flops = node.iter().fold(0_u64, |sum, layer| sum.saturating_add(layer.flops));
            let (name, operator) = (last.name.clone(), last.operator.clone());
            Some(vec![name, operator, last.shape_text.clone(), short(flops), primitives.join(", ")])
        })
        .collect()
}

/// A paragraph wrapped to the terminal.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < LINE);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

fn spaced(flops: u64) -> String {
    let text = short(flops);
    if text.contains(' ') { text } else { text + " " }
}

fn input(input: &InputFindings) -> Vec<String> {
    let size = |(axis, size): (usize, &Option<usize>)| match size {
        _ if Some(axis) == input.batch_axis => "batch".to_owned(),
        Some(size) => size.to_string(),
        None => "?".to_owned(),
    };
    let sizes = match &input.shape {
        Some(sizes) => format!("[{}]", sizes.iter().enumerate().map(size).collect::<Vec<_>>().join(", ")),
        None => "any shape".to_owned(),
    };
    let mut notes = vec![if input.integer { "integers" } else { "floats" }.to_owned()];
    notes.extend(input.sample.as_ref().map(|sample| format!("here {}", shape(sample))));
    if let Some(batch) = input.fixed_batch {
        notes.push(format!("written for a batch of {batch}, runs at any"));
    }
    vec![input.name.clone(), sizes, notes.join("; ")]
}

fn output(output: &OutputFindings) -> Vec<String> {
    let ending = match &output.ending {
        None => String::new(),
        Some(EndingFindings::Open) => "no softmax or sigmoid at its end".to_owned(),
        Some(EndingFindings::Probabilities { squash, logits, .. }) => format!("{squash} of the logits {logits:?}"),
        Some(EndingFindings::Mixed { node, reason }) => format!("{node} {reason}"),
    };
    vec![output.name.clone(), output.shape_text.clone(), ending]
}

fn tensor(tensor: &TensorFindings) -> Vec<String> {
    vec![tensor.name.clone(), shape(&tensor.shape), grouped(tensor.n_elements), tensor.reason.clone()]
}
