//! A network that comes from an ONNX file.

use super::{Batching, Import, Input, Parameter, TrainedOn, Values};
use crate::budget::Budget;
use crate::error::{NetError, Result};
use crate::graph::{Graph, count};
use crate::onnx::{Detected, Detection, Dropped, InputShape, Model, Request, Surroundings, Tensor, detect, lower};
use mercer_run::names;
use std::collections::HashSet;
use std::path::Path;

/// The most elements that unmerging may add to the parameters.
const MAX_UNMERGED: usize = 1 << 27;

#[derive(Debug)]
pub(super) struct File {
    pub(super) model: Model,
    pub(super) detection: Detection,
    pub(super) inputs: Vec<Input>,
    /// The budget that is left for each lowering.
    budget: Budget,
}

impl File {
    pub(super) fn decode(bytes: &[u8], folder: Option<&Path>, import: &Import) -> Result<Self> {
        let batching = import.batching;
        let mut around = Surroundings::new(folder, Budget::new(import.limit, bytes.len()));
        let mut model = Model::decode(bytes, &mut around)?;
        let mut detection = detect(&mut model);
        // A tensor without elements cannot be trained and has no gradient.
        let tensors = detection.tensors.iter_mut();
        for detected in tensors.filter(|detected| detected.is_parameter && detected.tensor.numel() == 0) {
            (detected.is_parameter, detected.reason) = (false, "it has no elements".into());
        }
        // Old files list their initialisers among the inputs.
        let given: HashSet<&str> = model.graph.initializers.iter().map(|tensor| tensor.name.as_str()).collect();
        let inputs: Vec<Input> = model
            .graph
            .inputs
            .iter()
            .filter(|info| !given.contains(info.name.as_str()))
            .map(|info| Input::of_file(info, batching))
            .collect();
        // A function of tensors may have no input; a function of samples has at least one.
        if inputs.is_empty() && batching == Batching::Samples {
            return Err(NetError::Malformed { reason: "it has no input".into() });
        }
        if model.graph.outputs.is_empty() {
            return Err(NetError::Malformed { reason: "it has no output".into() });
        }
        for input in &inputs {
            let fixed: Vec<usize> = input.shape.iter().flatten().copied().flatten().collect();
            if count(&fixed).is_none() {
                let reason = format!("input {:?} is declared with a shape that is too large", input.name);
                return Err(NetError::Malformed { reason });
            }
        }
        let file = Self { model, detection, inputs, budget: around.budget };
        file.check_finite()?;
        Ok(file)
    }

    fn check_finite(&self) -> Result<()> {
        for detected in self.detection.tensors.iter().filter(|detected| detected.is_parameter) {
            self.parameter(detected)?;
        }
        Ok(())
    }

