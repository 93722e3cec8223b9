//! Data and labels for a network.

use super::PreprocessOptions;
use super::assign::assign;
use crate::console::Console;
use crate::failure::Failure;
use mercer::data::{
    ClassOrder, Columns, Dataset, Labels, Preprocess, Role, Source, Used, open_inputs, open_labels, parse_classes,
};
use mercer::net::Network;
use mercer::net::network::TrainedOn;
use serde::Deserialize;
use serde_json::Value;

/// What to run on.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataOptions {
    /// The samples; with several inputs once per input, as in --data input_ids=tokens.npz:ids
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", required = true)]
    pub(crate) data: Vec<String>,

    /// What the samples show: one class per sample. A column of the data that is given here is no input
    #[arg(long, value_name = "FILE[:KEY]")]
    pub(crate) labels: Option<String>,

    #[command(flatten)]
    pub(crate) classes: ClassOptions,

    #[command(flatten)]
    pub(crate) preprocess: PreprocessOptions,

    /// What is read elsewhere, and whose columns are no inputs either.
    #[arg(skip)]
    pub(crate) used: Vec<String>,
}

/// Which class is which output.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ClassOptions {
    /// The names of the classes in the order of the outputs: a file with a name per line, or a list as in cat,dog [default: what the network or machine was trained with]
    #[arg(long, value_name = "FILE|A,B,…", allow_hyphen_values = true, help_heading = "Data")]
    classes: Option<String>,
}

impl ClassOptions {
    /// The names, if the user gives any.
    pub(crate) fn names(&self) -> Result<Option<Vec<String>>, Failure> {
        let parsed = self.classes.as_deref().map(parse_classes).transpose();
        parsed.map_err(|error| Failure::new(format!("--classes {error}")))
    }

    /// The order that they give.
    pub(crate) fn order(&self) -> Result<Option<ClassOrder>, Failure> {
        Ok(self.names()?.map(ClassOrder::Names))
    }
}

/// Open data, one set per input of a network, all of the same samples.
#[derive(Debug)]
pub(crate) struct Samples {
    /// In the order of the network's inputs.
    pub(crate) inputs: Vec<Dataset>,
    /// The columns of the inputs that are from tables; other tables are matched to them.
    pub(crate) columns: Vec<Option<Columns>>,
    pub(crate) labels: Option<Labels>,
    pub(crate) n_samples: usize,
}

impl Samples {
    /// Opens what the options name for the inputs of this network.
    pub(crate) fn open(options: &DataOptions, network: &Network, console: &Console) -> Result<Self, Failure> {
        Self::given("--data", &options.data, options, network, &[], console)
    }

    /// Opens what the user wrote after another flag, with the labels and the preprocessing of the options. Tables are matched to the
    /// columns of `like` or, if that has none, to those that the network was trained on.
    pub(crate) fn given(
        flag: &str,
        texts: &[String],
        options: &DataOptions,
        network: &Network,
        like: &[Option<Columns>],
        console: &Console,
    ) -> Result<Self, Failure> {
        let inputs = network.inputs();
        let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let sources = assign(flag, &names, texts)?;
        let like = if like.iter().any(Option::is_some) { like } else { &network.trained_on().columns };
        let integers: Vec<bool> = inputs.iter().map(|input| input.is_integer()).collect();
        Self::of(&sources, &integers, options, like, console)
    }

    /// Opens one set of samples for what has no network.
    pub(crate) fn plain(
        flag: &str,
        texts: &[String],
        options: &DataOptions,
        like: &[Option<Columns>],
        console: &Console,
    ) -> Result<Self, Failure> {
        let [text] = texts else {
            return Err(Failure::new(format!("{flag} is given {} times; there is one set of samples", texts.len()))
                .hint(format!("{flag} FILE[:KEY]")));
        };
        let source = text.parse::<Source>().map_err(|error| Failure::new(format!("{flag} {text}: {error}")))?;
        Self::of(&[source], &[false], options, like, console)
    }

