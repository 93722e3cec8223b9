//! The tour: a network that learnt from labels of which a few are wrong, seen by every lens, and the report.

use super::{NETWORK_FILE, file, one};
use crate::Error;
use crate::job::eigen::{EigenMethod, EigenSource};
use crate::job::report::ReportFindings;
use crate::job::train::{EpochFindings, TrainFindings, TrainJob, TrainingSpec};
use crate::job::uncertainty::{PosteriorMethod, PriorChoice};
use crate::job::{
    AuditJob, Destination, EigenJob, ExplainJob, Job, KernelJob, Opened, ProbeJob, ReportJob, SpectrumJob,
    UncertaintyJob,
};
use crate::spec::{DataRef, DataSpec, Inputs, KernelSpec, Opening, Precision};
use mercer_data::digits::Digits;
use mercer_data::random::stream;
use mercer_data::{Existing, write_npy};
use mercer_net::train::files;
use mercer_run::Context;
use ndarray::{Array1, Array3, Axis};
use rand::RngExt;
use rand::seq::index::sample;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Labels that are planted wrong.
const WRONG: usize = 20;

/// Epochs whose weights are looked at.
const CHECKPOINTS: [usize; 4] = [1, 3, 10, 30];

/// The kernel that explains.
const KERNEL: &str = "normalised(trace)";

/// The folder of the tour, in that of the demo.
pub(super) const TOUR: &str = "tour";

/// The half of the unseen digits that settings are chosen by.
const VALIDATION: &str = "validation";

/// The half that results are judged on.
const HELD_OUT: &str = "held-out";

/// The findings of the tour.
#[derive(Clone, Debug, Serialize)]
pub struct TourFindings {
    /// Labels that were planted wrong.
    pub n_wrong: usize,
    /// Of the training with wrong labels.
    pub training: TrainFindings,
    /// The page.
    pub report: ReportFindings,
}

/// Writes labels of which a few are wrong, which ones they are, images of another kind (digits turned by a quarter), and the two
/// halves of the unseen digits: one to choose by, and one to be judged on.
pub(super) fn write(folder: &Path, train: &Digits, test: &Digits, seed: u64) -> Result<(), Error> {
    let mut labels: Array1<i64> = train.classes.indices().iter().map(|&class| class as i64).collect();
    let mut wrong = Array1::<i64>::zeros(labels.len());
    let mut random = stream(seed, "demo/wrong labels");
    for row in sample(&mut random, labels.len(), WRONG) {
        labels[row] = (labels[row] + random.random_range(1..10)) % 10;
        wrong[row] = 1;
    }
    write_npy(&folder.join("planted-labels.npy"), &labels, Existing::Replace)?;
    write_npy(&folder.join("planted-wrong.npy"), &wrong, Existing::Replace)?;
    let pixels = test.pixels()?;
    let (n, side) = (pixels.len_of(Axis(0)), pixels.len_of(Axis(1)));
    let turned = Array3::from_shape_fn((n, side, side), |(image, row, column)| pixels[[image, column, side - 1 - row]]);
    write_npy(&folder.join("turned-images.npy"), &turned.insert_axis(Axis(1)), Existing::Replace)?;
    let classes: Array1<i64> = test.classes.indices().iter().map(|&class| class as i64).collect();
    for (first, name) in [VALIDATION, HELD_OUT].into_iter().enumerate() {
        let rows: Vec<usize> = (first..n).step_by(2).collect();
        let images = pixels.select(Axis(0), &rows).insert_axis(Axis(1));
        write_npy(&folder.join(format!("{name}-images.npy")), &images, Existing::Replace)?;
        write_npy(&folder.join(format!("{name}-labels.npy")), &classes.select(Axis(0), &rows), Existing::Replace)?;
    }
    Ok(())
}

/// The tour through a folder.
pub(super) struct Tour<'a> {
    pub(super) folder: &'a Path,
    pub(super) seed: u64,
    pub(super) context: &'a Context,
}

