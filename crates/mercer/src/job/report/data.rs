//! Data that a run named, if they are still there: for pictures and texts of samples.
//!
//! They are opened as the run opened them, with its network, and shown only if they still hold the numbers that it saw.
//! Otherwise the page says why they are not shown.

use super::figures::one;
use super::run::Run;
use super::section::once;
use crate::Error;
use crate::job::explain::known_of;
use crate::job::surrogate::Ids;
use crate::spec::{
    DataRef, DataSpec, Inputs, KernelSpec, NetworkSource, Opening, ParameterSpec, Samples, open_network,
};
use mercer_data::{ClassOrder, Classes, Dataset, Format, Labels, Preprocess, TextColumn, open_labels};
use mercer_net::train::files as training;
use mercer_report::Picture;
use mercer_run::Context;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

/// The longest text of a sample that a page shows, in characters.
const TEXT: usize = 600;

/// Data sets that are kept open.
const OPEN: usize = 8;

/// The samples of runs, each opened once, or why they cannot be shown.
pub(super) struct Library {
    context: Context,
    known: RefCell<BTreeMap<String, Result<Rc<Seen>, String>>>,
}

/// Samples of a run, with their classes.
pub(super) struct Seen {
    samples: Samples,
    classes: Option<Classes>,
    image: Option<Image>,
    texts: Option<TextColumn>,
}

/// The input that looks like images, as it is stored.
struct Image {
    stored: Dataset,
    /// Channels, height, width.
    shape: [usize; 3],
    channels_last: bool,
}

/// What a run read under a setting.
#[derive(Debug)]
struct Asked {
    print: String,
    files: Vec<DataRef>,
    labels: Option<DataRef>,
    /// How, and for the training samples also what.
    spec: DataSpec,
    network: Option<NetworkFile>,
    /// A folder that samples are read like.
    from: Option<String>,
}

/// Where the network of a run is described.
#[derive(Debug)]
enum NetworkFile {
    File(PathBuf, Box<ParameterSpec>),
    Kernel(Box<KernelSpec>),
}

impl Library {
    pub(super) fn new(context: &Context) -> Self {
        Self { context: context.quiet(), known: RefCell::default() }
    }

    /// The samples that a setting of a run named, if their files hold the same numbers as then.
    ///
    /// # Errors
    /// Why they are not shown. A page is made without them.
    pub(super) fn of(&self, run: &Run, setting: &str) -> Result<Rc<Seen>, String> {
        let asked = Asked::of(run, setting)?;
        let key = format!("{setting} {asked:?}");
        if let Some(found) = self.known.borrow().get(&key) {
            return found.clone();
        }
        let found = self.open(run, setting, &asked).map(Rc::new);
        let mut known = self.known.borrow_mut();
        if known.len() >= OPEN {
            known.pop_first();
        }
        known.insert(key, found.clone());
        found
    }

    fn open(&self, run: &Run, setting: &str, asked: &Asked) -> Result<Seen, String> {
        let inputs = Inputs::none();
        let opening = Opening { inputs: &inputs, context: &self.context };
        let why = |error: Error| plain(&error);
        // Labels and names may be columns of the same table; they are no inputs.
        let mut spec = asked.spec.reading(&asked.files, None);
        let own = if setting == "data" { &asked.spec.used[..] } else { &[] };
        spec.used = asked.labels.iter().chain(own).cloned().collect();
        let samples = match (&asked.from, setting) {
            (Some(from), _) if run.job() == "explain" => {
                let known = known_of(from.as_ref(), opening).map_err(why)?;
                match setting {
                    "data" => known.samples,
                    _ => known.other(setting, &asked.files, None, &spec, None, opening).map_err(why)?.samples,
                }
            }
            _ => {
                let train = if setting == "data" { None } else { self.of(run, "data").ok() };
                let spec = train.as_ref().map_or(spec.clone(), |train| spec.clone().learnt_from(&train.samples));
                let like = train.as_ref().map_or(&[][..], |train| &train.samples.columns);
                asked.network()?.samples(setting, &asked.files, &spec, like, opening).map_err(why)?
            }
        };
        if samples.fingerprint().map_err(why)? != asked.print {
            let read = asked.from.as_ref().map_or(String::new(), |from| format!(", or were read as {from} says"));
            return Err(format!("{} no longer holds the numbers that the run saw{read}", once(&samples.places())));
        }
        let classes = match &samples.labels {
            // Of a saved explanation.
            Some(Labels::Classes(classes)) => Some(classes.clone()),
            _ => asked.classes(&samples),
        };
        let image = samples.inputs.iter().find_map(Image::of);
        let texts = samples.texts(&spec);
        Ok(Seen { samples, classes, image, texts })
    }
}

