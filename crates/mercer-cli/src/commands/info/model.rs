//! What an ONNX model holds.

use super::layers::{Layer, batched_shape, layers, rows};
use super::sizes::{GivenShape, sample_shapes};
use crate::console::Console;
use crate::failure::{AboutNetwork, Failure};
use crate::format::{count, grouped, shape, short, shortened};
use crate::options::{ParameterOptions, open_network};
use crate::visible;
use mercer::net::Network;
use mercer::net::graph::Graph;
use mercer::net::network::{Input, Parameter, TrainedOn};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

/// Lists longer than this are cut.
const MOST_ROWS: usize = 40;

/// Letters of a line of text.
const LINE: usize = 110;

/// All that `--json` shows of a model.
#[derive(Debug, Serialize)]
struct ModelReport {
    kind: &'static str,
    file: String,
    exporter: Option<String>,
    opset: Option<i64>,
    inputs: Vec<InputReport>,
    outputs: Vec<OutputReport>,
    /// The number of trainable numbers.
    n_params: usize,
    /// The number of trainable tensors.
    n_tensors: usize,
    parameters: Vec<TensorReport>,
    constants: Vec<TensorReport>,
    /// Layers into which the exporter folded a batch normalisation.
    folded_normalisations: usize,
    /// How the parameters differ from those of the module.
    remarks: Vec<String>,
    /// Of a forward pass of one sample; nothing while sizes are free.
    flops: Option<u64>,
    /// Nothing while sizes are free.
    layers: Option<Vec<Layer>>,
    /// What the file says about its training.
    trained_on: TrainedOn,
}

#[derive(Debug, Serialize)]
struct InputReport {
    name: String,
    /// The file's sizes, batch included; nothing where it leaves them free.
    shape: Option<Vec<Option<usize>>>,
    batch_axis: Option<usize>,
    fixed_batch: Option<usize>,
    integer: bool,
}

#[derive(Debug, Serialize)]
struct OutputReport {
    name: String,
    /// For one sample as the file has it, with the batch as an axis of size one; nothing while sizes are free.
    shape: Option<Vec<usize>>,
    #[serde(skip)]
    shape_text: String,
}

#[derive(Debug, Serialize)]
struct TensorReport {
    name: String,
    shape: Vec<usize>,
    n_elements: usize,
    reason: String,
}

/// Prints what is known of a model, and then fails if it cannot be run.
pub(super) fn show(
    path: &Path,
    parameters: &ParameterOptions,
    given: &[GivenShape],
    console: &Console,
) -> Result<(), Failure> {
    let network = open_network(path, parameters)?;
    let shapes = sample_shapes(network.inputs(), given)?;
    let graph = shapes.as_ref().map(|shapes| network.graph(shapes).about(path)).transpose();
    let known = graph.as_ref().ok().and_then(Option::as_ref);
    let report = ModelReport::of(path, &network, known.map(|graph| &**graph));
    let free = shapes.is_none();
    console.result(&report, || report.text(&shapes.unwrap_or_default(), free, console.verbose))?;
    graph.map(|_| ())
}

/// What `mercer info` says of a model, for other commands.
pub(crate) fn text(path: &Path, console: &Console) -> Result<String, Failure> {
    let network = open_network(path, &ParameterOptions::default())?;
    let graph = network.declared_graph().about(path)?;
    Ok(ModelReport::of(path, &network, Some(&graph)).text(&[], false, console.verbose))
}

impl ModelReport {
    fn of(path: &Path, network: &Network, graph: Option<&Graph>) -> Self {
        let (exporter, opset) = network.origin().unzip();
        let results = graph.map_or(&[][..], Graph::outputs).iter();
        let results: HashMap<&str, _> = results.map(|(name, id)| (&name[..], *id)).collect();
        let output = |name: String| {
            let value = graph.and_then(|graph| Some(graph.value(*results.get(&name[..])?)));
            let shape_text = value.map_or_else(String::new, |value| batched_shape(&value.meta));
            OutputReport { name, shape: value.map(|value| value.meta.shape.clone()), shape_text }
        };
        let outputs = network.output_names().into_iter().map(output);
        let constants = network.constants().into_iter().map(|(name, shape, reason)| TensorReport {
            n_elements: mercer::net::numel(&shape),
            name,
            shape,
            reason,
        });
        Self {
            kind: "model",
            file: path.display().to_string(),
            exporter: exporter.filter(|name| !name.is_empty()),
            opset,
            inputs: network.inputs().iter().map(InputReport::of).collect(),
            outputs: outputs.collect(),
            n_params: network.n_params(),
            n_tensors: network.parameters().len(),
            parameters: network.parameters().iter().map(TensorReport::of).collect(),
            constants: constants.collect(),
            folded_normalisations: network.folded_normalisations(),
            remarks: network.remarks(),
            flops: graph.map(Graph::flops),
            layers: graph.map(layers),
            trained_on: network.trained_on().clone(),
        }
    }

