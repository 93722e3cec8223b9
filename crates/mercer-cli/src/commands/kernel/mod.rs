//! `mercer kernel`: the Gram matrix of a network's kernel, or its features, or of a classic kernel.

mod report;
mod target;

use crate::console::Console;
use crate::failure::Failure;
use crate::format::count;
use crate::options::{DataOptions, KernelKind, KernelOptions, ParameterOptions, Precision, Real, Samples, Source};
use mercer::kernel::Built;
use mercer::kernel::gram::{FeatureRun, Gram, Outcome, Plan, Sink};
use mercer::kernel::store::{Layout, Manifest, Tiles};
use mercer::run::Context;
use report::KernelReport;
use std::ops::Range;
use target::{Destination, Target};

const EXAMPLES: &str = "\
Examples:
  mercer kernel --net model.onnx --data images.npy --kind trace -o gram.npy
  mercer kernel --net model.onnx --data train.npz:x --against test.npz:x --kind pseudo -o cross.npy
  mercer kernel --net model.onnx --data images.npy --kind trace --by-layer -o layers.npy
  mercer kernel --net binary.onnx --data x.npy --kind pseudo --combine 1,-1 -o difference.npy
  mercer kernel --net model.onnx --data images.npy --kind trace --sketch sjlt:4096 --features -o phi.npy
  mercer kernel --net model.onnx --data many.npy --kind pseudo --memory 8GiB -o gram.zarr
  mercer kernel --net model.onnx --data many.npy --kind pseudo --memory 8GiB -o gram.zarr --resume
  mercer kernel --arch mlp.toml --data x.npy --kind ntk-limit --weight-std 1.4 --bias-std 0.1 -o limit.npy
  mercer kernel --net cnn.onnx --data images.npy --kind nngp-mc --samples 1000 --initialisation he -o mean.npy
  mercer kernel --kernel 'rbf(lengthscale=1.5) + 0.1*linear()' --data x.npy --precision f64 -o gram.npy

Kinds: the empirical NTK as full (N, C, M, C) array, trace (sum over outputs), pseudo (sum of the outputs, over C) and
logit:I (one output); ck (conjugate kernel: features of the last hidden layer) and embedding (features at --at).
Without a trained network: nngp and ntk-limit are the kernels of the architecture at infinite width, for one output; nngp-mc
and ntk-mc are means over --samples random networks of the width it has, which exist for every network, and come with
standard errors in a second file, mean.standard_error.npy. They do not tell how far the finite width is from the limit.
Sketches approximate trace and pseudo by K features: khatri-rao is the fastest, sjlt the most accurate for its time.
A .zarr store can be interrupted, resumed, filled by several processes (--tiles), checked (`mercer info`) and opened in
Python with zarr or dask.

--kernel takes sums and products of positive numbers and of these kernels, with the parameters that are not their
defaults. A lengthscale ℓ may be a list with one for every number of a sample, as in rbf(lengthscale=[1, 2, 0.5]):
";

fn after_help() -> String {
    format!("{EXAMPLES}{}", mercer::kernel::classic::help())
}

/// Compute a kernel on data: of a network (NTKs, conjugate and embedding kernels, limits, means over random networks) or classic
#[derive(Debug, clap::Args)]
#[command(after_help = after_help(), next_help_heading = "Kernel")]
pub(crate) struct KernelArguments {
    #[command(flatten)]
    kernel: KernelOptions,

    /// Compare with these samples instead of with the same ones: they become the columns
    #[arg(long, value_name = "[NAME=]FILE[:KEY]")]
    against: Vec<String>,

    /// One matrix per layer; their sum is the kernel
    #[arg(long)]
    by_layer: bool,

    /// Write the features instead of the matrix of their products
    #[arg(long)]
    features: bool,

    /// Compute in single or double precision
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    precision: Precision,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    run: RunOptions,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    parameters: ParameterOptions,
}

/// How the work is done.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Run")]
struct RunOptions {
    /// Compute only these tiles of a store, as in 0..64
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    tiles: Option<Range<usize>>,

