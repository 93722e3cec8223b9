//! From arguments to a kernel.

use super::KernelArguments;
use super::kind::KernelKind;
use crate::failure::Failure;
use crate::options::Real;
use mercer::kernel::empirical::Choice;
use mercer::kernel::{FeatureMap, Kernel, Ntk, Selection};
use mercer::net::Network;

/// A kernel, and its feature map if it has one.
pub(super) struct Built<T: Real> {
    kernel: Box<dyn Kernel<T>>,
    map: Option<Box<dyn FeatureMap<T>>>,
    choices: Vec<Choice>,
}

impl<T: Real> Built<T> {
    pub(super) fn kernel(&self) -> &dyn Kernel<T> {
        &*self.kernel
    }

    pub(super) fn map(&self) -> Option<&dyn FeatureMap<T>> {
        self.map.as_deref()
    }

    pub(super) fn choices(&self) -> Vec<Choice> {
        self.choices.clone()
    }

    /// What the numbers depend on.
    pub(super) fn identity(&self) -> serde_json::Value {
        self.kernel.identity()
    }
}

impl KernelArguments {
    /// Which outputs and parameters.
    fn selection(&self) -> Selection {
        Selection {
            output: self.output.clone(),
            components: self.components.clone(),
            combine: self.combine.clone(),
            parameters: self.params.clone(),
        }
    }

    pub(super) fn build<T: Real>(&self, network: &Network, shapes: &[Vec<usize>]) -> Result<Built<T>, Failure> {
        let KernelKind::Tangent(kind) = self.kind else {
            return Err(Failure::new(format!("--kind {} is not there yet", self.kind)));
        };
        let ntk = Ntk::<T>::of(network, shapes, kind, &self.selection()).map_err(|error| self.failure(error))?;
        let ntk = if self.by_layer { ntk.by_layer() } else { ntk };
        let choices = ntk.choices();
        Ok(Built { kernel: Box::new(ntk), map: None, choices })
    }
}