    fn text(&self, shapes: &[Vec<usize>], free: bool, verbose: bool) -> String {
        let most = if verbose { usize::MAX - 1 } else { MOST_ROWS };
        let exporter = visible::line(self.exporter.as_deref().unwrap_or("an unnamed exporter"));
        let opset = self.opset.map_or_else(String::new, |opset| format!(", opset {opset}"));
        let mut text = format!("{}: ONNX model from {exporter}{opset}\n", self.file);
        let inputs = self.inputs.iter().enumerate().map(|(index, input)| input.row(shapes.get(index)));
        let _ = write!(text, "\nInputs\n{}", shortened(inputs.collect(), most, &[]));
        let outputs = self.outputs.iter().map(|output| vec![output.name.clone(), output.shape_text.clone()]);
        let _ = write!(text, "\nOutputs\n{}", shortened(outputs.collect(), most, &[]));
        if let Some(classes) = &self.trained_on.classes {
            let _ = writeln!(text, "\nClasses, an output each: {}", classes.join(", "));
        }
        for columns in self.trained_on.columns.iter().flatten() {
            let _ = writeln!(text, "\nColumns of the table it was trained on: {}", columns.inputs.join(", "));
        }
        if let (Some(layers), Some(flops)) = (&self.layers, self.flops) {
            let title = format!("{}, {}FLOPs per sample", count(layers.len(), "primitive"), spaced(flops));
            let _ = write!(text, "\nLayers ({title})\n{}", shortened(rows(layers), most, &[3]));
        } else if free {
            let names: Vec<&str> =
                self.inputs.iter().filter(|input| input.is_free()).map(|input| &*input.name).collect();
            let _ = writeln!(
                text,
                "\nLayers and FLOPs depend on sizes that the file leaves free; give them with --shape {}=SIZES",
                names.first().unwrap_or(&"INPUT")
            );
        }
        let title = format!("{}, {}", count(self.n_tensors, "tensor"), count(self.n_params, "number"));
        let rows = self.parameters.iter().map(TensorReport::row).collect();
        let _ = write!(text, "\nParameters ({title})\n{}", shortened(rows, most, &[2]));
        if !self.constants.is_empty() {
            let rows = self.constants.iter().map(TensorReport::row).collect();
            let title = count(self.constants.len(), "tensor");
            let _ = write!(text, "\nConstants ({title})\n{}", shortened(rows, most, &[2]));
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "\n{}", wrapped(remark));
        }
        text
    }
}

/// A paragraph in lines that fit a terminal.
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

impl InputReport {
    fn of(input: &Input) -> Self {
        Self {
            name: input.name.clone(),
            shape: input.shape.clone(),
            batch_axis: input.batch_axis,
            fixed_batch: input.fixed_batch,
            integer: input.is_integer(),
        }
    }

    fn is_free(&self) -> bool {
        let free = |(axis, size): (usize, &Option<usize>)| size.is_none() && Some(axis) != self.batch_axis;
        self.shape.as_ref().is_none_or(|sizes| sizes.iter().enumerate().any(free))
    }

    fn row(&self, sample: Option<&Vec<usize>>) -> Vec<String> {
        let size = |(axis, size): (usize, &Option<usize>)| match size {
            _ if Some(axis) == self.batch_axis => "batch".to_owned(),
            Some(size) => size.to_string(),
            None => "?".to_owned(),
        };
        let sizes = match &self.shape {
            Some(sizes) => format!("[{}]", sizes.iter().enumerate().map(size).collect::<Vec<_>>().join(", ")),
            None => "any shape".to_owned(),
        };
        let mut notes = vec![if self.integer { "integers" } else { "floats" }.to_owned()];
        if let (true, Some(sample)) = (self.is_free(), sample) {
            notes.push(format!("here {}", shape(sample)));
        }
        if let Some(batch) = self.fixed_batch {
            notes.push(format!("written for a batch of {batch}, runs at any"));
        }
        vec![self.name.clone(), sizes, notes.join("; ")]
    }
}

impl TensorReport {
    fn of(parameter: &Parameter) -> Self {
        Self {
            name: parameter.name().to_owned(),
            shape: parameter.shape().to_vec(),
            n_elements: parameter.numel(),
            reason: parameter.reason().to_owned(),
        }
    }

    fn row(&self) -> Vec<String> {
        vec![self.name.clone(), shape(&self.shape), grouped(self.n_elements), self.reason.clone()]
    }
}