impl Asked {
    fn of(run: &Run, setting: &str) -> Result<Self, String> {
        let job = &run.written.job;
        let print = run.fingerprint(setting).ok_or("the record does not name them")?.to_owned();
        let mut spec: DataSpec = match first(job, &["/train", "/data", "/reference"]).filter(|spec| spec.is_object()) {
            Some(spec) => parsed(spec).ok_or("this version cannot read how they were opened")?,
            None => DataSpec::default(),
        };
        spec.used.extend(first(job, &["/ids"]).and_then(parsed::<DataRef>));
        let (files, labels): (&[&str], &[&str]) = match setting {
            "test" => (&["/test", "/eval"], &["/test_labels", "/eval_labels"]),
            "eval-data" => (&["/eval_data"], &["/eval_labels"]),
            "validation" => (&["/validation"], &["/validation_labels"]),
            "ood" => (&["/ood"], &[]),
            "against" => (&["/against"], &[]),
            _ => (&[], &[]),
        };
        let (files, labels) = match setting {
            "data" => (spec.data.clone(), spec.labels.clone()),
            _ => {
                let files = first(job, files).map(|value| match value {
                    Value::Array(all) => all.iter().map(parsed).collect::<Option<Vec<DataRef>>>(),
                    one => parsed(one).map(|one| vec![one]),
                });
                (files.flatten().unwrap_or_default(), first(job, labels).and_then(parsed))
            }
        };
        let from = job["from"].as_str().map(str::to_owned);
        if files.is_empty() && from.is_none() {
            return Err("the record names no file".to_owned());
        }
        if files.iter().any(|file| matches!(file, DataRef::Given { .. })) {
            return Err("they were arrays of the program that ran it".to_owned());
        }
        Ok(Self { print, files, labels, spec, network: NetworkFile::of(run), from })
    }

    fn network(&self) -> Result<NetworkSource, String> {
        let found = match &self.network {
            None => Ok(NetworkSource::Absent),
            Some(NetworkFile::File(path, parameters)) => open_network(path, parameters).map(NetworkSource::Trained),
            Some(NetworkFile::Kernel(spec)) => spec.open(),
        };
        found.map_err(|error| format!("the network that read them: {}", plain(&error)))
    }

    /// The classes of the samples, if there are labels that can be read.
    fn classes(&self, samples: &Samples) -> Option<Classes> {
        let source = self.labels.as_ref()?.source().ok()??;
        let set = open_labels(&source, samples.inputs.first()?).ok()?;
        let classes = Classes::read(&set).ok()?;
        match self.spec.class_names().ok().flatten() {
            Some(names) => classes.clone().ordered(set.place(), &ClassOrder::Names(names)).ok().or(Some(classes)),
            None => Some(classes),
        }
    }
}

impl NetworkFile {
    fn of(run: &Run) -> Option<Self> {
        let job = &run.written.job;
        if run.job() == "train" {
            let path = run.path.join(training::MODEL);
            return run.has(training::MODEL).then(|| Self::File(path, Box::default()));
        }
        if let Some(net) = job["net"].as_str() {
            let parameters = parsed(&job["parameters"]).unwrap_or_default();
            return Some(Self::File(net.into(), Box::new(parameters)));
        }
        let kernel = first(job, &["/kernel", "/of/kernel"]).filter(|kernel| kernel.is_object());
        let spec: KernelSpec = kernel.and_then(parsed)?;
        spec.file().is_some().then(|| Self::Kernel(Box::new(spec)))
    }
}

