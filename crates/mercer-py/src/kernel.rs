//! Kernels of arrays.

use crate::arrays::{Numbers, datasets};
use crate::failure::raised;
use crate::network::Network;
use crate::work::Resources;
use mercer::Error;
use mercer::data::Dataset;
use mercer::door::{IntoRecipe, features_on, gram_on};
use mercer::kernel::{Built, Real, Recipe};
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
trait Computed: Real {
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
            true => gram_on(&content.built::<f64>(&rows)?, &rows, columns.as_deref(), context).map(Numbers::new),
            false => gram_on(&content.built::<f32>(&rows)?, &rows, columns.as_deref(), context).map(Numbers::new),
        })
    }

    /// The features of samples, for a kernel that has finitely many.
    fn features(&self, py: Python<'_>, rows: Arrays<'_>, double: bool, resources: Resources) -> PyResult<Numbers> {
        let (rows, content) = (datasets(&rows)?, Arc::clone(&self.content));
        resources.run(py, move |context| match double {
            true => features_on(&content.built::<f64>(&rows)?, &rows, context).map(Numbers::new),
            false => features_on(&content.built::<f32>(&rows)?, &rows, context).map(Numbers::new),
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
}