    fn parameter(&self, detected: &Detected) -> Result<Option<Parameter>> {
        let tensor = &detected.tensor;
        let Some(values) = Option::<Values>::from(&tensor.data) else { return Ok(None) };
        Parameter::new(tensor.name.clone(), tensor.shape.clone(), values, detected.reason.clone()).map(Some)
    }

    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let wanted = self.detection.tensors.iter().filter(|detected| detected.is_parameter);
        wanted.filter_map(|detected| self.parameter(detected).ok().flatten()).collect()
    }

    /// The running statistics of the batch normalisations, each once.
    pub(super) fn statistics(&self) -> Vec<Parameter> {
        let norms = self.model.graph.nodes.iter().filter(|node| node.op == "BatchNormalization");
        let mut seen = HashSet::new();
        let names = norms.flat_map(|node| node.inputs.iter().skip(3).take(2)).filter(|name| seen.insert(name.as_str()));
        let tensors: Vec<&Tensor> = names.filter_map(|name| self.initializer(name)).collect();
        let statistic = |tensor: &Tensor| {
            let values = Option::<Values>::from(&tensor.data)?;
            Parameter::new(tensor.name.clone(), tensor.shape.clone(), values, "running statistic".into()).ok()
        };
        tensors.into_iter().filter_map(statistic).collect()
    }

    fn initializer(&self, name: &str) -> Option<&Tensor> {
        self.model.graph.initializers.iter().find(|tensor| tensor.name == name)
    }

    /// Replaces the numbers of a running statistic.
    pub(super) fn set_statistic(&mut self, statistic: &Parameter) {
        let detected = self.detection.tensors.iter_mut().map(|detected| &mut detected.tensor);
        let own = self.model.graph.initializers.iter_mut().chain(detected);
        for tensor in own.filter(|tensor| tensor.name == statistic.name()) {
            tensor.data = statistic.values().into();
        }
    }

    pub(super) fn constants(&self) -> Vec<(String, Vec<usize>, String)> {
        let others = self.detection.tensors.iter().filter(|detected| !detected.is_parameter);
        others.map(|d| (d.tensor.name.clone(), d.tensor.shape.clone(), d.description())).collect()
    }

    pub(super) fn output_names(&self) -> Vec<String> {
        self.model.graph.outputs.iter().map(|output| output.name.clone()).collect()
    }

    pub(super) fn origin(&self) -> (String, i64) {
        (self.model.producer.clone(), self.model.opset)
    }

    /// What the metadata say about training.
    pub(super) fn trained_on(&self) -> Result<TrainedOn> {
        TrainedOn::read(&self.model.metadata, self.inputs.len())
    }

    pub(super) fn select(&mut self, include: &[String], exclude: &[String]) -> Result<()> {
        let all: Vec<&str> = self.detection.tensors.iter().map(|detected| detected.tensor.name.as_str()).collect();
        for pattern in include.iter().chain(exclude) {
            if !all.iter().any(|name| names::matches(pattern, name)) {
                let near = names::near(pattern, &all);
                return Err(NetError::Unknown { what: "parameter", name: pattern.clone(), near });
            }
        }
        let any = |patterns: &[String], name: &str| patterns.iter().any(|pattern| names::matches(pattern, name));
        for detected in &mut self.detection.tensors {
            if any(include, &detected.tensor.name) && detected.tensor.numel() > 0 {
                (detected.is_parameter, detected.reason) = (true, "included by name".into());
                detected.tied = None;
            }
            if any(exclude, &detected.tensor.name) {
                (detected.is_parameter, detected.reason) = (false, "excluded by name".into());
                detected.tied = None;
            }
        }
        self.check_finite()
    }

    /// Separates the parameters that the exporter merged, and restores the zero biases that it dropped.
    pub(super) fn unmerge(&mut self) -> Result<()> {
        let merged = |detected: &&mut Detected| detected.tied.as_ref().is_some_and(|tied| tied.merged);
        let elements: usize = self.detection.tensors.iter_mut().filter(merged).map(|found| found.tensor.numel()).sum();
        if elements > MAX_UNMERGED {
            let reason = format!("unmerging would give {elements} parameter values in all, which is too many");
            return Err(NetError::Setting(reason));
        }
        for detected in self.detection.tensors.iter_mut().filter(merged) {
            (detected.is_parameter, detected.tied) = (true, None);
        }
        for Dropped { nodes, detected } in std::mem::take(&mut self.detection.dropped) {
            for node in nodes {
                self.model.graph.nodes[node].inputs.push(detected.tensor.name.clone());
            }
            self.model.graph.initializers.push(detected.tensor.clone());
            self.detection.tensors.push(detected);
        }
        Ok(())
    }

    pub(super) fn lower(&self, samples: &[Vec<usize>]) -> Result<Graph> {
        let inputs: Vec<InputShape> = self
            .inputs
            .iter()
            .zip(samples)
            .map(|(input, sample)| InputShape {
                name: input.name.clone(),
                shape: input.file_shape(sample),
                batch: input.batch(),
                kind: input.kind,
            })
            .collect();
        let baked = self.inputs.iter().filter_map(|input| input.fixed_batch).find(|&size| size > 1);
        let tensors = &self.detection.tensors;
        lower(&Request { model: &self.model, tensors, inputs: &inputs, baked, budget: self.budget })
    }
}