    /// Say what would be done and what it would take, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl KernelArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        let destination = self.target.check(self.run.dry_run, self.run.tiles.is_some(), self.by_layer)?;
        self.check_flags()?;
        let source = self.kernel.open(&self.parameters)?;
        let report = match self.precision {
            Precision::F32 => self.compute::<f32>(&source, destination, console)?,
            Precision::F64 => self.compute::<f64>(&source, destination, console)?,
        };
        console.result(&report, || report.text())?;
        // A plan is shown even if there is no room for its result, and then refused.
        report.check_disk().map_err(|error| self.kernel.failure(error))
    }

    fn compute<T: Real>(
        &self,
        source: &Source,
        destination: Option<Destination>,
        console: &Console,
    ) -> Result<KernelReport, Failure> {
        let rows = source.samples("--data", &self.data.data, &self.data, &[], console)?;
        rows.hint(source.network(), console)?;
        // The labels are those of --data.
        let unlabelled = DataOptions { labels: None, ..self.data.clone() };
        let columns = match &self.against[..] {
            [] => None,
            texts => Some(source.samples("--against", texts, &unlabelled, &rows.columns, console)?),
        };
        let shapes = rows.shapes();
        if let Some(columns) = &columns
            && columns.shapes() != shapes
        {
            let text = format!("--against has samples of shape {:?}, --data of {shapes:?}", columns.shapes());
            return Err(Failure::new(text).hint("both must have samples of the same shape"));
        }
        source.check_shapes(&shapes, self.kernel.path())?;
        let recipe = self.kernel.recipe(source, self.by_layer)?;
        self.kernel.tell(&recipe, source, &shapes, console);
        let built = recipe.build::<T>(source.network(), &shapes).map_err(|error| self.kernel.failure(error))?;
        let work = Work::new(self, &built, &rows, columns.as_ref())?;
        let layout = work.layout();
        let mut report = KernelReport::begin(self, &layout, &built, &rows, columns.as_ref());
        let wanted = self.chosen_tiles(&layout)?;
        // Refused before anything is made: a plan that does not fit leaves no empty store behind.
        let plan = work.plan(self, &wanted, console.context())?;
        report.disk = destination.as_ref().map(|place| place.room(&layout, &wanted)).transpose()?;
        if self.run.dry_run {
            report.estimate = Some(plan.estimate::<T>());
            report.plan = Some(plan);
            return Ok(report);
        }
        report.check_disk().map_err(|error| self.kernel.failure(error))?;
        let Some(destination) = destination else { return Err(Failure::new("there is no place for the result")) };
        let manifest = || self.manifest(&layout, &built, &rows, columns.as_ref());
        let opened = destination.open::<T>(&layout, manifest, console)?;
        let tiles = opened.missing().common(&wanted);
        let plan = work.plan(self, &tiles, console.context())?;
        let bar = console.context();
        let outcome = work.run(self, &tiles, opened.sink(), &bar);
        let outcome = outcome.map_err(|failure| failure.when_interrupted(|| destination.how_to_go_on()))?;
        report.finish(outcome, plan);
        if let Some(warning) = outcome.broken_promise() {
            console.note(&format!("warning: {warning}"));
        }
        destination.close(opened, &layout, &tiles, &mut report)?;
        Ok(report)
    }

    /// Flags that mean nothing together are refused instead of ignored.
    fn check_flags(&self) -> Result<(), Failure> {
        self.kernel.check()?;
        let kind = self.kernel.kind();
        if self.by_layer && !matches!(kind, KernelKind::Tangent(_)) {
            return Err(Failure::new(format!("--by-layer is for tangent kernels, not for --kind {kind}"))
                .hint("--kind trace, pseudo, full or logit:I"));
        }
        if self.by_layer && self.kernel.sketch().is_some() {
            return Err(Failure::new("--by-layer: a sketch mixes the layers").hint("leave --sketch out"));
        }
        if self.features && (self.kernel.normalised() || !self.against.is_empty()) {
            let flag = if self.kernel.normalised() { "--normalise" } else { "--against" };
            return Err(Failure::new(format!("--features writes the features of --data; {flag} is for matrices")));
        }
        Ok(())
    }

    fn chosen_tiles(&self, layout: &Layout) -> Result<Tiles, Failure> {
        let n_tiles = layout.n_tiles();
        let range = self.run.tiles.clone().unwrap_or(0..n_tiles);
        if range.start >= n_tiles {
            return Err(Failure::new(format!(
                "--tiles {}..{}: there are {}",
                range.start,
                range.end,
                count(n_tiles, "tile")
            ))
            .hint("tiles are counted from 0; --dry-run says how many there are"));
        }
        Ok(Tiles::range(range.start..range.end.min(n_tiles)))
    }

    /// What the numbers depend on.
    fn manifest<T: Real>(
        &self,
        layout: &Layout,
        built: &Built<T>,
        rows: &Samples,
        columns: Option<&Samples>,
    ) -> Result<Manifest, Failure> {
        let identity = match &built.map {
            Some(map) if self.features => map.identity(),
            _ => built.kernel.identity(),
        };
        let beside = if self.features { Vec::new() } else { built.kernel.beside() };
        let mut manifest = Manifest::new(layout.clone())
            .with_beside(beside)
            .fact("kernel", identity)
            .fact("data", rows.fingerprint()?)
            .fact("instructions", mercer::linalg::simd::instruction_set())
            .note("data file", rows.places());
        if let Some(file) = self.kernel.file() {
            manifest = manifest.note("network file", file.display().to_string());
        }
        if let Some(columns) = columns {
            manifest = manifest.fact("against", columns.fingerprint()?).note("against file", columns.places());
        }
        Ok(manifest)
    }
}

