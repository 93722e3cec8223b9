//! `mercer predict`: the outputs of a network, block by block.

mod machine;

use crate::blocks;
use crate::console::Console;
use crate::failure::{AboutNetwork, Failure};
use crate::format::{count, duration, grouped, shape};
use crate::options::{DataOptions, ParameterOptions, Precision, Real, Samples, open_network};
use crate::output::OutputFile;
use crate::score::Score;
use mercer::data::NpyWriter;
use mercer::net::network::Prediction;
use mercer::net::{NetError, Network};
use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  mercer predict --net model.onnx --data images.npy -o logits.npy
  mercer predict --net model.onnx --data test.npz:x --labels test.npz:y          accuracy
  mercer predict --net resnet.onnx --data cifar.npz:x --layout nhwc --scale 1/255 \\
      --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 -o logits.npy
  mercer predict --net model.onnx --data images.npy --at /layer2/Relu -o features.npy
  mercer predict --net bert.onnx --data input_ids=tokens.npz:ids \\
      --data attention_mask=tokens.npz:mask -o embeddings.npy
  mercer predict --machine machine --data test.npz:x --labels test.npz:y -o scores.npy

The data may be larger than memory. `mercer info MODEL` lists the nodes that --at takes. For a machine fitted on --gram the
data are the kernel between new samples (rows) and training samples (columns), for one fitted on --features their
features; a machine that knows its kernel takes the samples themselves, and does the preprocessing of
the fit unless other flags are given.";

/// Run a network or a machine on data: outputs, values at any node, scores; accuracy if there are labels
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Network")]
pub(crate) struct PredictArguments {
    /// The network
    #[arg(long, value_name = "MODEL.onnx", required_unless_present = "machine")]
    net: Option<PathBuf>,

    /// A machine that `mercer fit` wrote, instead of a network
    #[arg(long, value_name = "DIR", conflicts_with_all = ["net", "at", "batch", "include", "exclude"])]
    machine: Option<PathBuf>,

    /// Write the probabilities of the classes, instead of a machine's scores
    #[arg(long, requires = "machine")]
    probabilities: bool,

    /// Write the values at this node or output [default: the first output]
    #[arg(long, value_name = "NODE")]
    at: Option<String>,

    /// Compute in single or double precision
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    precision: Precision,

    /// Read about so many samples at once; the results do not depend on it [default: what suits the network]
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroUsize>,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    output: OutputFile,

    #[command(flatten)]
    parameters: ParameterOptions,
}

/// What `--json` shows.
#[derive(Debug, Serialize)]
struct PredictReport {
    network: String,
    at: String,
    precision: Precision,
    n_samples: usize,
    /// Of the values of one sample.
    shape: Vec<usize>,
    output: Option<String>,
    seconds: f64,
    samples_per_second: f64,
    #[serde(flatten)]
    score: Option<Score>,
}

