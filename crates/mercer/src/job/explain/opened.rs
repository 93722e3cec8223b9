//! An explanation with everything opened.

use super::findings::ExplainFindings;
use super::retrain::Retraining;
use super::saved::{self, SavedExplanation};
use super::validate::Validation;
use super::work::{Work, no_layers};
use super::{ClassChoice, ExplainJob, ExplainPlan, FillFindings};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::surrogate::{
    Classified, KernelRows, KernelStores, SurrogateMachine, TestSet, check_memory, needed_bytes,
};
use crate::job::{Destination, Opened, Outcome, Share, Stopwatch};
use crate::spec::{DataRef, DataSpec, KernelSpec, Opening, Precision};
use mercer_data::{Classes, Dataset};
use mercer_kernel::Real;
use mercer_learn::KernelMachine;
use mercer_run::Context;

/// An explanation with everything opened.
#[derive(Debug)]
pub struct OpenedExplain {
    pub(super) job: ExplainJob,
    pub(super) folder: Option<ResultFolder>,
    pub(super) destination: Destination,
    pub(super) known: Classified,
    /// The surrogate of an earlier explanation.
    pub(super) earlier: Option<SavedExplanation>,
    pub(super) test: TestSet,
    pub(super) ood: Option<TestSet>,
    /// Groups of training samples, with their names.
    pub(super) groups: Option<Classes>,
    /// The class of every test sample at which network and surrogate are compared, if it is given.
    pub(super) fixed_class: Option<usize>,
    /// How the network was trained, if it is to be retrained.
    pub(super) retraining: Option<Retraining>,
    /// Where kernel values are kept.
    stores: Option<KernelStores>,
    plan: ExplainPlan,
    pub(super) watch: Stopwatch,
}

impl OpenedExplain {
    pub(super) fn open(
        job: &ExplainJob,
        destination: &Destination,
        watch: Stopwatch,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let folder = match destination.dry_run {
            true => None,
            false => Some(saved::create(destination, job.from.is_none())?),
        };
        let node = job.node.as_deref();
        let (known, earlier) = match (&job.net, &job.from) {
            (Some(net), _) => {
                // The groups may be a column of the same table.
                let used = job.groups.iter().chain(&job.train.used).cloned().collect();
                let train = DataSpec { used, ..job.train.clone() };
                (Classified::open((net, &job.parameters), node, &train, job.ids.as_ref(), opening)?, None)
            }
            (None, Some(from)) => {
                let (known, earlier) = SavedExplanation::open(from, node, opening)?;
                (known, Some(earlier))
            }
            (None, None) => return Err(Error::new("‹net›: which network?")),
        };
        crate::job::remark(known.source.network(), opening.context);
        let test = known.other("test", &job.test, job.test_labels.as_ref(), &job.train, node, opening)?;
        let ood = match job.ood.is_empty() {
            true => None,
            false => Some(known.other("ood", &job.ood, None, &job.train, node, opening)?),
        };
        if let Some(row) = job.rows.iter().find(|row| **row >= test.samples.n_samples) {
            let text = format!("‹rows› {row}: there are {} test samples, counted from 0", test.samples.n_samples);
            return Err(Error::new(text));
        }
        let fixed_class = match &job.class {
            ClassChoice::Named(name) => Some(class_named(name, &known.classes)?),
            _ => None,
        };
        let retraining = match (&job.validate, &job.net) {
            (Some(validate), Some(net)) if validate.kind != Validation::Sanity => Some(Retraining::of_network(net)?),
            _ => None,
        };
        let stores = KernelStores::open(job.cache.as_deref(), destination.dry_run)?;
        let groups = job.groups.as_ref().map(|groups| groups_of(groups, &known, opening)).transpose()?;
        let mut opened = Self {
            job: job.clone(),
            folder,
            destination: destination.clone(),
            plan: ExplainPlan {
                kernels: job.kernels(),
                n_train: known.samples.n_samples,
                n_test: test.samples.n_samples,
                n_classes: known.classes.n_classes(),
                bytes: 0,
            },
            known,
            earlier,
            test,
            ood,
            groups,
            fixed_class,
            retraining,
            stores,
            watch,
        };
        match job.precision {
            _ if !job.by_layer => {}
            Precision::F32 => opened.check_layers::<f32>()?,
            Precision::F64 => opened.check_layers::<f64>()?,
        }
        opened.plan.bytes = match job.precision {
            Precision::F32 => opened.bytes::<f32>()?,
            Precision::F64 => opened.bytes::<f64>()?,
        };
        check_memory(opened.plan.bytes, opened.plan.n_train, opening.context)?;
        Ok(opened)
    }