impl Image {
    /// An input whose samples look like images.
    fn of(input: &Dataset) -> Option<Self> {
        if input.format() == Format::Text {
            return None;
        }
        let stored = input.clone().with_preprocess(Preprocess::new()).ok()?;
        let is_image = |channels: usize, height: usize, width: usize| {
            matches!(channels, 1 | 3) && height > 1 && width > 1 && height.max(width) < 1 << 16
        };
        let (own, read) = (stored.sample_shape().to_vec(), input.sample_shape());
        let (shape, channels_last) = match (&own[..], read) {
            (&[h, w, c], &[c2, h2, w2]) if [c, h, w] == [c2, h2, w2] && own != read && is_image(c, h, w) => {
                ([c, h, w], true)
            }
            (&[c, h, w], _) if is_image(c, h, w) => ([c, h, w], false),
            (&[h, w], _) if h > 3 && w > 3 => ([1, h, w], false),
            // Rows that the preprocessing makes images of.
            (_, &[c, h, w]) if is_image(c, h, w) => {
                return Some(Self { stored: input.clone(), shape: [c, h, w], channels_last: false });
            }
            _ => return None,
        };
        Some(Self { stored, shape, channels_last })
    }

    fn picture(&self, row: usize) -> Option<Picture> {
        let values = one(&self.stored, row).ok()?;
        let [channels, height, width] = self.shape;
        let range = (self.stored.format() == Format::Images).then_some((0.0, 255.0));
        if !self.channels_last {
            return Picture::from_chw(values, self.shape, range);
        }
        let plane = height * width;
        let moved = (0..channels * plane).map(|at| values.get(at % plane * channels + at / plane).copied());
        Picture::from_chw(moved.collect::<Option<Vec<f64>>>()?, self.shape, range)
    }
}

impl Seen {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.samples.n_samples
    }

    /// The sizes and the type of a sample.
    pub(super) fn about(&self) -> String {
        let each = self.samples.inputs.iter().map(|input| match input.format() {
            Format::Text => format!("{} tokens", input.sample_shape().iter().product::<usize>()),
            _ => format!("{} {}", crate::text::shape(input.sample_shape()), input.dtype()),
        });
        let mut each: Vec<String> = each.collect();
        each.dedup();
        each.join(" · ")
    }

    /// The names of the classes.
    pub(super) fn class_names(&self) -> Option<&[String]> {
        self.classes.as_ref().map(Classes::names)
    }

    /// The samples of each class.
    pub(super) fn class_sizes(&self) -> Option<Vec<usize>> {
        self.classes.as_ref().map(Classes::counts)
    }

    /// The class of a sample.
    pub(super) fn class(&self, row: usize) -> Option<&str> {
        let classes = self.classes.as_ref()?;
        classes.names().get(*classes.indices().get(row)?).map(String::as_str)
    }

    /// A picture of a sample, if it looks like one.
    pub(super) fn picture(&self, row: usize) -> Option<Picture> {
        self.image.as_ref().filter(|_| row < self.count())?.picture(row)
    }

    /// The texts of some samples, if they are texts.
    pub(super) fn texts(&self, rows: &BTreeSet<usize>) -> BTreeMap<usize, String> {
        let texts = self.texts.as_ref().filter(|_| !rows.is_empty());
        texts.and_then(|texts| texts.some(rows, TEXT).ok()).unwrap_or_default()
    }
}

/// An error in a page: settings have their plain names.
pub(super) fn plain(error: &Error) -> String {
    error.message().replace(['‹', '›'], "")
}

fn first<'a>(job: &'a Value, pointers: &[&str]) -> Option<&'a Value> {
    pointers.iter().find_map(|pointer| job.pointer(pointer)).filter(|value| !value.is_null())
}

fn parsed<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

/// The rows of training samples by their names.
pub(super) struct Rows(Option<HashMap<String, usize>>);

impl Rows {
    /// By the ids of the run, or by those that the samples have: the files of a folder of images.
    pub(super) fn of(run: &Run, n_samples: usize, seen: Option<&Seen>, context: &Context) -> Self {
        let ids = run.written.job["ids"].clone();
        if ids.is_null() {
            let names = seen.and_then(|seen| seen.samples.inputs.first()?.row_names());
            return Self(names.map(|names| Ids::known(Some(names)).rows(n_samples)));
        }
        let inputs = Inputs::none();
        let open = |ids: Value| -> Result<Ids, Error> {
            let reference = serde_json::from_value::<DataRef>(ids).map_err(|error| Error::new(error.to_string()))?;
            Ids::open("ids", Some(&reference), n_samples, Opening { inputs: &inputs, context })
        };
        Self(Some(open(ids).map(|ids| ids.rows(n_samples)).unwrap_or_default()))
    }

    /// The row of a name: the name itself, if there are no others.
    pub(super) fn row(&self, name: &str) -> Option<usize> {
        match &self.0 {
            None => name.parse().ok(),
            Some(rows) => rows.get(name).copied(),
        }
    }
}
