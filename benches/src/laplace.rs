//! Laplace approximations of the 784-512-512-10 network: fit on 2000 samples and class probabilities of others.
//!
//! Limits on one thread: last layer, 1000 inputs, full 6 s, Kronecker 0.2 s; all layers, Kronecker, 100 inputs 2 s. laplace-torch 0.3 takes
//! 23.0 + 22.3, 0.30 + 1.03 and 1.2 + 45.7 s. The operations counted are those of the last layer's full structure: blocks of the curvature,
//! its factor, the inverse of that, and the images of the inputs.

use super::cases::{Case, mlp, numbers};
use mercer_data::{Classes, Dataset, Labels};
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, Structure};
use mercer_run::Context;
use ndarray::Array2;

const SAMPLES: usize = 2000;
const OUTPUTS: usize = 10;
const FEATURES: usize = 513;

/// Constructors of all cases.
pub(super) fn all() -> Vec<fn() -> Case> {
    vec![
        || case("laplace_last-layer-full_mlp_784-512-512-10_n2000_probit1000", Structure::LastLayerFull, 1000),
        || case("laplace_last-layer-kron_mlp_784-512-512-10_n2000_probit1000", Structure::LastLayerKronecker, 1000),
        || case("laplace_kron_mlp_784-512-512-10_n2000_probit100", Structure::Kronecker, 100),
    ]
}

fn samples(count: usize, skip: usize) -> Vec<Dataset> {
    let all = numbers((skip + count) * 784, 1.0);
    let x = Array2::from_shape_vec((count, 784), all[skip * 784..].to_vec()).expect("whole rows");
    vec![Dataset::from_array("x", x.into_dyn().view()).expect("finite")]
}

fn case(name: &'static str, structure: Structure, test: usize) -> Case {
    let network = mlp().expect("builds");
    let (train, other) = (samples(SAMPLES, 0), samples(test, SAMPLES));
    let classes = Classes::new((0..SAMPLES).map(|at| at % OUTPUTS).collect(), OUTPUTS).expect("classes");
    let labels = Labels::Classes(classes);
    let settings = LaplaceSettings::new(structure, Likelihood::Categorical);
    let run = move || {
        let silent = Context::new();
        let machine = Laplace::<f32>::fit(&network, &train, &labels, &settings, &silent).expect("fits");
        std::hint::black_box(machine.predict(&other, &silent).expect("predicts").probit());
    };
    let (side, pairs) = ((OUTPUTS * FEATURES) as f64, (OUTPUTS * (OUTPUTS + 1)) as f64 / 2.0);
    let block = 2.0 * (FEATURES * FEATURES) as f64 * pairs;
    let flops = match structure {
        Structure::LastLayerFull => block * (SAMPLES + test) as f64 + 2.0 * side.powi(3) / 3.0,
        _ => 2.0 * 669_706.0 * SAMPLES as f64,
    };
    Case { name, flops, run: Box::new(run) }
}