impl PredictArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        if self.output.path.is_none() && self.data.labels.is_none() {
            return Err(Failure::new("there is nothing to do with the predictions")
                .hint("-o OUT.npy writes them; --labels FILE[:KEY] gives their accuracy"));
        }
        self.output.check()?;
        if let Some(folder) = &self.machine {
            return machine::run(self, folder, console);
        }
        let network = open_network(self.net(), &self.parameters)?;
        let samples = Samples::open(&self.data, &network, console)?;
        let samples = samples.in_order_of("--labels", &network, self.at.as_deref(), &self.data)?;
        samples.hint(Some(&network), console)?;
        let report = match self.precision {
            Precision::F32 => self.predict::<f32>(&network, &samples, console)?,
            Precision::F64 => self.predict::<f64>(&network, &samples, console)?,
        };
        console.result(&report, || report.text())
    }

    /// The file of the network; the parser has seen to it that there is one.
    fn net(&self) -> &Path {
        self.net.as_deref().unwrap_or(Path::new("network"))
    }

    fn predict<T: Real>(
        &self,
        network: &Network,
        samples: &Samples,
        console: &Console,
    ) -> Result<PredictReport, Failure> {
        let graph = network.graph(&samples.shapes()).about(self.net())?;
        let at = self.at.as_deref();
        let most = self.batch.map(NonZeroUsize::get);
        let blocks = blocks::of(&graph, at, samples.n_samples, most, size_of::<T>());
        let (context, start) = (console.context(), std::time::Instant::now());
        let mut score = samples.labels.as_ref().map(Score::start).transpose()?;
        let mut writer: Option<NpyWriter<T>> = None;
        let mut sample_shape = Vec::new();
        for rows in blocks {
            if context.cancelled() {
                let done = count(rows.start, "sample");
                return Err(Failure::interrupted(format!("interrupted after {done}; nothing was written")));
            }
            let first = rows.start;
            let inputs: Vec<ArrayD<T>> =
                samples.inputs.iter().map(|dataset| dataset.rows(rows.clone())).collect::<Result<_, _>>()?;
            let prediction = self.block(network, samples, &inputs, at).map_err(|error| self.at_row(error, first))?;
            let values = view(&prediction, rows.len())?;
            if let Some(score) = &mut score {
                score.add(values.view(), first)?;
            }
            if let Some(path) = &self.output.path {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    None => writer.insert(NpyWriter::create(path, &prediction.shape, self.output.existing())?),
                };
                writer.append(values)?;
            }
            sample_shape = prediction.shape;
            context.report(rows.end, samples.n_samples, "samples");
        }
        if let Some(writer) = writer {
            writer.finish()?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let first = || network.output_names().into_iter().next().unwrap_or_default();
        Ok(PredictReport {
            network: self.net().display().to_string(),
            at: self.at.clone().unwrap_or_else(first),
            precision: self.precision,
            n_samples: samples.n_samples,
            shape: sample_shape,
            output: self.output.path.as_ref().map(|path| path.display().to_string()),
            seconds,
            samples_per_second: samples.n_samples as f64 / seconds.max(1e-9),
            score,
        })
    }

    fn block<T: Real>(
        &self,
        network: &Network,
        samples: &Samples,
        inputs: &[ArrayD<T>],
        at: Option<&str>,
    ) -> Result<Prediction<T>, NetError> {
        let n_rows = inputs.first().map_or(0, |array| array.len_of(Axis(0)));
        let contiguous: Vec<_> = inputs.iter().map(|array| array.as_standard_layout()).collect();
        let slices: Vec<(&[T], &[usize])> = contiguous
            .iter()
            .zip(&samples.inputs)
            .map(|(array, dataset)| (array.as_slice().unwrap_or_default(), dataset.sample_shape()))
            .collect();
        network.predict(&slices, n_rows, at, None)
    }

    /// The library counts the samples of a block, the user those of the file.
    fn at_row(&self, error: NetError, start: usize) -> Failure {
        match error {
            NetError::NotFinite { place, sample } => {
                let failure = Failure::of_network(self.net(), NetError::NotFinite { place, sample: start + sample });
                failure.hint("the numbers overflow: --precision f64, or --scale for data that are too large")
            }
            NetError::Input { input, reason } if start > 0 => {
                let reason = format!("{reason} (samples counted from row {start} of the data)");
                Failure::of_network(self.net(), NetError::Input { input, reason })
            }
            other => Failure::of_network(self.net(), other),
        }
    }
}

fn view<T: Real>(prediction: &Prediction<T>, n_rows: usize) -> Result<ArrayViewD<'_, T>, Failure> {
    let whole: Vec<usize> = std::iter::once(n_rows).chain(prediction.shape.iter().copied()).collect();
    ArrayViewD::from_shape(IxDyn(&whole), &prediction.values)
        .map_err(|error| Failure::new(format!("values of shape {whole:?}: {error}")))
}

impl PredictReport {
    fn text(&self) -> String {
        let (samples, rate) = (count(self.n_samples, "sample"), grouped(self.samples_per_second.round() as usize));
        let mut text = format!("{samples} in {} ({rate} per second)\n", duration(self.seconds));
        if let Some(score) = &self.score {
            text += &format!("{score}\n");
        }
        if let Some(output) = &self.output {
            let whole: Vec<usize> = std::iter::once(self.n_samples).chain(self.shape.iter().copied()).collect();
            text += &format!("{} of shape {} in {output}\n", self.at, shape(&whole));
        }
        text
    }
}
