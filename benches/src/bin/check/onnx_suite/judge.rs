//! Runs a case and compares.

use super::case::{Case, DataSet};
use mercer_net::graph::{Batch, Graph, Meta};
use mercer_net::network::Batching;
use mercer_net::run::{Keep, Workspace};
use mercer_net::{Element, NetError, Network, Tensor, TensorData, numel};
use std::panic::AssertUnwindSafe;

/// How one way of running a case went.
#[derive(Debug)]
pub(super) enum Judgement {
    Passed,
    Unsupported(String),
    Mixing(String),
    Wrong(String),
}

impl Judgement {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unsupported(_) => "unsupported",
            Self::Mixing(_) => "mixing",
            Self::Wrong(_) => "WRONG",
        }
    }

    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Passed => "",
            Self::Unsupported(reason) | Self::Mixing(reason) | Self::Wrong(reason) => reason,
        }
    }

    pub(super) fn is_passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }
}

/// Both ways of running a case.
#[derive(Debug)]
pub(super) struct Verdict {
    /// As a function of tensors.
    pub(super) whole: Judgement,
    /// On samples along the leading axis, where the inputs share one.
    pub(super) samples: Option<Judgement>,
}

impl Verdict {
    pub(super) fn is_wrong(&self) -> bool {
        self.whole.is_wrong() || self.samples.as_ref().is_some_and(Judgement::is_wrong)
    }

    /// What is wrong.
    pub(super) fn complaint(&self) -> String {
        match &self.samples {
            Some(Judgement::Wrong(reason)) if !self.whole.is_wrong() => format!("as samples: {reason}"),
            _ => self.whole.reason().to_owned(),
        }
    }
}

/// Judges a case: the first version of it that is not refused for arguments that are not constants counts.
pub(super) fn judge(case: &Case) -> Verdict {
    let (models, data) = match (case.models(), case.data()) {
        (Ok(models), Ok(Some(data))) => (models, data),
        _ => {
            return Verdict {
                whole: Judgement::Unsupported("values that are not tensors of numbers".into()),
                samples: None,
            };
        }
    };
    let mut verdict = None;
    for (bytes, free) in models {
        let whole = guarded(|| all(case, &bytes, &data, free, Batching::Whole));
        let samples = shared_axis(&data, free).map(|_| guarded(|| all(case, &bytes, &data, free, Batching::Samples)));
        let next = Verdict { whole, samples };
        let refused = matches!(next.whole, Judgement::Unsupported(_)) && !next.is_wrong();
        if !refused {
            return next;
        }
        verdict = Some(next);
    }
    verdict.expect("a case has a model")
}

fn guarded(run: impl FnOnce() -> Judgement) -> Judgement {
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default();
        Judgement::Wrong(format!("panicked: {text}"))
    })
}

/// The size of the leading axis that all inputs have.
fn shared_axis(data: &[DataSet], free: usize) -> Option<usize> {
    let mut sizes = data.iter().flat_map(|set| set.inputs.iter().take(free).map(|input| input.shape.first().copied()));
    let first = sizes.next()??;
    (first > 0 && sizes.all(|size| size == Some(first))).then_some(first)
}

fn all(case: &Case, bytes: &[u8], data: &[DataSet], free: usize, batching: Batching) -> Judgement {
    let network = match Network::from_onnx_bytes(bytes, batching) {
        Ok(network) => network,
        Err(error) => return refusal(&error),
    };
    for set in data {
        let wide = |tensor: &Tensor| match &tensor.data {
            TensorData::F64(_) => true,
            TensorData::Int(values) => values.iter().any(|x| x.unsigned_abs() > 1 << 24),
            _ => false,
        };
        let inputs = &set.inputs[..free.min(set.inputs.len())];
        let result = if inputs.iter().chain(&set.outputs).any(wide) {
            one::<f64>(case, &network, inputs, &set.outputs, batching)
        } else {
            one::<f32>(case, &network, inputs, &set.outputs, batching)
        };
        match result {
            Err(error) => return refusal(&error),
            Ok(Some(reason)) => return Judgement::Wrong(reason),
            Ok(None) => {}
        }
    }
    Judgement::Passed
}

