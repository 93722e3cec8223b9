//! Running statistics of batch normalisations: numbers of a network that training measures and does not optimise.
//!
//! They are not parameters: they have no gradient, and kernels do not see them. They are saved and loaded with the
//! parameters.

use super::{Network, Parameter, Source, Values};
use crate::element::Element;
use crate::error::Result;
use crate::graph::Graph;
use crate::run::Weights;

/// The initial statistics of a graph, in single precision, as initial weights are.
pub(super) fn initial(graph: &Graph) -> Result<Vec<Parameter>> {
    let statistic = |&id| {
        let (value, numbers) = (graph.value(id), graph.constant(id).unwrap_or_default());
        let single: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
        let (name, shape) = (value.name.clone(), value.meta.shape.clone());
        Parameter::new(name, shape, Values::from_slice(&single), "running statistic".into())
    };
    graph.statistics().iter().map(statistic).collect()
}

impl Network {
    /// The running statistics of batch normalisations, in order: names, shapes and numbers.
    ///
    /// ```
    /// use mercer_net::graph::{Batch, GraphBuilder};
    /// use mercer_net::network::{Network, Values};
    /// use mercer_net::op::BatchNorm;
    ///
    /// let mut builder = GraphBuilder::new();
    /// let x = builder.input("x", [1, 2], Batch::axis(0));
    /// let (scale, shift) = (builder.parameter("scale", [2]), builder.parameter("shift", [2]));
    /// let mean = builder.statistic("mean", [2], vec![0.0; 2]);
    /// let variance = builder.statistic("variance", [2], vec![1.0; 2]);
    /// let y = builder.node("norm", BatchNorm { epsilon: 1e-5 }, &[x, scale, shift, mean, variance])?;
    /// builder.output("y", y);
    /// let values = [[1.0, 1.0], [0.0, 0.0]].map(|numbers| Values::from_slice::<f32>(&numbers));
    /// let network = Network::from_graph(builder.finish(), values.to_vec())?;
    /// let names: Vec<&str> = network.statistics().iter().map(|statistic| statistic.name()).collect();
    /// assert_eq!((network.n_params(), &names[..]), (4, &["mean", "variance"][..]));
    /// # Ok::<(), mercer_net::NetError>(())
    /// ```
    pub fn statistics(&self) -> &[Parameter] {
        &self.statistics
    }

    pub(super) fn read_statistics(&mut self) {
        if let Source::File(file) = &self.source {
            self.statistics = file.statistics();
        }
    }

    /// Puts the statistics into weights. A file's are among the constants of its graph.
    pub(super) fn statistics_into<T: Element>(&self, graph: &Graph, weights: &mut Weights<T>) {
        for (&id, statistic) in graph.statistics().iter().zip(&self.statistics) {
            weights.set_statistic(graph, id, &statistic.values().to_vec::<T>());
        }
    }

    /// Takes the statistics from weights, where the graph has them.
    pub(super) fn statistics_from<T: Element>(&mut self, weights: &Weights<T>) {
        if let Source::Built(graph) = &self.source {
            for (statistic, numbers) in self.statistics.iter_mut().zip(weights.statistics(graph)) {
                statistic.set(Values::from_slice(numbers));
            }
        }
    }

    /// Replaces all running statistics, in their order.
    ///
    /// # Panics
    /// If the sizes differ.
    pub(crate) fn set_statistics(&mut self, values: Vec<Values>) {
        assert_eq!(values.len(), self.statistics.len(), "one array per statistic");
        for (statistic, values) in self.statistics.iter_mut().zip(values) {
            statistic.set(values);
            if let Source::File(file) = &mut self.source {
                file.set_statistic(statistic);
            }
        }
        // The graphs of a file hold its statistics.
        self.graphs = std::sync::Mutex::default();
    }
}
