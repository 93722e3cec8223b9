//! Learning eigenfunctions: ten MLPs on the polynomial kernel of the NeuralEF paper, for a tenth of its 2000 steps.

use super::cases::{Case, numbers};
use mercer_data::Dataset;
use mercer_net::Network;
use mercer_net::arch::{Activation, Mlp};
use mercer_run::Context;
use mercer_spectral::learnt::{Batches, Learn, LearningMethod, LearningSettings, Learnt, Matrices, side_by_side};
use ndarray::Array2;

const SAMPLES: usize = 1024;
const STEPS: usize = 200;

/// Constructors of all cases.
pub(super) fn all() -> Vec<fn() -> Case> {
    vec![|| case("neuralef_10_mlp_1-32-32-1_n1024_b256_200_steps", LearningMethod::NeuralEf, false), || {
        case("neuralef_shared_mlp_1-32-32-10_n1024_b256_200_steps", LearningMethod::NeuralEf, true)
    }]
}

fn networks(shared: bool) -> Network {
    let mlp = |outputs: usize, seed: u64| {
        Mlp::new(1, &[32, 32], outputs).activation(Activation::SinCos).build(seed).expect("builds")
    };
    let each: Vec<Network> = if shared { vec![mlp(10, 0)] } else { (0..10).map(|seed| mlp(1, seed)).collect() };
    side_by_side(&each).expect("alike")
}

fn case(name: &'static str, method: LearningMethod, shared: bool) -> Case {
    let points = numbers(SAMPLES, 1.0);
    let gram = Array2::from_shape_fn((SAMPLES, SAMPLES), |(i, j)| (points[i] * points[j] + 1.5).powi(4));
    let points = Array2::from_shape_vec((SAMPLES, 1), points).expect("as many");
    let data = [Dataset::from_array("points", points.view().into_dyn()).expect("data")];
    let graph = networks(shared).declared_graph().expect("a graph");
    let flops = 3.0 * graph.flops() as f64 * (256 * STEPS) as f64;
    let run = move || {
        let mut kernel = Matrices::new(gram.clone(), 1).expect("a kernel matrix");
        let mut batches = Batches::new(&data, &mut kernel, 256, 0, &Context::new()).expect("batches");
        let learn = Learn::new(LearningSettings::new(method).steps(STEPS));
        let learnt: Learnt<f32> = learn.run(networks(shared), &mut batches).expect("learns");
        std::hint::black_box(learnt);
    };
    Case { name, flops, run: Box::new(run) }
}