/// The two things that can be computed: a matrix or features.
enum Work<'a, T: Real> {
    Gram(Gram<'a, T>),
    Features(FeatureRun<'a, T>),
}

impl<'a, T: Real> Work<'a, T> {
    fn new(
        arguments: &KernelArguments,
        built: &'a Built<T>,
        rows: &'a Samples,
        columns: Option<&'a Samples>,
    ) -> Result<Self, Failure> {
        if arguments.features {
            let Some(map) = built.map.as_deref() else {
                return Err(Failure::new("--features: this kernel has no finite features")
                    .hint("add --sketch METHOD:K, or take --kind ck, embedding or nngp-mc"));
            };
            let run = FeatureRun::new(map, &rows.inputs);
            return Ok(Self::Features(run));
        }
        let mut gram = Gram::new(&*built.kernel, &rows.inputs);
        if let Some(columns) = columns {
            gram = gram.against(&columns.inputs);
        }
        Ok(Self::Gram(gram))
    }

    fn layout(&self) -> Layout {
        match self {
            Self::Gram(gram) => gram.layout(),
            Self::Features(run) => run.layout(),
        }
    }

    fn plan(&self, arguments: &KernelArguments, tiles: &Tiles, context: &Context) -> Result<Plan, Failure> {
        let plan = match self {
            Self::Gram(gram) => gram.plan(tiles, context),
            Self::Features(run) => run.plan(tiles, context),
        };
        plan.map_err(|error| arguments.kernel.failure(error))
    }

    fn run(
        &self,
        arguments: &KernelArguments,
        tiles: &Tiles,
        sink: &dyn Sink<T>,
        progress: &Context,
    ) -> Result<Outcome, Failure> {
        let outcome = match self {
            Self::Gram(gram) => gram.run(tiles, sink, progress),
            Self::Features(run) => run.run(tiles, sink, progress),
        };
        outcome.map_err(|error| arguments.kernel.failure(error))
    }
}

/// `A..B`, a range of tiles.
fn parse_range(text: &str) -> Result<Range<usize>, String> {
    let wrong = || format!("`{text}` is not a range of tiles such as 0..64");
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
    let range = number(start)?..number(end)?;
    if range.is_empty() { Err(format!("`{text}` is an empty range")) } else { Ok(range) }
}
