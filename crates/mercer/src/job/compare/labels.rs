//! What linearised networks learn, and how right they are.

use super::CompareJob;
use crate::Error;
use crate::spec::{NetworkLogits, NetworkSource, Opening, Samples};
use mercer_data::Labels;
use mercer_lens::decisions;
use mercer_net::Network;
use ndarray::{Array2, ArrayView2, Axis, concatenate, s};

/// The labels of the samples, and the test samples with theirs.
#[derive(Debug)]
pub(super) struct Known {
    /// A column per output. Classes are one-hot, or ±1 for a single output.
    pub(super) targets: Array2<f64>,
    /// The classes of the samples.
    pub(super) classes: Option<Vec<usize>>,
    pub(super) test: Option<TestSamples>,
}

/// Samples of predictions.
#[derive(Debug)]
pub(super) struct TestSamples {
    pub(super) samples: Samples,
    pub(super) classes: Option<Vec<usize>>,
}

impl Known {
    /// Reads labels, and opens test samples; none without labels.
    pub(super) fn open(
        job: &CompareJob,
        samples: &Samples,
        (network, logits): (&Network, &NetworkLogits),
        opening: Opening<'_>,
    ) -> Result<Option<Self>, Error> {
        let Some(labels) = &samples.labels else { return Ok(None) };
        check_length("labels", labels, samples.n_samples)?;
        let n_outputs = logits.n_outputs();
        let (targets, classes) = match labels {
            Labels::Targets(numbers) if numbers.ncols() != n_outputs => {
                let text = format!(
                    "‹labels›: {} numbers per sample, but the network has {n_outputs} outputs",
                    numbers.ncols()
                );
                return Err(Error::new(text));
            }
            Labels::Targets(numbers) => (numbers.clone(), None),
            Labels::Classes(own) => {
                let (found, expected) = (own.n_classes(), logits.n_classes());
                if found > expected {
                    let text = format!("‹labels›: there are {found} classes, but the network has {expected}");
                    return Err(Error::new(text).hint("‹classes› names the classes in the order of the outputs"));
                }
                let classes = own.indices();
                let value = |(row, column): (usize, usize)| match n_outputs {
                    1 => 2.0 * classes[row] as f64 - 1.0,
                    _ => f64::from(u8::from(classes[row] == column)),
                };
                (Array2::from_shape_fn((classes.len(), n_outputs), value), Some(classes.to_vec()))
            }
        };
        let test = match job.test.is_empty() {
            true => None,
            false => Some(TestSamples::open(job, samples, network, opening)?),
        };
        Ok(Some(Self { targets, classes, test }))
    }
}

impl TestSamples {
    fn open(job: &CompareJob, samples: &Samples, network: &Network, opening: Opening<'_>) -> Result<Self, Error> {
        let options = job.data.reading(&job.test, job.test_labels.as_ref()).learnt_from(samples);
        let given = Samples::given("test", &job.test, &options, network, &samples.columns, opening)?;
        let given = given.in_order_of("test-labels", network, None, &options)?;
        if given.shapes() != samples.shapes() {
            let text = format!("‹test› {}: samples of shape {:?}", given.places(), given.shapes());
            return Err(Error::new(format!("{text}, but the training samples have {:?}", samples.shapes())));
        }
        let classes = match (&given.labels, &samples.labels) {
            (None, _) => None,
            (Some(labels), known) => {
                check_length("test-labels", labels, given.n_samples)?;
                match (labels, known) {
                    (Labels::Classes(own), Some(Labels::Classes(known))) => {
                        let wrong = |error| Error::new(format!("‹test-labels›: {error}"));
                        Some(own.with_names(known.names()).map_err(wrong)?.indices().to_vec())
                    }
                    (Labels::Targets(_), Some(Labels::Targets(_))) => None,
                    _ => return Err(Error::new("‹test-labels›: the samples have classes, or numbers, but not both")),
                }
            }
        };
        Ok(Self { samples: given, classes })
    }
}

fn check_length(setting: &str, labels: &Labels, n_samples: usize) -> Result<(), Error> {
    if labels.n_samples() == n_samples {
        return Ok(());
    }
    let text = format!("‹{setting}›: {} labels for {n_samples} samples", labels.n_samples());
    Err(Error::with_code("sample-count", text).hint("samples and labels must be in the same order"))
}

/// The outputs of a network, without the score of the first of two classes that a single output does not have.
pub(super) fn outputs(logits: &NetworkLogits, scores: Array2<f64>) -> Array2<f64> {
    let first = scores.ncols() - logits.n_outputs();
    scores.slice_move(s![.., first..])
}

/// The share of the samples whose class has the largest output; a single output decides by its sign.
pub(super) fn accuracy(outputs: ArrayView2<'_, f64>, classes: Option<&[usize]>) -> Option<f64> {
    let classes = classes.filter(|classes| !classes.is_empty())?;
    let decided = match outputs.ncols() {
        1 => decisions(concatenate![Axis(1), Array2::zeros((outputs.nrows(), 1)), outputs].view()),
        _ => decisions(outputs),
    };
    let right = decided.iter().zip(classes).filter(|(decided, class)| decided == class).count();
    Some(right as f64 / classes.len() as f64)
}

/// Opens the samples of kernels, with the labels in the order of the outputs.
pub(super) fn samples(job: &CompareJob, source: &NetworkSource, opening: Opening<'_>) -> Result<Samples, Error> {
    let samples = source.samples("data", &job.data.data, &job.data, &[], opening)?;
    samples.hint(source.network(), opening)?;
    match source.network() {
        Some(network) => samples.in_order_of("labels", network, None, &job.data),
        None => Ok(samples),
    }
}
