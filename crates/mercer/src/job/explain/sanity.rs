//! Whether attributions depend on what the network has learnt.
//!
//! The weights of the network are shuffled within their tensors, from the last layer to the first, and everything is
//! done again: kernel, surrogate, attributions. Attributions that stay the same do not explain the trained network.

use super::methods::Problem;
use super::opened::OpenedExplain;
use super::validate::{SanityFindings, Validation, ValidationFindings};
use super::work::Explained;
use crate::Error;
use crate::job::surrogate::{FitTo, KernelRows, SurrogateSpec};
use crate::spec::{NetworkSource, saved_network};
use mercer_data::random::stream;
use mercer_kernel::Real;
use mercer_kernel::empirical::layer_names;
use mercer_learn::metrics::accuracy;
use mercer_lens::decisions;
use mercer_lens::sanity::agreement;
use mercer_net::Network;
use mercer_run::Context;
use ndarray::Array2;
use rand::seq::SliceRandom;

/// Networks that are looked at. A network with more layers is shuffled several layers at a time.
const MOST_STAGES: usize = 8;

impl OpenedExplain {
    /// Compares attributions with those of networks with shuffled weights.
    pub(super) fn sanity<T: Real>(
        &self,
        main: &Explained,
        (problem, attribution): (&Problem<'_>, &Array2<f64>),
        context: &Context,
    ) -> Result<ValidationFindings, Error> {
        let shapes = self.known.samples.shapes();
        let network = self.known.network()?;
        let failed = |error| Error::of_network(&self.known.path, error);
        let graph = network.graph(&shapes).map_err(failed)?;
        let copy = saved_network(&self.known.path, &self.job.parameters, network)?;
        let names = layer_names(&graph);
        let mut layers: Vec<&String> = Vec::new();
        names.iter().for_each(|name| {
            if !layers.contains(&name) {
                layers.push(name);
            }
        });
        let n_stages = layers.len().min(MOST_STAGES);
        let mut stages = Vec::with_capacity(n_stages);
        for stage in 1..=n_stages {
            let n_shuffled = (stage * layers.len()).div_ceil(n_stages);
            let first = layers.len() - n_shuffled;
            let mut weights = network.weights::<T>(&graph);
            for (at, values) in weights.parameters.iter_mut().enumerate() {
                if layers[first..].contains(&&names[at]) {
                    values.shuffle(&mut stream(self.job.seed, &format!("sanity/parameter {at}")));
                }
            }
            let mut shuffled = copy.open().map_err(failed)?;
            shuffled.set_weights(&weights);
            let network_accuracy = self.accuracy_of::<T>(&shuffled, context)?;
            let found = self.attribution_of::<T>(shuffled, main, problem, &context.quiet())?;
            let correlation = agreement(attribution.view(), found.view())?.correlation;
            let layer = layers[first].clone();
            stages.push(SanityFindings { layer, n_shuffled, correlation, network_accuracy });
            context.report(stage, n_stages, "networks");
        }
        Ok(ValidationFindings { sanity: stages, ..ValidationFindings::new(Validation::Sanity, 0) })
    }

    fn accuracy_of<T: Real>(&self, network: &Network, context: &Context) -> Result<Option<f64>, Error> {
        let Some(correct) = &self.test.classes else { return Ok(None) };
        let scores = self.known.logits.scores::<T>(network, &self.test.samples.inputs, &context.quiet())?;
        Ok(Some(accuracy(&decisions(scores.view()), correct)?))
    }

    /// The attributions by the kernel of another network, with the same machine and penalty.
    fn attribution_of<T: Real>(
        &self,
        network: Network,
        main: &Explained,
        problem: &Problem<'_>,
        context: &Context,
    ) -> Result<Array2<f64>, Error> {
        let to_network = main.spec.to == FitTo::Network;
        let train = &self.known.samples.inputs;
        let scores = match to_network {
            true => Some(self.known.logits.scores::<T>(&network, train, context)?),
            false => None,
        };
        let source = NetworkSource::Trained(network);
        let mut rows = KernelRows::<T>::build(problem.spec.clone(), &source, &self.known.samples.shapes())?;
        rows.compute(train, context)?;
        let spec = SurrogateSpec { penalty: main.findings.penalty.into_iter().collect(), ..main.spec.clone() };
        let scores = scores.as_ref().map(|scores| scores.view());
        let (surrogate, _) = spec.fit(&rows, &self.known.classes, scores, self.job.seed, context)?;
        problem.attribution(&rows, &surrogate, context)
    }
}
