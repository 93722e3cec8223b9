//! What the samples are seen through: layers, the data itself, features of kernels.

use super::opened::OpenedShift;
use crate::Error;
use crate::job::surrogate::KernelRows;
use crate::spec::{KernelSpec, NetworkSource};
use mercer_data::{Dataset, RowBlock};
use mercer_kernel::gram::Gram;
use mercer_kernel::{FeatureMap, Kernel, Real};
use mercer_lens::shift::{Landmarks, SparseProjection};
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::index;
use std::ops::Range;
use std::sync::Arc;

/// A view of the samples.
pub(super) struct ViewSource<T: Real> {
    pub(super) name: String,
    /// Numbers per sample before the reduction.
    pub(super) n_features: usize,
    projection: Option<SparseProjection>,
    origin: Origin<T>,
}

/// Where the numbers come from.
enum Origin<T: Real> {
    /// This layer of the forward pass.
    Layer(usize),
    /// The samples themselves.
    Data,
    /// The features of a kernel.
    Map(Arc<dyn FeatureMap<T>>, KernelSpec),
    /// Kernel values with landmarks, as features.
    Landmarks { kernel: Arc<dyn Kernel<T>>, samples: Vec<Dataset>, map: Landmarks, spec: KernelSpec },
}

/// The kernel of a text, with the network if it needs one.
pub(super) fn kernel<T: Real>(
    text: &str,
    opened: (&NetworkSource, &[Vec<usize>]),
    job: &super::ShiftJob,
) -> Result<KernelRows<T>, Error> {
    let (source, shapes) = opened;
    let spec = KernelSpec {
        kernel: Some(text.to_owned()),
        net: job.net.clone().or_else(|| job.from.clone()),
        parameters: job.parameters.clone(),
        seed: job.seed,
        ..KernelSpec::default()
    };
    if spec.recipe(source)?.needs_network() && source.network().is_none() {
        return Err(Error::new(format!("‹kernel› {text}: this kernel is computed from a network"))
            .hint("‹net› MODEL.onnx, or a function of the data such as rbf(lengthscale=2)"));
    }
    KernelRows::build(spec, source, shapes)
}

impl<T: Real> ViewSource<T> {
    /// All views: layers or the data, then kernels.
    pub(super) fn all(opened: &OpenedShift, context: &Context) -> Result<Vec<Self>, Error> {
        let mut found = Vec::new();
        let mut add = |name: &str, n_features: usize, origin: Origin<T>| {
            let (to, seed) = (opened.job.reduce_to, opened.job.seed);
            let projection = (n_features > to).then(|| SparseProjection::draw(n_features, to, seed));
            found.push(Self { name: name.to_owned(), n_features, projection, origin });
        };
        match &opened.layers {
            Some(layers) => {
                for (at, (name, width)) in layers.names().iter().zip(layers.widths()).take(opened.n_layers).enumerate()
                {
                    add(name, width, Origin::Layer(at));
                }
            }
            None => add("data", opened.reference.shapes().iter().flatten().product(), Origin::Data),
        }
        for text in &opened.job.kernels {
            let rows = kernel::<T>(text, (&opened.source, &opened.reference.shapes()), &opened.job)?;
            let spec = rows.spec.clone();
            match rows.map() {
                Some(map) => add(text, map.n_features(), Origin::Map(Arc::clone(map), spec)),
                None => {
                    let samples = landmarks::<T>(opened)?;
                    let kernel = Arc::clone(&rows.built.kernel);
                    let gram = Gram::new(&*kernel, &samples).to_wide_kernel(context);
                    let map = Landmarks::new(gram.map_err(|error| spec.failure(error))?.view())?;
                    add(text, map.n_features(), Origin::Landmarks { kernel, samples, map, spec });
                }
            }
        }
        Ok(found)
    }

    /// The numbers per sample after the reduction, if there is one.
    pub(super) fn reduced_to(&self) -> Option<usize> {
        self.projection.as_ref().map(SparseProjection::n_results)
    }

