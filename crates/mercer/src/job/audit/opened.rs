//! An audit with everything opened.

use super::findings::AuditFindings;
use super::work::Work;
use super::{AuditJob, AuditPlan};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::surrogate::{Classified, KernelRows, KernelStores, TestSet, check_memory, names_in, needed_bytes};
use crate::job::{Destination, Opened, Outcome, Stopwatch};
use crate::spec::{DataRef, KernelSpec, Opening, Precision};
use mercer_data::Names;
use mercer_data::folder::FolderKind;
use mercer_kernel::Real;
use mercer_run::Context;

/// The kind of folder that an audit is.
pub(crate) const KIND: FolderKind = FolderKind { name: "audit", version: 1 };

/// An audit with everything opened.
#[derive(Debug)]
pub struct OpenedAudit {
    pub(super) job: AuditJob,
    pub(super) folder: Option<ResultFolder>,
    pub(super) known: Classified,
    /// Which training samples are really wrong.
    pub(super) truth: Option<Vec<bool>>,
    /// Which training samples are known to be poisoned.
    pub(super) poisoned: Option<Vec<bool>>,
    pub(super) test: Option<TestSet>,
    pub(super) test_poisoned: Option<Vec<bool>>,
    /// Where kernel values are kept.
    stores: Option<KernelStores>,
    plan: AuditPlan,
    pub(super) watch: Stopwatch,
}

impl OpenedAudit {
    pub(super) fn open(
        job: &AuditJob,
        destination: &Destination,
        watch: Stopwatch,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let folder = match destination.dry_run {
            true => None,
            false => Some(ResultFolder::create(destination, KIND, &super::files::NAMES)?),
        };
        let node = job.node.as_deref();
        let known = Classified::open((&job.net, &job.parameters), node, &job.train, job.ids.as_ref(), opening)?;
        crate::job::remark(known.source.network(), opening.context);
        let n_samples = known.samples.n_samples;
        let marked = |setting: &str, reference: &Option<DataRef>, n_samples: usize| match reference {
            Some(reference) => marks(setting, reference, &known, n_samples, opening).map(Some),
            None => Ok(None),
        };
        let truth = marked("wrong", &job.truth, n_samples)?;
        let poisoned = marked("poisoned", &job.poisoned, n_samples)?;
        let test = match job.test.is_empty() {
            true => None,
            false => Some(known.other("test", &job.test, None, &job.train, node, opening)?),
        };
        let n_test = test.as_ref().map_or(0, |test| test.samples.n_samples);
        let test_poisoned = match &job.test_poisoned {
            Some(reference) => Some(flags("test-poisoned", reference, n_test, opening)?),
            None => None,
        };
        let plan = AuditPlan { kernel: job.kernel.clone(), n_samples, n_classes: known.classes.n_classes(), bytes: 0 };
        let (job, folder) = (job.clone(), folder);
        let stores = KernelStores::open(job.cache.as_deref(), destination.dry_run)?;
        let mut opened = Self { job, folder, known, truth, poisoned, test, test_poisoned, stores, plan, watch };
        opened.plan.bytes = match opened.job.precision {
            Precision::F32 => needed_bytes(&opened.kernel::<f32>(&opened.job.kernel)?, &opened.known, false)?,
            Precision::F64 => needed_bytes(&opened.kernel::<f64>(&opened.job.kernel)?, &opened.known, false)?,
        };
        check_memory(opened.plan.bytes, n_samples, opening.context)?;
        Ok(opened)
    }

    /// A kernel, built but not computed.
    pub(super) fn kernel<T: Real>(&self, text: &str) -> Result<KernelRows<T>, Error> {
        let spec = KernelSpec::of_network(text, &self.job.net, &self.job.parameters, self.job.seed);
        let rows = KernelRows::build(spec, &self.known.source, &self.known.samples.shapes())?;
        rows.keep(self.stores.as_ref(), &self.known)
    }
}

/// The two ways to mark samples.
const EITHER: &str = "list ids of training samples (row numbers without ‹ids›), or 0 and 1 for every sample";

/// Marked training samples: a list of their names, or 0 and 1 for every sample.
fn marks(
    setting: &str,
    reference: &DataRef,
    known: &Classified,
    n_samples: usize,
    opening: Opening<'_>,
) -> Result<Vec<bool>, Error> {
    let Names { first, cells: names } = names_in(setting, reference, opening)?;
    if names.len() == n_samples && names.iter().all(|name| flag(name).is_some()) {
        return Ok(names.iter().map(|name| flag(name) == Some(true)).collect());
    }
    let rows = known.ids.rows(n_samples);
    let mut marked = vec![false; n_samples];
    // A list may do without a name of its column.
    let first = first.filter(|first| rows.contains_key(first));
    for name in first.into_iter().chain(names) {
        // Some programs write whole numbers with a point.
        let whole = || name.parse::<f64>().ok().filter(|number| number.fract() == 0.0);
        let row = rows.get(name.as_str()).or_else(|| rows.get(&format!("{:.0}", whole()?)));
        let Some(&row) = row else {
            let text = format!("‹{setting}› {reference}: there is no training sample {name:?}");
            return Err(Error::new(text).hint(EITHER));
        };
        // Marks of another number of samples would be read as a list of rows 0 and 1.
        if std::mem::replace(&mut marked[row], true) {
            let text = format!("‹{setting}› {reference}: {name:?} is listed twice");
            return Err(Error::new(text).hint(format!("{EITHER}, of which there are {n_samples}")));
        }
    }
    Ok(marked)
}

/// Whether a mark says yes; none if it is no mark.
fn flag(text: &str) -> Option<bool> {
    match text.parse::<f64>() {
        Ok(0.0) => Some(false),
        Ok(1.0) => Some(true),
        _ => None,
    }
}

/// 0 or 1 for every sample.
fn flags(setting: &str, reference: &DataRef, n_samples: usize, opening: Opening<'_>) -> Result<Vec<bool>, Error> {
    let dataset = reference.open(opening.inputs)?;
    let values = dataset.read::<f64>()?;
    if values.len() != n_samples {
        let text = format!("‹{setting}› {reference}: {} marks for {n_samples} samples", values.len());
        return Err(Error::with_code("sample-count", text));
    }
    if let Some(row) = values.iter().position(|&value| value != 0.0 && value != 1.0) {
        return Err(Error::new(format!("‹{setting}› {reference}: row {row} is neither 0 nor 1")));
    }
    Ok(values.iter().map(|&value| value == 1.0).collect())
}

impl Opened for OpenedAudit {
    type Plan = AuditPlan;
    type Findings = AuditFindings;

    fn plan(&self) -> &AuditPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<AuditFindings>, Error> {
        let run = match self.job.precision {
            Precision::F32 => Work::<f32>::run(self, context),
            Precision::F64 => Work::<f64>::run(self, context),
        };
        run.map_err(Error::before_writing)
    }
}
