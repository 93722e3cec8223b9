//! The Gram matrix of a kernel on data, or its features.
//!
//! ```
//! use mercer::data::Dataset;
//! use mercer::job::{Destination, Job, KernelJob, Opened};
//! use mercer::prelude::Context;
//! use mercer::spec::{Inputs, Opening};
//!
//! let points = ndarray::array![[0.0], [1.0], [3.0]];
//! let inputs = Inputs::none().with("x", Dataset::from_array("x", points.view().into_dyn())?);
//! let job: KernelJob = serde_json::from_value(serde_json::json!({
//!     "kernel": { "kernel": "rbf(lengthscale=2)" }, "data": { "data": [{ "given": "x" }] }, "precision": "f64",
//! }))?;
//! let folder = tempfile::tempdir()?;
//! let context = Context::new();
//! let opened = job.open(&Destination::new(folder.path().join("k.npy")), Opening { inputs: &inputs, context: &context })?;
//! assert_eq!(opened.plan().shape, [3, 3]);
//! assert_eq!(opened.run(&context)?.findings.shape, [3, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod target;
mod work;

use super::record::{InputRecord, OutputRecord, Record, digest_of};
use super::{Artefact, Destination, Job, Opened, Outcome, Stopwatch};
use crate::Error;
use crate::spec::{DataRef, DataSpec, KernelSpec, Opening, Precision, Samples};
use crate::text::count;
use mercer_data::folder::digest;
use mercer_kernel::empirical::FormChoice;
use mercer_kernel::gram::{Estimate, Held, Listing, Plan};
use mercer_kernel::store::{Manifest, StoreLayout, Tiles};
use mercer_kernel::{Built, Real};
use mercer_run::Context;
use mercer_run::names::Named;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;
pub use target::Room;
pub(crate) use target::Target;
use work::Work;

/// More processes than this do not share a matrix.
const MOST_PARTS: usize = 4096;

/// A kernel on data, as a matrix or as features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelJob {
    /// Which kernel.
    pub kernel: KernelSpec,
    /// The samples of the rows.
    pub data: DataSpec,
    /// The samples of the columns, if different.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<DataRef>,
    /// One matrix per layer; their sum is the kernel.
    #[serde(default)]
    pub by_layer: bool,
    /// Compute the features instead of the Gram matrix.
    #[serde(default)]
    pub features: bool,
    /// The precision to compute in.
    pub precision: Precision,
    /// Compute only these tiles of a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiles: Option<Range<usize>>,
    /// Compute only one of several parts of a store with about equal work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Share>,
}

/// One of several parts of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Which, counted from 1.
    pub part: usize,
    /// How many parts there are.
    pub of: usize,
}

impl Share {
    /// Rejects a part that is not there.
    pub(crate) fn check(self) -> Result<(), Error> {
        let Self { part, of } = self;
        if part == 0 || part > of || of > MOST_PARTS {
            let text = format!("‹part› {part}/{of}: parts are counted from 1, and there are at most {MOST_PARTS}");
            return Err(Error::new(text).hint("‹part› 1/4"));
        }
        Ok(())
    }

    /// The part of a partition.
    pub(crate) fn of(self, mut parts: Vec<Tiles>) -> Tiles {
        parts.swap_remove(self.part - 1)
    }
}

/// The planned work and its cost.
#[derive(Clone, Debug, Serialize)]
pub struct KernelPlan {
    /// The kernel, as it was written.
    pub kernel: String,
    /// The precision to compute in.
    pub precision: Precision,
    /// Of a matrix.
    pub shape: Vec<usize>,
    /// All tiles of the result.
    pub tiles: usize,
    /// Tiles, blocks, operations and memory.
    pub plan: Plan,
    /// The estimated time.
    pub estimate: Estimate,
    /// Of the numbers of all matrices.
    pub result_bytes: u64,
    /// The disk space of the result, and the free space.
    pub disk: Option<Room>,
    /// The form chosen for each parameter.
    pub layers: Vec<FormChoice>,
}

