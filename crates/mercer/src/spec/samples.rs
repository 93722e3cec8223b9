//! Open samples.

use super::assign::{Bound, assign};
use super::decoding::{self, Texts};
use super::{DataRef, DataSpec, Opening, PreprocessSpec};
use crate::Error;
use mercer_data::{
    ClassOrder, Columns, Dataset, Fingerprint, Format, Labels, Preprocess, Role, TextColumn, Used, open_inputs,
    open_labels, open_text,
};
use mercer_net::Network;
use mercer_net::network::{Input, TrainedOn};
use serde::Deserialize;
use serde_json::Value;

/// Opened data: one set per input of a network, all with the same samples.
#[derive(Debug)]
pub struct Samples {
    /// In the order of the network's inputs.
    pub inputs: Vec<Dataset>,
    /// The columns of inputs that come from tables; other tables are matched to them.
    pub columns: Vec<Option<Columns>>,
    /// Their labels.
    pub labels: Option<Labels>,
    /// How many there are.
    pub n_samples: usize,
}

impl Samples {
    /// Opens the data of these options for the inputs of this network.
    pub fn open(options: &DataSpec, network: &Network, opening: Opening<'_>) -> Result<Self, Error> {
        Self::given("data", &options.data, options, network, &[], opening)
    }

    /// Opens the sources of another flag, with the labels and the preprocessing of the options. Tables are matched to
    /// the columns of `like` or, if that has none, to those that the network was trained on.
    pub fn given(
        setting: &str,
        data: &[DataRef],
        options: &DataSpec,
        network: &Network,
        like: &[Option<Columns>],
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let inputs = network.inputs();
        let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let like = if like.iter().any(Option::is_some) { like } else { &network.trained_on().columns };
        let used = used(options)?;
        let bound = match decoding::texts((setting, data), &options.decoding, network, (&used, like), opening)? {
            None => assign(setting, &names, data, opening.inputs)?,
            Some(Texts { mut bound, left }) => {
                let free: Vec<usize> = (0..names.len()).filter(|&at| bound[at].is_none()).collect();
                let others: Vec<&str> = free.iter().map(|&at| names[at]).collect();
                for (at, one) in free.into_iter().zip(assign(setting, &others, &left, opening.inputs)?) {
                    bound[at] = Some(one);
                }
                bound.into_iter().flatten().collect()
            }
        };
        let takes = |input: &Input| {
            let channels = match input.sample().as_deref() {
                Some(&[Some(channels @ (1 | 3)), _, _]) => Some(channels),
                _ => None,
            };
            Takes { integers: input.is_integer(), channels }
        };
        let takes: Vec<Takes> = inputs.iter().map(takes).collect();
        Self::collect(bound, &takes, options, like, opening)
    }

    /// Opens one set of samples, without a network.
    pub fn plain(
        setting: &str,
        data: &[DataRef],
        options: &DataSpec,
        like: &[Option<Columns>],
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let [one] = data else {
            return Err(Error::new(format!("‹{setting}› is given {} times; there is one set of samples", data.len()))
                .hint(format!("‹{setting}› FILE[:KEY]")));
        };
        let bound = match one {
            DataRef::File(text) => {
                let source = text.parse().map_err(|error| Error::new(format!("‹{setting}› {text}: {error}")))?;
                Bound::File(source)
            }
            DataRef::Given { given } => Bound::Given(Box::new(opening.inputs.array(given)?.clone())),
        };
        options.decoding.check_without_network()?;
        Self::collect(vec![bound], &[Takes::default()], options, like, opening)
    }