    /// What is approximate about it, in words.
    pub(super) fn approximation(&self) -> Option<String> {
        let name = &self.name;
        match (&self.origin, self.reduced_to()) {
            (Origin::Landmarks { samples, .. }, _) => {
                let count = samples.first().map_or(0, Dataset::n_samples);
                Some(format!("{name} is seen through {count} landmarks (Nyström's method)"))
            }
            (_, Some(to)) => {
                Some(format!("{name} was reduced from {} to {to} numbers by a random projection", self.n_features))
            }
            _ => None,
        }
    }

    /// The numbers of some samples, a row each, from the layers of the forward pass or from the samples.
    pub(super) fn features(
        &self,
        layers: &[Array2<T>],
        (inputs, rows): (&[Dataset], Range<usize>),
        context: &Context,
    ) -> Result<Array2<T>, Error> {
        match &self.origin {
            Origin::Layer(at) => self.reduced(layers[*at].view()),
            Origin::Data => {
                let block = RowBlock::<T>::read(inputs, rows.clone())?;
                let slices = block.slices();
                let parts: Vec<ArrayView2<'_, T>> = slices
                    .iter()
                    .map(|slice| ArrayView2::from_shape((rows.len(), slice.len() / rows.len().max(1)), slice))
                    .collect::<Result<_, _>>()
                    .map_err(|error| Error::new(format!("the samples have another shape: {error}")))?;
                match &parts[..] {
                    [one] => self.reduced(*one),
                    several => {
                        let joined = ndarray::concatenate(Axis(1), several);
                        self.reduced(joined.map_err(|error| Error::new(error.to_string()))?.view())
                    }
                }
            }
            Origin::Map(map, spec) => {
                let block = RowBlock::<T>::read(inputs, rows.clone())?;
                let mut values = vec![T::zero(); rows.len() * self.n_features];
                map.features(&block.slices(), rows.len(), &mut values).map_err(|error| spec.failure(error))?;
                let values = ArrayView2::from_shape((rows.len(), self.n_features), &values);
                self.reduced(values.map_err(|error| Error::new(error.to_string()))?)
            }
            Origin::Landmarks { kernel, samples, map, spec } => {
                let rows: Vec<usize> = rows.collect();
                let own = inputs.iter().map(|set| set.subset(&rows)).collect::<Result<Vec<_>, _>>()?;
                let values = Gram::new(&**kernel, &own).against(samples).to_wide_kernel(context);
                let values = map.features(values.map_err(|error| spec.failure(error))?.view())?;
                self.reduced(values.mapv(T::narrow).view())
            }
        }
    }

    fn reduced(&self, values: ArrayView2<'_, T>) -> Result<Array2<T>, Error> {
        Ok(match &self.projection {
            Some(projection) => projection.apply(values)?.mapv(T::narrow),
            None => values.to_owned(),
        })
    }
}

/// Some samples of both sets, at random.
fn landmarks<T: Real>(opened: &OpenedShift) -> Result<Vec<Dataset>, Error> {
    let n_first = opened.reference.n_samples;
    let test = opened.test.as_ref().map_or(&[][..], |test| &test.inputs);
    let n_rows = n_first + test.first().map_or(0, Dataset::n_samples);
    let mut random = mercer_data::random::stream(opened.job.seed, "shift/landmarks");
    let mut rows = index::sample(&mut random, n_rows, opened.job.landmarks.min(n_rows)).into_vec();
    rows.sort_unstable();
    let cut = rows.partition_point(|&row| row < n_first);
    let (own, other) = rows.split_at(cut);
    let other: Vec<usize> = other.iter().map(|row| row - n_first).collect();
    let mut found = Vec::new();
    for (at, set) in opened.reference.inputs.iter().enumerate() {
        let mut values = set.select::<T>(own)?;
        if let Some(test) = test.get(at) {
            let more = test.select::<T>(&other)?;
            values = ndarray::concatenate(Axis(0), &[values.view(), more.view()])
                .map_err(|error| Error::new(format!("landmarks: {error}")))?;
        }
        found.push(Dataset::from_array("landmarks", values.view())?);
    }
    Ok(found)
}
