//! From arguments to a kernel.

use super::KernelArguments;
use super::kind::KernelKind;
use super::source::Source;
use crate::failure::Failure;
use crate::options::Real;
use mercer::kernel::empirical::Choice;
use mercer::kernel::infinite::{Limit, Of, Rule};
use mercer::kernel::montecarlo::Ensemble;
use mercer::kernel::sketch::{Sketch, Spec, parse};
use mercer::kernel::{
    Activations, Conjugate, FeatureMap, Features, Kernel, Kind, MonteCarlo, Normalised, Ntk, RandomNetworks, Selection,
};
use mercer::net::Network;
use std::sync::Arc;

/// A kernel, and its feature map if it has one.
pub(super) struct Built<T: Real> {
    kernel: Arc<dyn Kernel<T>>,
    map: Option<Arc<dyn FeatureMap<T>>>,
    choices: Vec<Choice>,
}

impl<T: Real> Built<T> {
    fn exact(ntk: Ntk<T>) -> Self {
        let choices = ntk.choices();
        Self { kernel: Arc::new(ntk), map: None, choices }
    }

    fn of_kernel(kernel: impl Kernel<T> + 'static) -> Self {
        Self { kernel: Arc::new(kernel), map: None, choices: Vec::new() }
    }

    fn of_map(map: impl FeatureMap<T> + 'static) -> Self {
        let map: Arc<dyn FeatureMap<T>> = Arc::new(map);
        Self { kernel: Arc::new(Features(Arc::clone(&map))), map: Some(map), choices: Vec::new() }
    }

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

    pub(super) fn build<T: Real>(&self, source: &Source, shapes: &[Vec<usize>]) -> Result<Built<T>, Failure> {
        let network = source.network();
        let rule = self.random.rule(source.initialisation());
        let failed = |error| self.failure(error);
        let mut built = match (self.kind, &self.sketch) {
            (KernelKind::Tangent(kind), None) => {
                let ntk = Ntk::of(network, shapes, kind, &self.selection()).map_err(failed)?;
                Built::exact(if self.by_layer { ntk.by_layer() } else { ntk })
            }
            (KernelKind::Tangent(kind), Some(text)) => {
                let spec = self.spec(kind, text)?;
                Built::of_map(Sketch::from_spec(network, shapes, &spec).map_err(failed)?)
            }
            (KernelKind::Conjugate, _) => {
                let features = Conjugate::new(network, shapes, self.output.as_deref()).map_err(failed)?;
                Built::of_map(if self.without_bias { features.without_bias() } else { features })
            }
            (KernelKind::Embedding, _) => {
                let nodes: Vec<&str> = self.at.iter().map(String::as_str).collect();
                Built::of_map(Activations::new(network, shapes, &nodes).map_err(failed)?)
            }
            (KernelKind::Limit(of), _) => {
                Built::of_kernel(Limit::of_network(network, shapes, &rule, of).map_err(failed)?)
            }
            (KernelKind::MonteCarlo(of), _) => self.mean(network, shapes, &rule, of)?,
        };
        if self.normalise {
            built.kernel = Arc::new(Normalised::new(built.kernel));
        }
        Ok(built)
    }

    /// The mean over random networks; with its standard errors, if it has any.
    fn mean<T: Real>(
        &self,
        network: &Network,
        shapes: &[Vec<usize>],
        rule: &Rule,
        of: Of,
    ) -> Result<Built<T>, Failure> {
        let failed = |error| self.failure(error);
        let ensemble = Ensemble::new(network, shapes, rule, self.seed).map_err(failed)?;
        let networks = RandomNetworks::new(Arc::new(ensemble), self.random.samples()).map_err(failed)?;
        if self.features && of == Of::Nngp {
            return Ok(Built::of_map(networks));
        }
        let kernel = MonteCarlo::of(networks, of).map_err(failed)?;
        let errors = self.random.samples() > 1 && !self.normalise;
        Ok(Built::of_kernel(if errors { kernel.with_errors().map_err(failed)? } else { kernel }))
    }

    fn spec(&self, kind: Kind, text: &str) -> Result<Spec, Failure> {
        let (method, k) = parse(text).map_err(|error| Failure::new(format!("--sketch {text}: {error}")))?;
        let spec = Spec::new(method, k, kind);
        Ok(Spec { total: self.sketch_total, seed: self.seed, selection: self.selection(), ..spec })
    }

    /// Flags that mean nothing together are refused instead of ignored.
    pub(super) fn check_flags(&self) -> Result<(), Failure> {
        self.random.check(self.kind)?;
        let tangent = matches!(self.kind, KernelKind::Tangent(_));
        let chosen = [
            ("--params", !self.params.is_empty()),
            ("--by-layer", self.by_layer),
            ("--components", self.components.is_some()),
            ("--combine", self.combine.is_some()),
            ("--sketch", self.sketch.is_some()),
        ];
        if let Some((flag, _)) = chosen.iter().find(|(_, given)| *given && !tangent) {
            return Err(Failure::new(format!("{flag} is for tangent kernels, not for --kind {}", self.kind))
                .hint("--kind trace, pseudo, full or logit:I"));
        }
        if self.output.is_some() && self.kind.draws_weights() {
            return Err(Failure::new(format!("--output: --kind {} is of the network's first output", self.kind)));
        }
        if self.kind == KernelKind::Embedding && self.at.is_empty() {
            return Err(Failure::new("--kind embedding: which nodes?").hint("--at NODE,NODE; `mercer info` lists them"));
        }
        if self.kind != KernelKind::Embedding && !self.at.is_empty() {
            return Err(Failure::new(format!("--at is for --kind embedding, not for {}", self.kind))
                .hint("--output NAME gives the kernel of another value"));
        }
        if self.without_bias && self.kind != KernelKind::Conjugate {
            return Err(Failure::new("--without-bias is for --kind ck"));
        }
        if self.kind == KernelKind::Tangent(Kind::Full) && self.sketch.is_some() {
            return Err(Failure::new("--sketch: a full kernel has no sketch").hint("--kind trace or pseudo"));
        }
        if self.sketch.is_some() && self.by_layer {
            return Err(Failure::new("--by-layer: a sketch mixes the layers").hint("leave --sketch out"));
        }
        if self.features && (self.normalise || !self.against.is_empty()) {
            let flag = if self.normalise { "--normalise" } else { "--against" };
            return Err(Failure::new(format!("--features writes the features of --data; {flag} is for matrices")));
        }
        Ok(())
    }
}