    /// Opens a source per input; integers and tokens are not preprocessed.
    fn collect(
        bound: Vec<Bound>,
        takes: &[Takes],
        options: &DataSpec,
        like: &[Option<Columns>],
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let used = used(options)?;
        let (mut sets, mut columns) = (Vec::new(), Vec::new());
        for (at, one) in bound.into_iter().enumerate() {
            match one {
                Bound::File(source) if source.path().is_dir() => {
                    let like = like.get(at).and_then(Option::as_ref);
                    let channels = takes.get(at).and_then(|takes| takes.channels);
                    let (set, own) = options.decoding.images(&source, channels, like, opening)?;
                    sets.push(set);
                    columns.push(Some(own));
                }
                Bound::Decoded(made) => {
                    sets.push(made.0);
                    columns.push(Some(made.1));
                }
                Bound::File(source) => {
                    // What is known about texts or images says nothing about numbers.
                    let like = like.get(at).cloned().flatten().filter(|like| like.reading.is_none());
                    let opened = open_inputs(&[source], &used, &[like])?;
                    opened.notes.iter().for_each(|note| opening.context.note(note));
                    sets.extend(opened.sets);
                    columns.extend(opened.columns);
                }
                Bound::Given(set) => {
                    sets.push(*set);
                    columns.push(None);
                }
            }
        }
        check_counts(&sets)?;
        let labels = match (&options.labels, sets.first()) {
            (Some(labels), Some(samples)) => {
                let set = match labels.source()? {
                    Some(source) => open_labels(&source, samples)?,
                    None => labels.open(opening.inputs)?,
                };
                let labels = Labels::read(&set)?;
                Some(match options.class_order()? {
                    Some(order) => labels.ordered(set.place(), &order)?,
                    None => labels,
                })
            }
            _ => None,
        };
        let through =
            |(at, (set, takes)): (usize, (Dataset, &Takes))| match takes.integers || set.format() == Format::Text {
                true => Ok(set),
                false => options.preprocess.apply(at, set, opening.context),
            };
        let inputs = sets.into_iter().zip(takes).enumerate().map(through);
        let inputs: Vec<Dataset> = inputs.collect::<Result<_, _>>()?;
        let n_samples = inputs.first().map_or(0, Dataset::n_samples);
        if n_samples == 0 {
            let place = inputs.first().map_or("", Dataset::place);
            return Err(Error::new(format!("{place}: there are no samples in it")));
        }
        Ok(Self { inputs, columns, labels, n_samples })
    }

    /// Labels as indices of the outputs at a node, in the order of the network or the user. A single output has two
    /// classes, and without names it says nothing about their order.
    pub fn in_order_of(
        mut self,
        setting: &str,
        network: &Network,
        at: Option<&str>,
        options: &DataSpec,
    ) -> Result<Self, Error> {
        let Some(labels) = &self.labels else { return Ok(self) };
        // Errors in the shapes or the node are reported where these are needed.
        let Ok(graph) = network.graph(&self.shapes()) else { return Ok(self) };
        let named = at.and_then(|name| graph.find(name)).or_else(|| graph.outputs().first().map(|&(_, id)| id));
        let n_outputs = named.map(|id| graph.value(id).meta.numel());
        let outputs = n_outputs.filter(|&outputs| outputs > 1);
        let given = options.class_names()?;
        let order = ClassOrder::resolve(given.as_deref(), network.trained_on().classes.as_deref(), outputs)?;
        let is_pair = matches!(&order, Some(ClassOrder::Names(names)) if names.len() == 2) && n_outputs == Some(1);
        if let Some(order) = order.filter(|_| outputs.is_some() || is_pair) {
            let labels_as_named = options.labels.as_ref().map(ToString::to_string).unwrap_or_default();
            let place = format!("‹{setting}› {labels_as_named}");
            self.labels = Some(labels.ordered(&place, &order)?);
        }
        Ok(self)
    }

    /// Notes if image bytes are passed to the network unscaled.
    pub fn hint(&self, network: Option<&Network>, opening: Opening<'_>) -> Result<(), Error> {
        let hint = network.map(|network| network.scale_hint(&self.inputs)).transpose()?.flatten();
        hint.iter().for_each(|hint| opening.context.note(hint));
        Ok(())
    }

    /// The preprocessing of each input, in the form that a folder stores.
    pub fn preprocess_note(&self) -> Result<Value, Error> {
        let steps: Vec<&Preprocess> = self.inputs.iter().map(Dataset::preprocess).collect();
        serde_json::to_value(steps).map_err(|error| Error::new(format!("preprocessing cannot be written: {error}")))
    }

    /// The columns of the inputs, in the form that a folder stores; none if no input comes from a table.
    pub fn columns_note(&self) -> Result<Option<Value>, Error> {
        if self.columns.iter().all(Option::is_none) {
            return Ok(None);
        }
        let written = serde_json::to_value(&self.columns);
        written.map(Some).map_err(|error| Error::new(format!("the columns cannot be written: {error}")))
    }

    /// Reads the columns written by [`columns_note`](Self::columns_note).
    pub fn columns_of_note(note: Option<&Value>) -> Result<Vec<Option<Columns>>, Error> {
        let Some(note) = note else { return Ok(Vec::new()) };
        let broken = |error| Error::new(format!("the columns of the folder cannot be read: {error}"));
        Vec::deserialize(note).map_err(broken)
    }

    /// The training metadata for a network that takes these samples.
    pub fn trained_on(&self) -> TrainedOn {
        let classes = match &self.labels {
            Some(Labels::Classes(classes)) if !classes.are_numbered() => Some(classes.names().to_vec()),
            _ => None,
        };
        let preprocess = Some(self.inputs.iter().map(|input| input.preprocess().clone()).collect());
        TrainedOn { classes, columns: self.columns.clone(), preprocess }
    }