/// The findings for a computed kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelFindings {
    /// The file of the network.
    pub network: Option<String>,
    /// The kernel, as it was written.
    pub kernel: String,
    /// The precision to compute in.
    pub precision: Precision,
    /// The files of the rows.
    pub data: String,
    /// The files of the columns.
    pub against: Option<String>,
    /// Of a matrix.
    pub shape: Vec<usize>,
    /// Whether there is one matrix per layer.
    #[serde(skip)]
    pub by_layer: bool,
    /// The names of the matrices: one, one per layer, or one and its standard errors.
    pub matrices: Vec<String>,
    /// All tiles of the result.
    pub tiles: usize,
    /// The completed tiles.
    pub tiles_done: usize,
    /// The tiles computed by this run.
    pub tiles_computed: usize,
    /// Whether all tiles are complete.
    pub complete: bool,
    /// The file or store.
    pub output: String,
    /// The files of the matrices, or their folders in a store.
    pub files: Vec<String>,
    /// Operations of this run, in 10⁹.
    pub gflop: f64,
    /// Of the numbers of all matrices.
    pub result_bytes: u64,
    /// The form chosen for each parameter.
    pub layers: Vec<FormChoice>,
}

impl KernelJob {
    /// Contradictory settings are rejected, not ignored.
    fn check(&self) -> Result<(), Error> {
        self.kernel.check()?;
        if let Some(share) = self.part {
            if self.tiles.is_some() {
                return Err(Error::new("‹part› and ‹tiles› both choose tiles").hint("leave one of them out"));
            }
            share.check()?;
        }
        if self.features && !self.against.is_empty() {
            return Err(Error::new("‹as-features› writes the features of ‹data›; ‹against› is for matrices"));
        }
        Ok(())
    }

    fn chosen_tiles<T: Real>(&self, work: &Work<'_, T>) -> Result<Tiles, Error> {
        if let Some(share) = self.part {
            return Ok(share.of(work.partition(share.of)));
        }
        let n_tiles = work.layout().n_tiles();
        let range = self.tiles.clone().unwrap_or(0..n_tiles);
        if range.start >= n_tiles {
            let (start, end) = (range.start, range.end);
            return Err(Error::new(format!("‹tiles› {start}..{end}: there are {}", count(n_tiles, "tile")))
                .hint("tiles are counted from 0; ‹dry-run› says how many there are"));
        }
        Ok(Tiles::range(range.start..range.end.min(n_tiles)))
    }

    fn open_as<T: Real>(&self, target: Option<Target>, opening: Opening<'_>) -> Result<Typed<T>, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        let source = self.kernel.open()?;
        let rows = source.samples("data", &self.data.data, &self.data, &[], opening)?;
        rows.hint(source.network(), opening)?;
        let columns = match &self.against[..] {
            [] => None,
            // The labels are those of the rows.
            names => {
                let unlabelled = self.data.reading(names, None).learnt_from(&rows);
                Some(source.samples("against", names, &unlabelled, &rows.columns, opening)?)
            }
        };
        let shapes = rows.shapes();
        if let Some(columns) = &columns
            && columns.shapes() != shapes
        {
            let text = format!("‹against› has samples of shape {:?}, ‹data› of {shapes:?}", columns.shapes());
            return Err(Error::new(text).hint("both must have samples of the same shape"));
        }
        source.check_shapes(&shapes, self.kernel.path())?;
        let recipe = self.kernel.recipe(&source)?.with_errors(true);
        let recipe = match self.by_layer {
            true => recipe.by_layer().ok_or_else(|| {
                let text = format!("‹by-layer›: {} has no parts by layer", self.kernel.name());
                Error::new(text).hint("‹kernel› trace, pseudo, full or logit(I), alone, scaled or normalised")
            })?,
            false => recipe,
        };
        self.kernel.tell(&recipe, &source, &shapes, opening.context);
        let built = recipe.build::<T>(source.network(), &shapes).map_err(|error| self.kernel.failure(error))?;
        Ok(Typed { job: self.clone(), target, rows, columns, built, held: Held::default(), watch })
    }
}

impl Job for KernelJob {
    const NAME: &'static str = "kernel";