impl Tour<'_> {
    fn place(&self, name: &str) -> PathBuf {
        self.folder.join(TOUR).join(name)
    }

    fn net(&self) -> PathBuf {
        self.place("run").join(files::MODEL)
    }

    /// The training samples, with the labels that the network saw.
    fn train(&self) -> DataSpec {
        let labels = Some(file(self.folder, "planted-labels.npy"));
        DataSpec { labels, ..one(file(self.folder, "train-images.npy")) }
    }

    /// Images and labels of a half of the unseen digits.
    fn half(&self, name: &str) -> (Vec<DataRef>, Option<DataRef>) {
        let part = |what: &str| file(self.folder, &format!("{name}-{what}.npy"));
        (vec![part("images")], Some(part("labels")))
    }

    fn checkpoints(&self) -> Vec<PathBuf> {
        CHECKPOINTS.iter().map(|epoch| self.place("run").join(files::checkpoint(*epoch))).collect()
    }

    /// Runs a job into the folder of the tour, without its notes: the report has them.
    fn run<J: Job>(&self, job: &J, name: &str, told: &str) -> Result<(), Error> {
        self.context.note(told);
        let destination = Destination { force: true, ..Destination::new(self.place(name)) };
        let (inputs, context) = (Inputs::none(), self.context.quiet());
        job.open(&destination, Opening { inputs: &inputs, context: &context })?.run(&context)?;
        Ok(())
    }

    /// Trains with wrong labels, looks at the network, and writes the report.
    pub(super) fn go(
        &self,
        like: &TrainJob,
        on_epoch: impl Fn(&EpochFindings) + 'static,
    ) -> Result<TourFindings, Error> {
        let folder = self.folder.join(TOUR);
        std::fs::create_dir_all(&folder).map_err(|error| crate::error::cannot_write(folder.display(), &error))?;
        let training = self.trained(like, on_epoch)?;
        let (net, train, (test, test_labels)) = (self.net(), self.train(), self.half(HELD_OUT));
        let kernel = KernelJob {
            kernel: KernelSpec::new(KERNEL).with_net(&net),
            data: one(test[0].clone()),
            against: Vec::new(),
            by_layer: false,
            features: false,
            precision: Precision::F32,
            tiles: None,
            part: None,
        };
        self.run(&kernel, "kernel.npy", "the network as a kernel: how similar digits are to it")?;
        let eigen = EigenJob {
            of: Some(EigenSource::Kernel(Box::new(KernelSpec::new(KERNEL).with_net(&net)))),
            data: DataSpec { labels: test_labels.clone(), ..one(test[0].clone()) },
            eval: Vec::new(),
            eval_labels: None,
            method: EigenMethod::Exact {},
            k: 12,
            truth: false,
            precision: Precision::F32,
            seed: self.seed,
        };
        self.run(&eigen, "functions", "its eigenfunctions: the directions in which it sees digits")?;
        let mut explain = ExplainJob::new(&net, train.clone(), test.clone());
        (explain.test_labels, explain.seed) = (test_labels.clone(), self.seed);
        (explain.kernels, explain.surrogate.penalty) = (vec![KERNEL.to_owned()], vec![1.0]);
        self.run(
            &explain,
            "why",
            "a kernel machine that stands in for it, and which training digits its decisions rest on",
        )?;
        let mut audit = AuditJob::new(&net, train.clone());
        (audit.truth, audit.seed) = (Some(file(self.folder, "planted-wrong.npy")), self.seed);
        audit.surrogate.penalty = vec![1.0];
        self.run(&audit, "review", "an audit of its labels")?;
        let mut sure = UncertaintyJob::new(&net, train.clone(), test.clone());
        (sure.test_labels, sure.seed, sure.method) = (test_labels.clone(), self.seed, PosteriorMethod::LastLayerKron);
        (sure.prior, (sure.validation, sure.validation_labels)) = (PriorChoice::Validation, self.half(VALIDATION));
        sure.ood = vec![file(self.folder, "turned-images.npy")];
        self.run(&sure, "sure", "how sure it may be, also of digits that are turned by a quarter")?;
        let mut probe = ProbeJob::new(&net, train.clone());
        (probe.test, probe.test_labels, probe.seed) = (test.clone(), test_labels.clone(), self.seed);
        (probe.checkpoints, probe.cost) = (self.checkpoints(), 0.0);
        // The similarity of layers takes most of the time.
        (probe.pairs, probe.permutations) = (300, 19);
        self.run(&probe, "inside", "what its layers know, epoch by epoch")?;
        let mut spectrum = SpectrumJob::new(&net);
        spectrum.data = Some(DataSpec { labels: test_labels, ..one(test[0].clone()) });
        (spectrum.checkpoints, spectrum.seed) = (self.checkpoints(), self.seed);
        self.run(&spectrum, "spectra", "the spectra of its weights and kernels, epoch by epoch")?;
        let runs = ["run", "review", "why", "sure", "inside", "spectra", "functions", "kernel.npy"];
        let mut report = ReportJob::new(runs.map(|name| self.place(name)));
        report.title = Some("A network that reads digits".to_owned());
        let destination = Destination { force: true, ..Destination::new(self.folder.join("report.html")) };
        let (inputs, context) = (Inputs::none(), self.context.quiet());
        let report = report.open(&destination, Opening { inputs: &inputs, context: &context })?.run(&context)?.findings;
        Ok(TourFindings { n_wrong: WRONG, training, report })
    }

    fn trained(&self, like: &TrainJob, on_epoch: impl Fn(&EpochFindings) + 'static) -> Result<TrainFindings, Error> {
        let training = TrainingSpec { checkpoint_at: CHECKPOINTS.to_vec(), ..like.training.clone() };
        let job = TrainJob { arch: self.folder.join(NETWORK_FILE), data: self.train(), training, ..like.clone() };
        let destination = Destination { force: true, ..Destination::new(self.place("run")) };
        let (inputs, context) = (Inputs::none(), self.context.quiet());
        let opened = job.open(&destination, Opening { inputs: &inputs, context: &context })?.on_epoch(on_epoch);
        Ok(opened.run(&context)?.findings)
    }
}
