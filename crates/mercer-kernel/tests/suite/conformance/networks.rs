//! The networks that kernels are tested on, with their data.

use mercer_data::random::stream;
use mercer_data::{Dataset, Source};
use mercer_kernel::Real;
use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, CnnLayer, Initialisation, Mlp};
use ndarray::{ArrayD, IxDyn};
use rand::RngExt;
use std::path::PathBuf;

/// A network and a few samples, whose numbers are exact in single precision.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) network: Network,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
    pub(crate) samples: usize,
}

impl Case {
    /// The shapes of the inputs, as kernels want them.
    pub(crate) fn shapes(&self) -> Vec<Vec<usize>> {
        vec![self.shape.clone()]
    }

    /// The numbers of one sample.
    pub(crate) fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Some samples in a scalar.
    pub(crate) fn rows<T: Real>(&self, rows: std::ops::Range<usize>) -> Vec<T> {
        self.data[rows.start * self.size()..rows.end * self.size()].iter().map(|&x| T::narrow(x)).collect()
    }

    /// As many samples as wanted, the same ones again and again.
    pub(crate) fn repeated<T: Real>(&self, samples: usize) -> Vec<T> {
        (0..samples).flat_map(|at| self.rows::<T>(at % self.samples..at % self.samples + 1)).collect()
    }

    /// The number of outputs.
    pub(crate) fn n_outputs(&self) -> usize {
        let graph = self.network.graph(&self.shapes()).expect("a graph");
        graph.value(graph.outputs()[0].1).meta.numel()
    }

    /// The samples as a data set.
    pub(crate) fn dataset(&self, samples: usize) -> Dataset {
        let shape: Vec<usize> = std::iter::once(samples).chain(self.shape.iter().copied()).collect();
        let array = ArrayD::from_shape_vec(IxDyn(&shape), self.repeated::<f64>(samples)).expect("sizes that fit");
        Dataset::from_array("x", array.view()).expect("a data set")
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/nets")
}

/// A network of `tests/golden` with its six samples.
pub(crate) fn golden(name: &'static str) -> Case {
    let network = Network::from_onnx(folder().join(format!("{name}.onnx"))).expect("a fixture");
    let x = Source::new(folder().join(format!("{name}.npz")), Some("x")).open().expect("a fixture");
    let data = x.read::<f32>().expect("a fixture").iter().map(|&x| f64::from(x)).collect();
    Case { name, network, shape: x.sample_shape().to_vec(), data, samples: x.n_samples() }
}

/// A network built in code, with normal inputs.
pub(crate) fn built(name: &'static str) -> Case {
    let (network, shape) = match name {
        "mlp" => (Mlp::new(7, &[13, 5], 3).activation(Activation::Tanh).build(3), vec![7]),
        "ntk mlp" => {
            let mlp = Mlp::new(3, &[17], 2).activation(Activation::Erf);
            (mlp.initialisation(Initialisation::Ntk).bias(false).build(4), vec![3])
        }
        "cnn" => {
            let layers = [CnnLayer::conv(5, 3), CnnLayer::max_pool(2), CnnLayer::conv(3, 3), CnnLayer::dense(7)];
            (Cnn::new(&[2, 7, 5], &layers, 3).build(5), vec![2, 7, 5])
        }
        other => panic!("no network {other}"),
    };
    let samples = 5;
    let mut random = stream(1, name);
    let count = samples * shape.iter().product::<usize>();
    let data = (0..count).map(|_| f64::from(random.sample::<f64, _>(rand_distr::StandardNormal) as f32)).collect();
    Case { name, network: network.expect("a network"), shape, data, samples }
}