    type Opened = OpenedKernel;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedKernel, Error> {
        self.check()?;
        let partial = self.tiles.as_ref().map(|_| "tiles").or(self.part.map(|_| "part"));
        let target = Target::check(destination, partial, self.by_layer)?;
        let (typed, plan) = match self.precision {
            Precision::F32 => {
                let typed = self.open_as::<f32>(target, opening)?;
                let plan = typed.plan(opening.context)?;
                (EitherKernel::F32(Box::new(typed)), plan)
            }
            Precision::F64 => {
                let typed = self.open_as::<f64>(target, opening)?;
                let plan = typed.plan(opening.context)?;
                (EitherKernel::F64(Box::new(typed)), plan)
            }
        };
        Ok(OpenedKernel { typed, plan })
    }
}

/// A kernel job with everything opened.
#[derive(Debug)]
pub struct OpenedKernel {
    typed: EitherKernel,
    plan: KernelPlan,
}

#[derive(Debug)]
enum EitherKernel {
    F32(Box<Typed<f32>>),
    F64(Box<Typed<f64>>),
}

impl OpenedKernel {
    /// Rejects a result that does not fit on the disk.
    pub fn check_disk(&self) -> Result<(), Error> {
        match &self.plan.disk {
            Some(room) => Ok(room.check()?),
            None => Ok(()),
        }
    }
}

impl Opened for OpenedKernel {
    type Plan = KernelPlan;
    type Findings = KernelFindings;

    fn plan(&self) -> &KernelPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<KernelFindings>, Error> {
        self.check_disk()?;
        match self.typed {
            EitherKernel::F32(typed) => typed.run(context),
            EitherKernel::F64(typed) => typed.run(context),
        }
    }
}

/// The same in one precision.
#[derive(Debug)]
struct Typed<T: Real> {
    job: KernelJob,
    target: Option<Target>,
    rows: Samples,
    columns: Option<Samples>,
    built: Built<T>,
    /// The memory held by the process when the job was opened.
    held: Held,
    watch: Stopwatch,
}

impl<T: Real> Typed<T> {
    /// Checked before anything is created, so that a plan that does not fit leaves no empty store behind.
    fn plan(&self, context: &Context) -> Result<KernelPlan, Error> {
        let work = Work::new(&self.job, &self.built, &self.rows, self.columns.as_ref(), &self.held)?;
        let layout = work.layout();
        let wanted = self.job.chosen_tiles(&work)?;
        let plan = work.plan(&self.job, &wanted, context)?;
        Ok(KernelPlan {
            kernel: self.job.kernel.name(),
            precision: self.job.precision,
            shape: layout.shape(),
            tiles: layout.n_tiles(),
            estimate: plan.estimate::<T>(),
            plan,
            result_bytes: layout.bytes(),
            disk: self.target.as_ref().map(|target| target.room(&layout, &wanted)).transpose()?,
            layers: self.built.choices.clone(),
        })
    }