fn refusal(error: &NetError) -> Judgement {
    match error {
        NetError::Unsupported { .. } => Judgement::Unsupported(error.to_string()),
        NetError::MixesSamples { .. } => Judgement::Mixing(error.to_string()),
        other => Judgement::Wrong(format!("refused a valid model: {other}")),
    }
}

/// Runs one data set; says what differs, if something does.
fn one<T: Element>(
    case: &Case,
    network: &Network,
    inputs: &[Tensor],
    outputs: &[Tensor],
    batching: Batching,
) -> Result<Option<String>, NetError> {
    let samples = match batching {
        Batching::Samples => inputs[0].shape[0],
        Batching::Whole => 1,
    };
    let lead = usize::from(batching == Batching::Samples);
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|input| input.shape[lead..].to_vec()).collect();
    let graph = network.graph(&shapes)?;
    let weights = network.weights::<T>(&graph);
    let data: Vec<Vec<T>> = inputs.iter().map(Tensor::to_vec).collect();
    let slices: Vec<&[T]> = data.iter().map(Vec::as_slice).collect();
    let mut workspace = Workspace::new(graph.clone(), &Keep::Only(vec![]));
    workspace.forward(&weights, &slices, samples)?;
    if outputs.len() > graph.outputs().len() {
        return Ok(Some(format!("{} outputs instead of {}", graph.outputs().len(), outputs.len())));
    }
    for (expected, &(_, id)) in outputs.iter().zip(graph.outputs()) {
        let found = workspace.get(&weights, id);
        if let Some(reason) = differs(case, &graph, &graph.value(id).meta, found, samples, expected) {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

fn differs<T: Element>(
    case: &Case,
    graph: &Graph,
    meta: &Meta,
    found: &[T],
    samples: usize,
    expected: &Tensor,
) -> Option<String> {
    let whole = meta.batch.is_none() || graph.inputs().is_empty() || samples == 1;
    let theirs: Vec<f64> = expected.to_vec();
    if whole {
        if meta.shape != expected.shape {
            return Some(format!("shape {:?} instead of {:?}", meta.shape, expected.shape));
        }
        return numbers(case, found.iter().map(|x| x.wide()), &theirs);
    }
    // The samples lie outside of each value; in the file they are along an axis.
    let places = match meta.batch.as_ref()? {
        Batch::At(places) => places.iter().map(|place| (place.axis, place.major)).collect(),
        Batch::Untracked => vec![(0, 1)],
    };
    let mut last = format!("shape {:?} for one of {samples} samples, {:?} in the file", meta.shape, expected.shape);
    for (axis, major) in places {
        let mut shape = meta.shape.clone();
        if axis >= shape.len() {
            continue;
        }
        shape[axis] *= samples;
        if shape != expected.shape {
            continue;
        }
        let outside = numel(&meta.shape[..axis]) * major;
        let size = numel(&meta.shape);
        let inside = size / outside.max(1);
        let at = |index: usize| {
            let (rest, inner) = (index / inside.max(1), index % inside.max(1));
            let (outer, sample) = (rest / samples, rest % samples);
            found[sample * size + outer * inside + inner].wide()
        };
        match numbers(case, (0..theirs.len()).map(at), &theirs) {
            None => return None,
            Some(reason) => last = reason,
        }
    }
    Some(last)
}

/// As `numpy.testing.assert_allclose`: |ours − theirs| ≤ absolute + relative·|theirs|, infinities and NaN alike.
fn numbers(case: &Case, ours: impl Iterator<Item = f64>, theirs: &[f64]) -> Option<String> {
    let (relative, absolute) = case.tolerance;
    let mut count = 0;
    for (index, (ours, &theirs)) in ours.zip(theirs).enumerate() {
        let close = ours == theirs
            || (ours.is_nan() && theirs.is_nan())
            || (theirs.is_finite() && (ours - theirs).abs() <= absolute + relative * theirs.abs());
        if !close {
            return Some(format!("{ours} instead of {theirs} at element {index}"));
        }
        count += 1;
    }
    (count != theirs.len()).then(|| format!("{count} numbers instead of {}", theirs.len()))
}