    /// Layers are refused before the work if the explaining kernel or its machine has none.
    fn check_layers<T: Real>(&self) -> Result<(), Error> {
        let rows = self.kernels::<T>()?;
        let Some(first) = rows.first() else { return Ok(()) };
        let votes = match &self.earlier {
            Some(earlier) => earlier.fitted().0.machine == SurrogateMachine::Neighbours,
            None => self.job.surrogate.machine == SurrogateMachine::Neighbours,
        };
        match first.recipe.clone().by_layer().is_none() || votes {
            true => Err(no_layers(&first.spec.name())),
            false => Ok(()),
        }
    }

    /// Computes a part of the kernel values that the cache keeps, as far as it is missing.
    pub(super) fn fill<T: Real>(&self, share: Share, context: &Context) -> Result<FillFindings, Error> {
        let others: Vec<&[Dataset]> =
            [Some(&self.test), self.ood.as_ref()].into_iter().flatten().map(|set| &set.samples.inputs[..]).collect();
        let mut found = FillFindings { part: share, tiles_computed: 0, prepared_blocks: 0 };
        for rows in self.kernels::<T>()? {
            for filled in rows.fill(&self.known.samples.inputs, &others, share, context)? {
                found.tiles_computed += filled.tiles;
                found.prepared_blocks += filled.prepared;
            }
        }
        Ok(found)
    }

    /// Opens the folder of stores, also where nothing else is written.
    pub(super) fn with_stores(mut self) -> Result<Self, Error> {
        self.stores = KernelStores::open(self.job.cache.as_deref(), false)?;
        Ok(self)
    }

    /// The kernels, built but not computed.
    pub(super) fn kernels<T: Real>(&self) -> Result<Vec<KernelRows<T>>, Error> {
        let shapes = self.known.samples.shapes();
        if let Some(earlier) = &self.earlier {
            return Ok(vec![earlier.kernel::<T>(&self.known, &shapes)?]);
        }
        let spec = |text: String| KernelSpec {
            kernel: Some(text),
            net: self.job.net.clone(),
            parameters: self.job.parameters.clone(),
            seed: self.job.seed,
            ..KernelSpec::default()
        };
        let build = |text| {
            let rows = KernelRows::<T>::build(spec(text), &self.known.source, &shapes)?;
            rows.keep(self.stores.as_ref(), &self.known)
        };
        self.job.kernels().into_iter().map(build).collect()
    }

    /// The memory of the kernel that needs most, with its machine.
    fn bytes<T: Real>(&self) -> Result<usize, Error> {
        let form = |machine| matches!(machine, SurrogateMachine::Sgd | SurrogateMachine::Neighbours);
        let forms_gram = self.job.surrogates().iter().any(|spec| form(spec.machine));
        let each = self.kernels::<T>()?.into_iter().map(|rows| match (&self.earlier, rows.map()) {
            // Nothing is computed for the training samples.
            (Some(_), None) => Ok(0),
            _ => needed_bytes(&rows, &self.known, forms_gram && self.earlier.is_none()),
        });
        Ok(each.collect::<Result<Vec<_>, Error>>()?.into_iter().max().unwrap_or(0))
    }
}

/// The class of this name.
fn class_named(name: &str, classes: &Classes) -> Result<usize, Error> {
    classes.names().iter().position(|own| own == name).ok_or_else(|| {
        let names = classes.names().iter().take(10).cloned().collect::<Vec<_>>().join(", ");
        Error::new(format!("‹class› {name}: there is no such class"))
            .hint(format!("‹class› correct, predicted, or one of {names}"))
    })
}

/// A group for every training sample.
fn groups_of(groups: &DataRef, known: &Classified, opening: Opening<'_>) -> Result<Classes, Error> {
    let found = Classes::read(&groups.open(opening.inputs)?)?;
    let (own, n_samples) = (found.indices().len(), known.samples.n_samples);
    if own != n_samples {
        let text = format!("‹groups› {groups}: {own} groups for {n_samples} training samples");
        return Err(Error::with_code("sample-count", text).hint("samples and groups must be in the same order"));
    }
    Ok(found)
}

impl Opened for OpenedExplain {
    type Plan = ExplainPlan;
    type Findings = ExplainFindings;

    fn plan(&self) -> &ExplainPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<ExplainFindings>, Error> {
        let run = match self.job.precision {
            Precision::F32 => Work::<f32>::run(self, context),
            Precision::F64 => Work::<f64>::run(self, context),
        };
        run.map_err(Error::before_writing)
    }
}

/// The folder of the surrogate within an explanation.
pub(super) const SURROGATE: &str = "surrogate";

/// The kind of the surrogate's folder.
pub(super) const SURROGATE_KIND: mercer_data::folder::FolderKind = KernelMachine::KIND;