    fn run(self, context: &Context) -> Result<Outcome<KernelFindings>, Error> {
        let Some(target) = &self.target else { return Err(Error::new("there is no destination for the result")) };
        let work = Work::new(&self.job, &self.built, &self.rows, self.columns.as_ref(), &self.held)?;
        let layout = work.layout();
        let wanted = self.job.chosen_tiles(&work)?;
        let inputs = self.inputs()?;
        let opened = target.open::<T>(&layout, || self.manifest(&layout, &inputs), context)?;
        let tiles = opened.missing().common(&wanted);
        let plan = work.plan(&self.job, &tiles, context)?;
        let took = work.run(&self.job, &tiles, opened.sink(), context);
        let took = took.map_err(|error| error.when_interrupted(|| target.how_to_go_on()))?;
        context.record_phase("reading", took.reading);
        context.record_phase("kernel", took.seconds);
        context.record_phase("writing", took.writing);
        let written = target.close(opened, &layout, &tiles)?;
        let findings = KernelFindings {
            network: self.job.kernel.file().map(|file| file.display().to_string()),
            kernel: self.job.kernel.name(),
            precision: self.job.precision,
            data: self.rows.places(),
            against: self.columns.as_ref().map(Samples::places),
            shape: layout.shape(),
            by_layer: self.job.by_layer,
            matrices: layout.arrays.clone(),
            tiles: layout.n_tiles(),
            tiles_done: written.tiles_done,
            tiles_computed: tiles.len(),
            complete: written.tiles_done == layout.n_tiles(),
            output: target.path().display().to_string(),
            files: written.files.clone(),
            gflop: took.gflop,
            result_bytes: layout.bytes(),
            layers: self.built.choices.clone(),
        };
        if self.job.by_layer {
            target.write_listing(&findings.listing())?;
        }
        let mut artefacts: Vec<Artefact> = (findings.matrices.iter().zip(&findings.files))
            .map(|(name, path)| Artefact::array(name, path, &findings.shape, self.job.precision.name()))
            .collect();
        if self.job.by_layer {
            let listing = Listing::path(target.path());
            artefacts.push(Artefact::file("listing", listing.display().to_string()));
        }
        let mut outcome = self.watch.outcome(findings, artefacts, context);
        outcome.measurements.note("plan", &plan);
        outcome.measurements.note("gflop_per_second", &(took.gflop / took.seconds.max(1e-9)));
        if outcome.findings.complete {
            let outputs = outcome.findings.matrices.iter().zip(&outcome.findings.files);
            let outputs = outputs
                .map(|(name, path)| Ok(OutputRecord { name: name.clone(), digest: digest_of(Path::new(path))? }));
            let outputs = outputs.collect::<Result<Vec<_>, Error>>()?;
            // The store is complete, whichever part of it this run has computed.
            let job = KernelJob { tiles: None, part: None, ..self.job.clone() };
            Record::new(job, inputs, outputs, outcome.measurements.clone()).write(target.path())?;
        }
        Ok(outcome)
    }

    /// The inputs that decide the numbers, besides the settings.
    fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
        let mut inputs = Vec::new();
        let mut add = |setting: &str, place: String, fingerprint: String| {
            inputs.push(InputRecord { setting: setting.to_owned(), place, fingerprint });
        };
        // The identity of a kernel depends only on its network and on settings in the job.
        if let Some(file) = self.job.kernel.file() {
            add(
                self.job.kernel.setting(),
                file.display().to_string(),
                digest(self.built.kernel.identity().to_string().as_bytes()),
            );
        }
        add("data", self.rows.places(), self.rows.fingerprint()?);
        if let Some(columns) = &self.columns {
            add("against", columns.places(), columns.fingerprint()?);
        }
        Ok(inputs)
    }

    fn manifest(&self, layout: &StoreLayout, inputs: &[InputRecord]) -> Manifest {
        let identity = match &self.built.map {
            Some(map) if self.job.features => map.identity(),
            _ => self.built.kernel.identity(),
        };
        let beside = if self.job.features { Vec::new() } else { self.built.kernel.beside() };
        let mut manifest = facts(layout, beside, identity);
        for input in inputs {
            manifest = match &input.setting[..] {
                "data" => manifest.fact("data", input.fingerprint.clone()).note("data file", input.place.clone()),
                "against" => {
                    manifest.fact("against", input.fingerprint.clone()).note("against file", input.place.clone())
                }
                _ => manifest.note("network file", input.place.clone()),
            };
        }
        manifest
    }
}

/// The facts that decide the numbers of a store besides the samples: the kernel and the instruction set.
pub(crate) fn facts(layout: &StoreLayout, beside: Vec<String>, identity: serde_json::Value) -> Manifest {
    Manifest::new(layout.clone())
        .with_beside(beside)
        .fact("kernel", identity)
        .fact("instructions", mercer_linalg::simd::instruction_set())
}

impl KernelFindings {
    /// The list of matrices, with their findings.
    fn listing(&self) -> Listing {
        let files = self.files.iter().map(Into::into).collect();
        let mut listing = Listing::new(self.matrices.clone(), files);
        if let Ok(serde_json::Value::Object(mut about)) = serde_json::to_value(self) {
            about.retain(|name, _| name != "matrices" && name != "files");
            listing.about = about;
        }
        listing
    }
}
