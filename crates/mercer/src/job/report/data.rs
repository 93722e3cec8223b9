//! Data that a run named, if they are still there: for pictures of samples.

use super::figures::one;
use super::run::Run;
use crate::Error;
use crate::job::surrogate::Ids;
use crate::spec::{DataRef, Inputs, Opening, PreprocessSpec};
use mercer_data::{Classes, Dataset};
use mercer_report::Picture;
use mercer_run::Context;
use serde_json::Value;
use std::collections::HashMap;

/// Samples of a run, with their classes.
pub(super) struct Seen {
    samples: Dataset,
    classes: Option<Classes>,
}

impl Seen {
    /// The samples that a setting of a run named, if their file holds the same numbers as then.
    ///
    /// Data that cannot be read are no error: a page is made without pictures.
    pub(super) fn of(run: &Run, setting: &str) -> Option<Self> {
        let job = &run.written.job;
        let (files, labels) = match setting {
            "test" => (first(job, &["/test", "/eval", "/eval_data"])?, first(job, &["/test_labels", "/eval_labels"])),
            _ => (first(job, &["/train/data", "/data/data"])?, first(job, &["/train/labels", "/data/labels"])),
        };
        let samples = open(files)?;
        // Fingerprints are of the samples as a network takes them.
        let steps = first(job, &["/train/preprocess", "/data/preprocess"]);
        let steps = steps.and_then(|steps| serde_json::from_value::<PreprocessSpec>(steps.clone()).ok());
        let samples = match steps {
            Some(steps) => {
                let steps = steps.steps(samples.sample_shape());
                samples.with_preprocess(steps).ok()?
            }
            None => samples,
        };
        if run.fingerprint(setting)? != samples.fingerprint().ok()? {
            return None;
        }
        let classes = labels.and_then(open).and_then(|labels| Classes::read(&labels).ok());
        let classes = classes.filter(|classes| classes.indices().len() == samples.n_samples());
        Some(Self { samples, classes })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.samples.n_samples()
    }

    /// The sizes and the type of a sample.
    pub(super) fn about(&self) -> String {
        format!("{} {}", crate::text::shape(self.samples.sample_shape()), self.samples.dtype())
    }

    /// The names of the classes.
    pub(super) fn class_names(&self) -> Option<&[String]> {
        self.classes.as_ref().map(Classes::names)
    }

    /// The samples of each class.
    pub(super) fn class_sizes(&self) -> Option<Vec<usize>> {
        let classes = self.classes.as_ref()?;
        let mut sizes = vec![0; classes.n_classes()];
        classes.indices().iter().for_each(|&class| sizes[class] += 1);
        Some(sizes)
    }

    /// The class of a sample.
    pub(super) fn class(&self, row: usize) -> Option<&str> {
        let classes = self.classes.as_ref()?;
        classes.names().get(*classes.indices().get(row)?).map(String::as_str)
    }

    /// A picture of a sample, if it looks like one.
    pub(super) fn picture(&self, row: usize) -> Option<Picture> {
        let shape = match *self.samples.sample_shape() {
            [channels @ (1 | 3), height, width] if height > 1 && width > 1 => [channels, height, width],
            [height, width] if height > 3 && width > 3 => [1, height, width],
            _ => return None,
        };
        if row >= self.count() {
            return None;
        }
        Picture::from_chw(one(&self.samples, row).ok()?, shape, None)
    }
}

fn first<'a>(job: &'a Value, pointers: &[&str]) -> Option<&'a Value> {
    pointers.iter().find_map(|pointer| job.pointer(pointer)).filter(|value| !value.is_null())
}

/// A file, or the only one of a list.
fn open(value: &Value) -> Option<Dataset> {
    let one = match value {
        Value::Array(files) if files.len() == 1 => &files[0],
        Value::Array(_) => return None,
        one => one,
    };
    serde_json::from_value::<DataRef>(one.clone()).ok()?.open(&Inputs::none()).ok()
}

/// The rows of training samples by their names.
pub(super) struct Rows(Option<HashMap<String, usize>>);

impl Rows {
    pub(super) fn of(run: &Run, n_samples: usize, context: &Context) -> Self {
        let ids = run.written.job["ids"].clone();
        if ids.is_null() {
            return Self(None);
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
