//! Kernels of arrays.

use crate::arrays::{Exposed, Numbers, datasets};
use crate::failure::raised;
use crate::network::Network;
use crate::work::Resources;
use mercer::Error;
use mercer::data::Dataset;
use mercer::door::IntoRecipe;
use mercer::kernel::gram::{FeatureRun, Gram, InMemory};
use mercer::kernel::{Built, Real, Recipe};
use mercer::run::Context;
use ndarray::ArrayD;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel as a function of arrays. What does not depend on the samples is prepared once per shape of a sample.
#[pyclass(frozen, module = "mercer._mercer")]
#[derive(Debug)]
pub(crate) struct Kernel {
    content: Arc<Content>,
}

/// Sample shapes, and the kernel that is prepared for them.
type Prepared<T> = Mutex<Option<(Vec<Vec<usize>>, Built<T>)>>;

#[derive(Debug)]
struct Content {
    recipe: Recipe,
    network: Option<Arc<mercer::net::Network>>,
    single: Prepared<f32>,
    double: Prepared<f64>,
}

/// A scalar that kernels are computed in.
trait Computed: Real + Exposed {
    fn prepared(content: &Content) -> &Prepared<Self>;
}

impl Computed for f32 {
    fn prepared(content: &Content) -> &Prepared<f32> {
        &content.single
    }
}

impl Computed for f64 {
    fn prepared(content: &Content) -> &Prepared<f64> {
        &content.double
    }
}

/// Named arrays, one per input of the network.
type Arrays<'py> = Vec<(String, Bound<'py, PyAny>)>;

#[pymethods]
impl Kernel {
    /// A kernel of the kernel language, and its network.
    #[new]
    #[pyo3(signature = (text, network = None))]
    fn new(py: Python<'_>, text: &str, network: Option<&Network>) -> PyResult<Self> {
        let recipe = text.into_recipe().map_err(|error| raised(py, &error))?;
        if recipe.needs_network() && network.is_none() {
            let error = Error::new(format!("the kernel {text} needs a network")).hint("‹net› Network(\"model.onnx\")");
            return Err(raised(py, &error));
        }
        let network = network.map(|network| Arc::clone(&network.network));
        let content = Content { recipe, network, single: Mutex::default(), double: Mutex::default() };
        Ok(Self { content: Arc::new(content) })
    }

    /// The kernel in its shortest form.
    #[getter]
    fn text(&self) -> String {
        self.content.recipe.to_string()
    }

    /// The kernel of samples with themselves, or with others.
    fn gram(
        &self,
        py: Python<'_>,
        rows: Arrays<'_>,
        columns: Option<Arrays<'_>>,
        double: bool,
        resources: Resources,
    ) -> PyResult<Numbers> {
        let (rows, columns) = (datasets(&rows)?, columns.as_deref().map(datasets).transpose()?);
        let content = Arc::clone(&self.content);
        resources.run(py, move |context| match double {
            true => content.gram::<f64>(&rows, columns.as_deref(), context).map(Numbers::new),
            false => content.gram::<f32>(&rows, columns.as_deref(), context).map(Numbers::new),
        })
    }

    /// The features of samples, for a kernel that has finitely many.
    fn features(&self, py: Python<'_>, rows: Arrays<'_>, double: bool, resources: Resources) -> PyResult<Numbers> {
        let (rows, content) = (datasets(&rows)?, Arc::clone(&self.content));
        resources.run(py, move |context| match double {
            true => content.features::<f64>(&rows, context).map(Numbers::new),
            false => content.features::<f32>(&rows, context).map(Numbers::new),
        })
    }
}

impl Content {
    /// The kernel for samples of these shapes.
    fn built<T: Computed>(&self, inputs: &[Dataset]) -> Result<Built<T>, Error> {
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|set| set.sample_shape().to_vec()).collect();
        let kept = || T::prepared(self).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((same, built)) = &*kept()
            && *same == shapes
        {
            return Ok(built.clone());
        }
        let built = self.recipe.build::<T>(self.network.as_deref(), &shapes)?;
        *kept() = Some((shapes, built.clone()));
        Ok(built)
    }

    fn gram<T: Computed>(
        &self,
        rows: &[Dataset],
        columns: Option<&[Dataset]>,
        context: &Context,
    ) -> Result<ArrayD<T>, Error> {
        let shapes = |sets: &[Dataset]| sets.iter().map(|set| set.sample_shape().to_vec()).collect::<Vec<_>>();
        if let Some(columns) = columns.filter(|columns| shapes(columns) != shapes(rows)) {
            let text = format!("samples of shape {:?} beside samples of shape {:?}", shapes(rows), shapes(columns));
            return Err(Error::with_code("shape", text));
        }
        let built = self.built::<T>(rows)?;
        let gram = Gram::new(&*built.kernel, rows);
        let gram = if let Some(columns) = columns { gram.against(columns) } else { gram };
        Ok(gram.to_kernel(context)?)
    }

    fn features<T: Computed>(&self, rows: &[Dataset], context: &Context) -> Result<ArrayD<T>, Error> {
        let map = self.built::<T>(rows)?.map.ok_or_else(|| {
            Error::new(format!("the kernel {} has no finite features", self.recipe))
                .hint("ck, embedding, directions and sketches have features")
        })?;
        let run = FeatureRun::new(&*map, rows);
        let sink = InMemory::new(run.layout());
        run.run(&run.layout().all_tiles(), &sink, context)?;
        sink.into_arrays().pop().ok_or_else(|| Error::new("this kernel has no features"))
    }
}
