//! Data and runs of jobs that an experiment keeps, so that it goes on where it was interrupted.
//!
//! Files are named by their content, and runs by their job: what is there is what is wanted.

use crate::Fallible;
use crate::images::Images;
use crate::options::Options;
use mercer::data::{Existing, Fingerprint, Source, Storable, write_npy};
use mercer::job::{Destination, Job, Opened, Record};
use mercer::run::Context;
use mercer::spec::{DataRef, DataSpec, Inputs, Opening};
use ndarray::{Array2, ArrayBase, Data, Dimension};
use serde_json::Value;
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// The folder of an experiment.
pub(crate) struct Work {
    folder: PathBuf,
    earlier: Cell<f64>,
}

/// A finished job.
pub(crate) struct Done {
    pub(crate) folder: PathBuf,
    /// `result.json`.
    pub(crate) found: Value,
    /// What it took, whenever that was.
    pub(crate) seconds: f64,
}

impl Work {
    pub(crate) fn new(options: &Options) -> Fallible<Self> {
        std::fs::create_dir_all(options.work())?;
        Ok(Self { folder: options.work().canonicalize()?, earlier: Cell::new(0.0) })
    }

    /// Keeps an array.
    pub(crate) fn array<T: Storable, S: Data<Elem = T>, D: Dimension>(
        &self,
        name: &str,
        array: &ArrayBase<S, D>,
    ) -> Fallible<DataRef> {
        let path = self.folder.join(format!("{name}.npy"));
        write_npy(&path, array, Existing::Replace)?;
        Ok(self.kept(&path, name, "npy")?.display().to_string().into())
    }

    /// Keeps classes or other whole numbers.
    pub(crate) fn numbers(&self, name: &str, numbers: &[usize]) -> Fallible<DataRef> {
        self.array(name, &numbers.iter().map(|&number| number as i64).collect::<ndarray::Array1<_>>())
    }

    /// Keeps images and their classes.
    pub(crate) fn images(&self, name: &str, images: &Images) -> Fallible<DataSpec> {
        let data = vec![self.array(name, &images.data[0].read::<f32>()?)?];
        let labels = Some(self.numbers(&format!("{name}-classes"), &images.classes)?);
        Ok(DataSpec { data, labels, ..DataSpec::default() })
    }

    /// Keeps the description of a network.
    pub(crate) fn architecture(&self, name: &str, toml: &str) -> Fallible<PathBuf> {
        let path = self.folder.join(format!("{name}.toml"));
        std::fs::write(&path, toml)?;
        self.kept(&path, name, "toml")
    }

    fn kept(&self, path: &Path, name: &str, extension: &str) -> Fallible<PathBuf> {
        let content = Fingerprint::of_file(path)?;
        let own = self.folder.join(format!("{name}-{}.{extension}", &content[..12]));
        std::fs::rename(path, &own)?;
        Ok(own)
    }

    /// Runs a job, unless an earlier run has finished it. An interrupted training goes on; other jobs begin again.
    pub(crate) fn run<J: Job>(&self, name: &str, job: &J) -> Fallible<Done> {
        let mut fingerprint = Fingerprint::new();
        fingerprint.update(serde_json::to_string(job)?.as_bytes());
        let folder = self.folder.join(format!("{name}-{}", &fingerprint.finish()[..12]));
        let complete = folder.join("run.json").is_file();
        if !complete {
            let resume = J::NAME == "train";
            let destination = Destination { resume, force: !resume, ..Destination::new(&folder) };
            let (inputs, context) = (Inputs::none(), Context::new());
            job.open(&destination, Opening { inputs: &inputs, context: &context })?.run(&context)?;
        }
        let found = serde_json::from_str(&std::fs::read_to_string(folder.join("result.json"))?)?;
        let seconds = Record::read(&folder)?.measurements.seconds;
        eprintln!("{name}: {seconds:.1} s{}", if complete { " in an earlier run" } else { "" });
        if complete {
            self.earlier.set(self.earlier.get() + seconds);
        }
        Ok(Done { folder, found, seconds })
    }

    /// The seconds of jobs that an earlier run had done.
    pub(crate) fn earlier(&self) -> f64 {
        self.earlier.get()
    }
}

impl Done {
    /// The trained network.
    pub(crate) fn model(&self) -> PathBuf {
        self.folder.join("model.onnx")
    }

    /// An array of the folder.
    pub(crate) fn matrix(&self, name: &str) -> Fallible<Array2<f64>> {
        Ok(Source::new(self.folder.join(name), None).open()?.read::<f64>()?.into_dimensionality()?)
    }

    /// A number of the findings, as in `/surrogates/0/accuracy`.
    pub(crate) fn number(&self, pointer: &str) -> Fallible<f64> {
        let number = self.found.pointer(pointer).and_then(Value::as_f64);
        number.ok_or_else(|| format!("{}: there is no number {pointer}", self.folder.display()).into())
    }
}
