//! Data and runs of jobs that an experiment keeps, so that it goes on where it was interrupted.
//!
//! Files are named by their content, and runs by their job: what is there is what is wanted.

use crate::Fallible;
use crate::images::Images;
use crate::options::Options;
use mercer::data::{Existing, Fingerprint, Source, Storable, write_npy};
use mercer::job::{Destination, Job, Measurements, Opened, Record};
use mercer::run::Context;
use mercer::spec::{DataRef, DataSpec, Inputs, Opening};
use ndarray::{Array2, ArrayBase, Data, Dimension};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The folder of an experiment.
pub(crate) struct Work {
    folder: PathBuf,
    earlier: Cell<f64>,
}

/// A finished job.
pub(crate) struct Done {
    /// Its folder; or the array or store, and then nothing is found.
    pub(crate) folder: PathBuf,
    /// `result.json`.
    pub(crate) found: Value,
    /// What it took, whenever that was.
    pub(crate) seconds: f64,
    measured: Measurements,
}

impl Work {
    pub(crate) fn new(options: &Options) -> Fallible<Self> {
        Self::at(options.work())
    }

    fn at(folder: &Path) -> Fallible<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.canonicalize()?, earlier: Cell::new(0.0) })
    }

    /// Where kernel values are kept.
    pub(crate) fn kernels(&self) -> PathBuf {
        self.folder.join("kernels")
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

    /// Keeps texts, as the column of a table.
    pub(crate) fn texts(&self, name: &str, texts: &[String]) -> Fallible<DataRef> {
        let path = self.folder.join(format!("{name}.csv"));
        let mut table = csv::Writer::from_path(&path)?;
        table.write_record(["text"])?;
        texts.iter().try_for_each(|text| table.write_record([text]))?;
        table.flush()?;
        drop(table);
        Ok(format!("{}:text", self.kept(&path, name, "csv")?.display()).into())
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
        self.run_within(name, job, None)
    }

    /// Runs a job even if an earlier run has finished it.
    pub(crate) fn fresh<J: Job>(&self, name: &str, job: &J) -> Fallible<Done> {
        let folder = self.place(name, job)?;
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        self.run(name, job)
    }

    /// The folder of a job.
    fn place<J: Job>(&self, name: &str, job: &J) -> Fallible<PathBuf> {
        let mut fingerprint = Fingerprint::new();
        fingerprint.update(serde_json::to_string(job)?.as_bytes());
        Ok(self.folder.join(format!("{name}-{}", &fingerprint.finish()[..12])))
    }

    /// The same within a memory limit, if there is one.
    pub(crate) fn run_within<J: Job>(&self, name: &str, job: &J, memory: Option<usize>) -> Fallible<Done> {
        let folder = self.place(name, job)?;
        let complete = folder.join("run.json").is_file();
        if !complete {
            let resume = J::NAME == "train";
            Self::open(job, &Destination { resume, force: !resume, ..Destination::new(&folder) }, memory)?;
        }
        let found = serde_json::from_str(&std::fs::read_to_string(folder.join("result.json"))?)?;
        self.done(name, folder, found, complete)
    }

    /// Runs a job that writes an array or a store, unless an earlier run has finished it. An interrupted store goes on; its seconds
    /// are then those of the last run.
    pub(crate) fn array_of<J: Job>(
        &self,
        name: &str,
        job: &J,
        extension: &str,
        memory: Option<usize>,
    ) -> Fallible<Done> {
        let path = self.place(name, job)?.with_extension(extension);
        let complete = Record::read(&path).is_ok();
        if !complete {
            let resume = extension == "zarr";
            Self::open(job, &Destination { resume, force: !resume, ..Destination::new(&path) }, memory)?;
        }
        self.done(name, path, Value::Null, complete)
    }

    fn open<J: Job>(job: &J, destination: &Destination, memory: Option<usize>) -> Fallible<()> {
        // The peak of memory is then that of this job, where the system can forget that of earlier ones.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let (inputs, context) = (Inputs::none(), Context::new());
        let context = memory.map_or(context.clone(), |memory| context.with_memory(memory));
        job.open(destination, Opening { inputs: &inputs, context: &context })?.run(&context)?;
        Ok(())
    }

    fn done(&self, name: &str, folder: PathBuf, found: Value, complete: bool) -> Fallible<Done> {
        let measured = Record::read(&folder)?.measurements;
        let seconds = measured.seconds;
        eprintln!("{name}: {seconds:.1} s{}", if complete { " in an earlier run" } else { "" });
        if complete {
            self.earlier.set(self.earlier.get() + seconds);
        }
        Ok(Done { folder, found, seconds, measured })
    }

    /// Does what is no job, unless an earlier run has done it; what decides the result is its key.
    pub(crate) fn once<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        key: &impl Serialize,
        work: impl FnOnce() -> Fallible<T>,
    ) -> Fallible<T> {
        let mut fingerprint = Fingerprint::new();
        fingerprint.update(serde_json::to_string(key)?.as_bytes());
        let path = self.folder.join(format!("{name}-{}.json", &fingerprint.finish()[..12]));
        if path.is_file() {
            let (result, seconds): (T, f64) = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
            eprintln!("{name}: {seconds:.1} s in an earlier run");
            self.earlier.set(self.earlier.get() + seconds);
            return Ok(result);
        }
        let start = Instant::now();
        let result = work()?;
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("{name}: {seconds:.1} s");
        let unfinished = path.with_extension("unfinished");
        std::fs::write(&unfinished, serde_json::to_string(&(&result, seconds))?)?;
        std::fs::rename(unfinished, path)?;
        Ok(result)
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

    /// The peak memory of the process when the job was done.
    pub(crate) fn peak(&self) -> f64 {
        self.measured.peak_bytes as f64
    }

    /// The seconds of a phase, 0 if there was none.
    pub(crate) fn phase(&self, name: &str) -> f64 {
        self.measured.phases.iter().filter(|phase| phase.name == name).map(|phase| phase.seconds).sum()
    }

    /// The size of the folder on disk.
    pub(crate) fn bytes(&self) -> Fallible<u64> {
        fn below(folder: &Path) -> std::io::Result<u64> {
            let size = |entry: std::io::Result<std::fs::DirEntry>| {
                let entry = entry?;
                if entry.file_type()?.is_dir() { below(&entry.path()) } else { Ok(entry.metadata()?.len()) }
            };
            std::fs::read_dir(folder)?.map(size).sum()
        }
        Ok(below(&self.folder)?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use mercer::job::TrainJob;
    use mercer::job::train::TrainingSpec;

    const ARCH: &str = "[mlp]\ninputs = [2]\nwidths = [3]\noutputs = 2\n";

    #[test]
    fn results_are_kept_by_their_key() {
        let place = tempfile::tempdir().unwrap();
        let work = Work::at(place.path()).unwrap();
        let once = |key: u8, value: f64| work.once("sum", &("a", key), || Ok((value, None::<f64>))).unwrap().0;
        assert_eq!([once(1, 0.1 + 0.2), once(1, 7.0), once(2, 7.0)], [0.1 + 0.2, 0.1 + 0.2, 7.0]);
        assert!(work.once::<f64>("sum", &3, || Err("no".into())).is_err());
        assert_eq!(work.once::<f64>("sum", &3, || Ok(1.0)).unwrap(), 1.0);
    }

    #[test]
    fn texts_are_a_column() {
        let place = tempfile::tempdir().unwrap();
        let work = Work::at(place.path()).unwrap();
        let texts = ["plain".to_owned(), "a, \"quoted\" one".to_owned()];
        let source = work.texts("some", &texts).unwrap().source().unwrap().unwrap();
        assert_eq!(source.key(), Some("text"));
        let read: Vec<String> =
            csv::Reader::from_path(source.path()).unwrap().records().map(|row| row.unwrap()[0].to_owned()).collect();
        assert_eq!(read, texts);
    }

    #[test]
    fn finished_jobs_are_not_done_again() {
        let place = tempfile::tempdir().unwrap();
        let done = |seed: u64, first: f32| {
            let work = Work::at(place.path()).unwrap();
            let data = work.array("x", &Array2::from_shape_fn((8, 2), |(row, at)| first + (row * at) as f32)).unwrap();
            let labels = Some(work.numbers("y", &[0, 1, 0, 1, 0, 1, 0, 1]).unwrap());
            let data = DataSpec { data: vec![data], labels, ..DataSpec::default() };
            let training = TrainingSpec { seed, ..TrainingSpec::default() };
            let job = TrainJob { training, ..TrainJob::new(work.architecture("net", ARCH).unwrap(), data) };
            let done = work.run("net", &job).unwrap();
            assert!(done.model().is_file() && done.number("/history/9/loss").unwrap() > 0.0);
            (done.folder, work.earlier() > 0.0)
        };
        let (first, earlier) = done(0, 0.0);
        assert!(!earlier);
        assert_eq!(done(0, 0.0), (first.clone(), true));
        // Other settings, or other data under the same name, are another job.
        for (seed, pixel) in [(1, 0.0), (0, 1.0)] {
            let (other, earlier) = done(seed, pixel);
            assert!(other != first && !earlier);
        }
        // What was broken off has no record.
        std::fs::remove_file(first.join("run.json")).unwrap();
        assert_eq!(done(0, 0.0), (first, false));
    }
}