    /// Opens a source per input; integers are not preprocessed.
    fn of(
        sources: &[Source],
        integers: &[bool],
        options: &DataOptions,
        like: &[Option<Columns>],
        console: &Console,
    ) -> Result<Self, Failure> {
        let used = options.labels.iter().chain(&options.used);
        let used = used.map(|text| Ok(Used { role: Role::Label, source: text.parse()? }));
        let opened = open_inputs(sources, &used.collect::<Result<Vec<_>, Failure>>()?, like)?;
        opened.notes.iter().for_each(|note| console.note(&format!("note: {note}")));
        let labels = match (&options.labels, opened.sets.first()) {
            (Some(text), Some(samples)) => {
                let set = open_labels(&text.parse()?, samples)?;
                let labels = Labels::read(&set)?;
                Some(match options.classes.order()? {
                    Some(order) => labels.ordered(set.place(), &order)?,
                    None => labels,
                })
            }
            _ => None,
        };
        let through = |(set, integer): (Dataset, &bool)| if *integer { Ok(set) } else { options.preprocess.apply(set) };
        let inputs: Vec<Dataset> = opened.sets.into_iter().zip(integers).map(through).collect::<Result<_, _>>()?;
        let n_samples = inputs.first().map_or(0, Dataset::n_samples);
        if n_samples == 0 {
            let place = inputs.first().map_or("", Dataset::place);
            return Err(Failure::new(format!("{place}: there are no samples in it")));
        }
        Ok(Self { inputs, columns: opened.columns, labels, n_samples })
    }

    /// Labels as numbers of the outputs at a node, in the order that the network knows or the user gives; one output tells
    /// no classes apart.
    pub(crate) fn in_order_of(
        mut self,
        flag: &str,
        network: &Network,
        at: Option<&str>,
        options: &DataOptions,
    ) -> Result<Self, Failure> {
        let Some(labels) = &self.labels else { return Ok(self) };
        // Whatever is wrong with the shapes or the node is told where they are needed.
        let Ok(graph) = network.graph(&self.shapes()) else { return Ok(self) };
        let named = at.and_then(|name| graph.find(name)).or_else(|| graph.outputs().first().map(|&(_, id)| id));
        let outputs = named.map(|id| graph.value(id).meta.numel()).filter(|&outputs| outputs > 1);
        let given = options.classes.names()?;
        let order = ClassOrder::of(given.as_deref(), network.trained_on().classes.as_deref(), outputs)?;
        if let (Some(order), Some(_)) = (order, outputs) {
            let place = format!("{flag} {}", options.labels.as_deref().unwrap_or_default());
            self.labels = Some(labels.ordered(&place, &order)?);
        }
        Ok(self)
    }

    /// Says that bytes of images go in unscaled, if they do.
    pub(crate) fn hint(&self, network: Option<&Network>, console: &Console) -> Result<(), Failure> {
        let hint = network.map(|network| network.scale_hint(&self.inputs)).transpose()?.flatten();
        hint.iter().for_each(|hint| console.note(&format!("hint: {hint}")));
        Ok(())
    }

    /// The steps that each input goes through, as a folder keeps them.
    pub(crate) fn preprocess_note(&self) -> Result<Value, Failure> {
        let steps: Vec<&Preprocess> = self.inputs.iter().map(Dataset::preprocess).collect();
        serde_json::to_value(steps).map_err(|error| Failure::new(format!("preprocessing cannot be written: {error}")))
    }

    /// The columns of the inputs, as a folder keeps them; nothing if none are from a table.
    pub(crate) fn columns_note(&self) -> Result<Option<Value>, Failure> {
        if self.columns.iter().all(Option::is_none) {
            return Ok(None);
        }
        let written = serde_json::to_value(&self.columns);
        written.map(Some).map_err(|error| Failure::new(format!("the columns cannot be written: {error}")))
    }

    /// What [`columns_note`](Self::columns_note) has kept.
    pub(crate) fn columns_of_note(note: Option<&Value>) -> Result<Vec<Option<Columns>>, Failure> {
        let Some(note) = note else { return Ok(Vec::new()) };
        let broken = |error| Failure::new(format!("the columns of the folder cannot be read: {error}"));
        Vec::deserialize(note).map_err(broken)
    }

    /// What a network that takes these samples keeps about them.
    pub(crate) fn trained_on(&self) -> TrainedOn {
        let classes = match &self.labels {
            Some(Labels::Classes(classes)) if !classes.are_numbered() => Some(classes.names().to_vec()),
            _ => None,
        };
        let preprocess = Some(self.inputs.iter().map(|input| input.preprocess().clone()).collect());
        TrainedOn { classes, columns: self.columns.clone(), preprocess }
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
