//! Data and labels for a network.

use super::PreprocessOptions;
use super::assign::assign;
use crate::console::Console;
use crate::failure::Failure;
use mercer::data::{Dataset, Labels, Preprocess, Source, open_labelled};
use mercer::net::Network;
use serde::Deserialize;
use serde_json::Value;

/// What to run on.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataOptions {
    /// The samples; with several inputs once per input, as in --data input_ids=tokens.npz:ids
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", required = true)]
    pub(crate) data: Vec<String>,

    /// What the samples show: one class per sample
    #[arg(long, value_name = "FILE[:KEY]")]
    pub(crate) labels: Option<String>,

    #[command(flatten)]
    pub(crate) preprocess: PreprocessOptions,
}

/// Open data, one set per input of a network, all of the same samples.
#[derive(Debug)]
pub(crate) struct Samples {
    /// In the order of the network's inputs.
    pub(crate) inputs: Vec<Dataset>,
    pub(crate) labels: Option<Labels>,
    pub(crate) n_samples: usize,
}

impl Samples {
    /// Opens what the options name for the inputs of this network.
    pub(crate) fn open(options: &DataOptions, network: &Network) -> Result<Self, Failure> {
        Self::given("--data", &options.data, options, network)
    }

    /// Opens what the user wrote after another flag, with the labels and the preprocessing of the options.
    pub(crate) fn given(
        flag: &str,
        texts: &[String],
        options: &DataOptions,
        network: &Network,
    ) -> Result<Self, Failure> {
        let inputs = network.inputs();
        let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let sources = assign(flag, &names, texts)?;
        Self::of(sources.iter().zip(inputs.iter().map(|input| input.is_integer())), options)
    }

    /// Opens one set of samples for what has no network.
    pub(crate) fn plain(flag: &str, texts: &[String], options: &DataOptions) -> Result<Self, Failure> {
        let [text] = texts else {
            return Err(Failure::new(format!("{flag} is given {} times; there is one set of samples", texts.len()))
                .hint(format!("{flag} FILE[:KEY]")));
        };
        let source = text.parse::<Source>().map_err(|error| Failure::new(format!("{flag} {text}: {error}")))?;
        Self::of([(&source, false)].into_iter(), options)
    }

    /// Opens a source per input; integers are not preprocessed.
    fn of<'a>(sources: impl Iterator<Item = (&'a Source, bool)>, options: &DataOptions) -> Result<Self, Failure> {
        let mut labels = None;
        let mut inputs = Vec::new();
        for (source, integer) in sources {
            let dataset = match &options.labels {
                Some(text) if labels.is_none() => {
                    let (dataset, opened) = open_labelled(source, &text.parse::<Source>()?)?;
                    labels = Some(opened);
                    dataset
                }
                _ => source.open()?,
            };
            inputs.push(if integer { dataset } else { options.preprocess.apply(dataset)? });
        }
        let n_samples = inputs.first().map_or(0, Dataset::n_samples);
        if let Some(other) = inputs.iter().find(|dataset| dataset.n_samples() != n_samples) {
            let (first, count) = (inputs[0].place(), other.n_samples());
            return Err(Failure::new(format!("{first} has {n_samples} samples but {} has {count}", other.place()))
                .hint("every input needs one row per sample, in the same order"));
        }
        if n_samples == 0 {
            let place = inputs.first().map_or("", Dataset::place);
            return Err(Failure::new(format!("{place}: there are no samples in it")));
        }
        Ok(Self { inputs, labels, n_samples })
    }

    /// The steps that each input goes through, as a folder keeps them.
    pub(crate) fn preprocess_note(&self) -> Result<Value, Failure> {
        let steps: Vec<&Preprocess> = self.inputs.iter().map(Dataset::preprocess).collect();
        serde_json::to_value(steps).map_err(|error| Failure::new(format!("preprocessing cannot be written: {error}")))
    }

    /// The same samples through the steps that a folder keeps, unless the user asks for others, which is then said.
    pub(crate) fn preprocessed_as(
        mut self,
        asked: &PreprocessOptions,
        stored: Option<&Value>,
        console: &Console,
    ) -> Result<Self, Failure> {
        let Some(stored) = stored else { return Ok(self) };
        if asked.is_given() {
            if self.preprocess_note()? != *stored {
                console.note("note: the preprocessing is not that of the folder, which was replaced by these flags");
            }
            return Ok(self);
        }
        let broken = |reason: String| Failure::new(format!("the preprocessing of the folder cannot be read: {reason}"));
        let steps = Vec::<Preprocess>::deserialize(stored).map_err(|error| broken(error.to_string()))?;
        if steps.len() != self.inputs.len() {
            return Err(broken(format!("it is of {} inputs", steps.len())));
        }
        let through = |(input, steps): (Dataset, Preprocess)| {
            let place = input.place().to_owned();
            input.with_preprocess(steps).map_err(|error| {
                Failure::new(format!("{place}: {error}"))
                    .hint("the folder's preprocessing does not suit these samples; --scale, --layout … replace it")
            })
        };
        self.inputs = self.inputs.into_iter().zip(steps).map(through).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// A fingerprint of the samples as they are read.
    pub(crate) fn fingerprint(&self) -> Result<String, Failure> {
        let each: Vec<String> = self.inputs.iter().map(Dataset::fingerprint).collect::<Result<_, _>>()?;
        Ok(each.join(" "))
    }

    /// The files.
    pub(crate) fn places(&self) -> String {
        self.inputs.iter().map(Dataset::place).collect::<Vec<_>>().join(", ")
    }

    /// The shape of one sample, per input.
    pub(crate) fn shapes(&self) -> Vec<Vec<usize>> {
        self.inputs.iter().map(|dataset| dataset.sample_shape().to_vec()).collect()
    }
}
