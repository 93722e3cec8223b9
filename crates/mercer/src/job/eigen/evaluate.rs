//! Functions that were saved, on new samples.

use super::results::figure_of;
use super::{EigenFindings, codes, input, place};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::{Destination, Job, Opened, Outcome, Stopwatch};
use crate::spec::{DataSpec, Opening, Precision, Samples};
use mercer_data::Columns;
use mercer_data::folder::Folder;
use mercer_kernel::{Real, SavedKernel};
use mercer_net::Network;
use mercer_run::Context;
use mercer_spectral::{BEFORE, EigenDescription, Eigenfunctions, KIND};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The functions of a folder on new samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluateJob {
    /// The folder; `DIR/before` are the functions before their finish.
    pub functions: PathBuf,
    /// The samples, with what they show.
    pub eval: DataSpec,
    /// Samples whose classes are known: codes of several lengths are scored by looking these up.
    #[serde(default)]
    pub data: DataSpec,
    /// The scalar of the work; that of the folder if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
}

/// What evaluating would do.
#[derive(Clone, Debug, Serialize)]
pub struct EvaluatePlan {
    /// The scalar of the work.
    pub precision: Precision,
    /// How many functions there are.
    pub functions: usize,
    /// Samples to evaluate.
    pub samples: usize,
}

/// Functions of a folder, with what is needed to read samples as those that they were found from.
#[derive(Debug)]
pub struct SavedFunctions<T: Real> {
    /// The functions.
    pub functions: Eigenfunctions<T>,
    network: Option<Network>,
    columns: Vec<Option<Columns>>,
    fingerprint: String,
}

/// The folder that functions are in, and whether those before their finish are meant.
fn located(folder: &Path) -> (&Path, bool) {
    match folder.parent() {
        Some(outer) if folder.file_name().is_some_and(|name| name == BEFORE) && !folder.exists() => (outer, true),
        _ => (folder, false),
    }
}

/// The precision of functions that were saved.
///
/// # Errors
/// For a folder that holds none.
pub fn saved_precision(folder: &Path) -> Result<Precision, Error> {
    Ok(precision_of(&EigenDescription::read(located(folder).0)?))
}

/// The precision that a description tells.
pub(crate) fn precision_of(description: &EigenDescription) -> Precision {
    if description.precision == "f32" { Precision::F32 } else { Precision::F64 }
}

impl<T: Real> SavedFunctions<T> {
    /// A digest of what was saved.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Opens the functions of a folder, or of its part `before`.
    ///
    /// # Errors
    /// For a folder that holds no eigenfunctions, or damaged ones.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (path, before) = located(folder);
        Self::read(&Folder::open(path, Some(KIND))?, before)
    }

    /// The functions of an opened folder, or what they were before their finish.
    pub(crate) fn read(folder: &Folder, before: bool) -> Result<Self, Error> {
        let (objects, content): (_, Value) = (folder.objects(), folder.content()?);
        let functions = match (before, content.get(BEFORE)) {
            (false, _) => Eigenfunctions::read(&objects, &content, None)?,
            (true, Some(content)) => Eigenfunctions::read(&objects.part(BEFORE), content, None)?,
            (true, None) => return Err(Error::new(format!("{}: these functions had no finish", folder.place()))),
        };
        let fingerprint = folder.fingerprint();
        let network = functions.saved_kernel().map(SavedKernel::open).transpose()?.flatten();
        let columns = Samples::columns_of_note(functions.notes().get("columns"))?;
        Ok(Self { functions, network, columns, fingerprint })
    }

    /// Opens samples, which go through the preprocessing of the folder unless another one is asked for.
    ///
    /// # Errors
    /// For samples that cannot be read, or do not suit.
    pub fn samples(&self, setting: &str, spec: &DataSpec, opening: Opening<'_>) -> Result<Samples, Error> {
        let samples = match &self.network {
            Some(network) => Samples::given(setting, &spec.data, spec, network, &self.columns, opening)?,
            None => Samples::plain(setting, &spec.data, spec, &self.columns, opening)?,
        };
        let stored = self.functions.notes().get("preprocess");
        let samples = samples.preprocessed_as(&spec.preprocess, stored, opening)?;
        samples.hint(self.network.as_ref(), opening)?;
        Ok(samples)
    }

    /// The functions of samples: a row per sample, or per sample and output.
    ///
    /// # Errors
    /// For samples of another shape.
    pub fn evaluate(&self, samples: &Samples, context: &Context) -> Result<Array2<T>, Error> {
        Ok(self.functions.eval_data(&samples.inputs, context)?)
    }
}

