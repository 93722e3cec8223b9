//! Networks.

use crate::arrays::{Numbers, dataset, datasets};
use crate::failure::raised;
use crate::work::Resources;
use mercer::data::Labels;
use mercer::door::{predict_on, train_on};
use mercer::job::train::{EpochFindings, TrainingSpec};
use mercer::net::{self, arch::Architecture};
use mercer::spec::{ParameterSpec, open_network, saved_network};
use mercer::{Error, Json};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A network from a file. It never changes.
#[pyclass(frozen, module = "mercer._mercer")]
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) network: Arc<net::Network>,
    path: PathBuf,
    parameters: ParameterSpec,
}

/// A description in JSON or TOML, built with weights from a seed, as the bytes of an ONNX file.
fn built(description: &str, seed: u64) -> Result<Vec<u8>, Error> {
    let wrong = |error: &dyn std::fmt::Display| {
        Error::new(format!("the description of the network: {error}")).hint("`mercer help train` shows an example")
    };
    let architecture = Architecture::from_toml(description).map_err(|error| wrong(&error))?;
    let network = architecture.build(seed).map_err(|error| wrong(&error))?;
    network.to_onnx_bytes().map_err(|error| wrong(&error))
}

#[pymethods]
impl Network {
    /// Opens a file; `parameters` is a JSON document of the choice of parameters.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, parameters: &str, resources: Resources) -> PyResult<Self> {
        let parameters: ParameterSpec =
            serde_json::from_str(parameters).map_err(|error| raised(py, &Error::new(error.to_string())))?;
        let (place, how) = (path.clone(), parameters.clone());
        let network = resources.run(py, move |_| open_network(&place, &how))?;
        Ok(Self { network: Arc::new(network), path, parameters })
    }

    /// The ONNX file of a network that a text describes, with weights from a seed.
    #[staticmethod]
    fn build(py: Python<'_>, description: &str, seed: u64) -> PyResult<Vec<u8>> {
        built(description, seed).map_err(|error| raised(py, &error))
    }

    /// Names of the inputs, and whether they take whole numbers.
    #[getter]
    fn inputs(&self) -> Vec<(String, bool)> {
        let inputs = self.network.inputs().iter();
        inputs.map(|input| (input.name.clone(), input.is_integer())).collect()
    }

    /// Names of the outputs.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.network.output_names()
    }

    /// Names and shapes of the parameters.
    #[getter]
    fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        let own = self.network.parameters().iter();
        own.map(|parameter| (parameter.name().to_owned(), parameter.shape().to_vec())).collect()
    }

    /// What the file does differently from the module it was exported from.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        self.network.remarks()
    }

    /// The bytes of a file that holds this network with its weights.
    fn to_bytes(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let saved = saved_network(&self.path, &self.parameters, &self.network);
        saved.map(|saved| saved.bytes().to_vec()).map_err(|error| raised(py, &error))
    }

    /// The values of nodes (by default of the first output) on samples, in double precision or in single precision.
    fn values(
        &self,
        py: Python<'_>,
        inputs: Vec<(String, Bound<'_, PyAny>)>,
        nodes: Vec<Option<String>>,
        double: bool,
        resources: Resources,
    ) -> PyResult<Vec<Numbers>> {
        let (inputs, network) = (datasets(&inputs)?, Arc::clone(&self.network));
        resources.run(py, move |context| {
            let one = |node: &Option<String>| {
                context.check().map_err(|_| Error::interrupted("interrupted"))?;
                match double {
                    true => predict_on::<f64>(&network, &inputs, node.as_deref()).map(Numbers::new),
                    false => predict_on::<f32>(&network, &inputs, node.as_deref()).map(Numbers::new),
                }
            };
            nodes.iter().map(one).collect()
        })
    }

    /// Trains a copy: the bytes of its file, and the history as JSON. Labels that are whole numbers are classes.
    fn train(
        &self,
        py: Python<'_>,
        inputs: Vec<(String, Bound<'_, PyAny>)>,
        labels: &Bound<'_, PyAny>,
        settings: &str,
        double: bool,
        resources: Resources,
    ) -> PyResult<(Vec<u8>, String)> {
        let wrong = |error: serde_json::Error| raised(py, &Error::new(format!("the settings of training: {error}")));
        let settings: TrainingSpec = serde_json::from_str(settings).map_err(wrong)?;
        let (inputs, labels) = (datasets(&inputs)?, dataset("labels", labels)?);
        let (path, parameters) = (self.path.clone(), self.parameters.clone());
        resources.run(py, move |context| {
            let (mut network, labels) = (open_network(&path, &parameters)?, Labels::read(&labels)?);
            let samples = (&inputs[..], &labels);
            let history = match double {
                true => train_on::<f64>(&mut network, samples, &settings, context)?,
                false => train_on::<f32>(&mut network, samples, &settings, context)?,
            };
            let history: Vec<EpochFindings> = history.iter().map(EpochFindings::new).collect();
            Ok((network.to_onnx_bytes()?, history.json()?))
        })
    }
}
