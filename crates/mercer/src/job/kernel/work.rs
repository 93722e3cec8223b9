//! The two things that can be computed: a matrix or features.

use super::KernelJob;
use crate::Error;
use crate::spec::Samples;
use mercer_kernel::gram::{FeatureRun, Gram, GramOutcome, Held, Plan, Sink};
use mercer_kernel::store::{StoreLayout, Tiles};
use mercer_kernel::{Built, Real};
use mercer_run::Context;

pub(super) enum Work<'a, T: Real> {
    Gram(Gram<'a, T>),
    Features(FeatureRun<'a, T>),
}

impl<'a, T: Real> Work<'a, T> {
    pub(super) fn new(
        job: &KernelJob,
        built: &'a Built<T>,
        rows: &'a Samples,
        columns: Option<&'a Samples>,
        held: &Held,
    ) -> Result<Self, Error> {
        if job.features {
            let Some(map) = built.map.as_deref() else {
                return Err(Error::new("‹as-features›: this kernel has no finite features")
                    .hint("‹kernel› 'trace(sketch=sjlt:4096)', ck, embedding(…), directions(…) or nngp-mc has them"));
            };
            return Ok(Self::Features(FeatureRun::new(map, &rows.inputs).holding(held)));
        }
        let gram = Gram::new(&*built.kernel, &rows.inputs).holding(held);
        Ok(Self::Gram(match columns {
            Some(columns) => gram.against(&columns.inputs),
            None => gram,
        }))
    }

    pub(super) fn layout(&self) -> StoreLayout {
        match self {
            Self::Gram(gram) => gram.layout(),
            Self::Features(run) => run.layout(),
        }
    }

    pub(super) fn partition(&self, parts: usize) -> Vec<Tiles> {
        match self {
            Self::Gram(gram) => gram.partition(parts),
            Self::Features(run) => run.partition(parts),
        }
    }

    pub(super) fn plan(&self, job: &KernelJob, tiles: &Tiles, context: &Context) -> Result<Plan, Error> {
        let plan = match self {
            Self::Gram(gram) => gram.plan(tiles, context),
            Self::Features(run) => run.plan(tiles, context),
        };
        plan.map_err(|error| job.kernel.failure(error))
    }

    pub(super) fn run(
        &self,
        job: &KernelJob,
        tiles: &Tiles,
        sink: &dyn Sink<T>,
        context: &Context,
    ) -> Result<GramOutcome, Error> {
        let outcome = match self {
            Self::Gram(gram) => gram.run(tiles, sink, context),
            Self::Features(run) => run.run(tiles, sink, context),
        };
        outcome.map_err(|error| job.kernel.failure(error))
    }
}