impl EvaluateJob {
    fn open_as<T: Real>(&self, destination: &Destination, opening: Opening<'_>) -> Result<Typed<T>, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        let saved = SavedFunctions::<T>::open(&self.functions)?;
        let eval = saved.samples("eval", &self.eval, opening)?;
        let known = match &self.data.data[..] {
            [] => None,
            _ => Some(saved.samples("data", &self.data, opening)?),
        };
        let folder = match destination.dry_run {
            true => None,
            false => Some(place::create(destination)?),
        };
        Ok(Typed { job: self.clone(), folder, saved, eval, known, watch })
    }
}

impl Job for EvaluateJob {
    const NAME: &'static str = "evaluate";

    type Opened = OpenedEvaluation;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedEvaluation, Error> {
        if self.eval.data.is_empty() {
            return Err(Error::new("there are no samples to evaluate").hint("‹eval› FILE[:KEY]"));
        }
        if let Some(path) = &destination.path
            && let (Ok(from), Ok(to)) = (self.functions.canonicalize(), path.canonicalize())
            && from == to
        {
            return Err(Error::new("‹out›: these are the functions that ‹load› reads").hint("name another folder"));
        }
        let precision = match self.precision {
            Some(precision) => precision,
            None => saved_precision(&self.functions)?,
        };
        let job = Self { precision: Some(precision), ..self.clone() };
        let typed = match precision {
            Precision::F32 => Either::F32(Box::new(job.open_as(destination, opening)?)),
            Precision::F64 => Either::F64(Box::new(job.open_as(destination, opening)?)),
        };
        let (functions, samples) = match &typed {
            Either::F32(typed) => (typed.saved.functions.n_components(), typed.eval.n_samples),
            Either::F64(typed) => (typed.saved.functions.n_components(), typed.eval.n_samples),
        };
        Ok(OpenedEvaluation { typed, plan: EvaluatePlan { precision, functions, samples } })
    }
}

/// An evaluation with everything opened.
pub struct OpenedEvaluation {
    typed: Either,
    plan: EvaluatePlan,
}

enum Either {
    F32(Box<Typed<f32>>),
    F64(Box<Typed<f64>>),
}

impl Opened for OpenedEvaluation {
    type Plan = EvaluatePlan;
    type Findings = EigenFindings;

    fn plan(&self) -> &EvaluatePlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<EigenFindings>, Error> {
        let precision = self.plan.precision;
        match self.typed {
            Either::F32(typed) => typed.run(precision, context),
            Either::F64(typed) => typed.run(precision, context),
        }
    }
}

/// The same in one precision.
struct Typed<T: Real> {
    job: EvaluateJob,
    folder: Option<ResultFolder>,
    saved: SavedFunctions<T>,
    eval: Samples,
    known: Option<Samples>,
    watch: Stopwatch,
}

impl<T: Real> Typed<T> {
    fn run(self, precision: Precision, context: &Context) -> Result<Outcome<EigenFindings>, Error> {
        let Self { job, folder, saved, eval, known, watch } = self;
        let folder = folder.ok_or_else(|| Error::new("there is no place for the results").hint("‹out› DIR"))?;
        let functions = &saved.functions;
        let mut findings = EigenFindings::new("load", precision, functions.n_components());
        findings.values = functions.values().to_vec();
        findings.repairs = *functions.repairs();
        findings.kernel = Some(job.functions.display().to_string());
        (findings.samples, findings.evaluated) = (eval.n_samples, Some(eval.n_samples));
        let (psi, items) = {
            let _phase = context.phase("evaluating");
            let items = known.as_ref().map(|known| saved.evaluate(known, context)).transpose()?;
            (saved.evaluate(&eval, context)?, items)
        };
        let mut inputs = vec![input("load", job.functions.display().to_string(), saved.fingerprint.clone())];
        inputs.push(input("eval", eval.places(), eval.fingerprint()?));
        if let (Some(known), Some(items)) = (&known, &items) {
            inputs.push(input("data", known.places(), known.fingerprint()?));
            let asked = (&psi, eval.labels.as_ref());
            findings.codes = codes::scores((items, known.labels.as_ref()), asked, context)?;
        }
        findings.repairs.sentences().iter().for_each(|sentence| context.note(sentence));
        let content = {
            let _phase = context.phase("writing");
            folder.array(place::VALUES, functions.values())?;
            folder.array(place::ON_EVAL, &psi)?;
            if let Some(items) = &items {
                folder.array(place::ON_DATA, items)?;
            }
            let figure = figure_of(&eval.inputs, &psi, &findings.values, eval.labels.as_ref())?;
            folder.file(place::FIGURE, figure.as_bytes())?;
            let notes = Map::from_iter([
                ("method".to_owned(), json!("load")),
                ("functions".to_owned(), json!(findings.kernel)),
            ]);
            let values = (functions.values(), functions.per_sample());
            EigenDescription::on_samples::<T>(&folder.writer().objects(), values, findings.repairs, notes)?
        };
        folder.finish(job, inputs, findings, &content, (watch, context))
    }
}