    /// The same samples with the preprocessing of a folder. If the user asks for other steps, those are used, with a
    /// note.
    pub fn preprocessed_as(
        mut self,
        asked: &PreprocessSpec,
        stored: Option<&Value>,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        asked.check_for_saved()?;
        let Some(stored) = stored else { return Ok(self) };
        if asked.is_given() {
            if self.preprocess_note()? != *stored {
                opening.context.note("the preprocessing flags replace the preprocessing of the folder");
            }
            return Ok(self);
        }
        let broken = |reason: String| Error::new(format!("the preprocessing of the folder cannot be read: {reason}"));
        let steps = Vec::<Preprocess>::deserialize(stored).map_err(|error| broken(error.to_string()))?;
        if steps.len() != self.inputs.len() {
            return Err(broken(format!("it is of {} inputs", steps.len())));
        }
        let through = |(input, steps): (Dataset, Preprocess)| {
            let place = input.place().to_owned();
            input.with_preprocess(steps).map_err(|error| {
                Error::new(format!("{place}: {error}"))
                    .hint("the folder's preprocessing does not suit these samples; ‹scale›, ‹layout› … replace it")
            })
        };
        self.inputs = self.inputs.into_iter().zip(steps).map(through).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The column of texts behind the tokens, if the samples are texts; `options` are those that they were opened with.
    pub(crate) fn texts(&self, options: &DataSpec) -> Option<TextColumn> {
        let at = self.inputs.iter().position(|input| input.format() == Format::Text)?;
        let source = self.inputs[at].place().parse().ok()?;
        let known = self.columns.get(at).and_then(Option::as_ref);
        open_text(&source, &used(options).ok()?, known).ok()
    }

    /// A fingerprint of the samples as they are read.
    pub fn fingerprint(&self) -> Result<String, Error> {
        fingerprint_of_inputs(&self.inputs)
    }

    /// A fingerprint of the labels, if there are any.
    pub fn labels_fingerprint(&self) -> Option<String> {
        self.labels.as_ref().map(fingerprint_of_labels)
    }

    /// The files.
    pub fn places(&self) -> String {
        self.inputs.iter().map(Dataset::place).collect::<Vec<_>>().join(", ")
    }

    /// The shape of one sample, per input.
    pub fn shapes(&self) -> Vec<Vec<usize>> {
        self.inputs.iter().map(|dataset| dataset.sample_shape().to_vec()).collect()
    }
}

/// A fingerprint of the samples of all inputs.
pub(crate) fn fingerprint_of_inputs(inputs: &[Dataset]) -> Result<String, Error> {
    Ok(inputs.iter().map(Dataset::fingerprint).collect::<Result<Vec<_>, _>>()?.join(" "))
}

/// A fingerprint of classes with their names, or of numbers.
pub(crate) fn fingerprint_of_labels(labels: &Labels) -> String {
    let mut fingerprint = Fingerprint::new();
    match labels {
        Labels::Classes(classes) => {
            fingerprint.update_count(classes.names().len());
            for name in classes.names() {
                fingerprint.update_count(name.len());
                fingerprint.update(name.as_bytes());
            }
            classes.indices().iter().for_each(|&index| fingerprint.update_count(index));
        }
        Labels::Targets(targets) => {
            fingerprint.update_count(targets.ncols());
            targets.iter().for_each(|number| fingerprint.update(&number.to_le_bytes()));
        }
    }
    fingerprint.finish()
}

/// What an input takes.
#[derive(Clone, Copy, Default)]
struct Takes {
    integers: bool,
    /// The channels of images, if it is made for images.
    channels: Option<usize>,
}

/// The columns that are not inputs.
fn used(options: &DataSpec) -> Result<Vec<Used>, Error> {
    let mut used = Vec::new();
    for other in options.labels.iter().chain(&options.used) {
        used.extend(other.source()?.map(|source| Used { role: Role::Label, source }));
    }
    Ok(used)
}

/// All inputs have the same samples.
fn check_counts(sets: &[Dataset]) -> Result<(), Error> {
    for pair in sets.windows(2) {
        let [first, other] = [&pair[0], &pair[1]];
        if first.n_samples() != other.n_samples() {
            return Err(mercer_data::DataError::Samples {
                first: first.place().to_owned(),
                n_first: first.n_samples(),
                other: other.place().to_owned(),
                n_other: other.n_samples(),
            }
            .into());
        }
    }
    Ok(())
}
