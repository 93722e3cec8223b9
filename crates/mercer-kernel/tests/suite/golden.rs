//! The networks of `tests/golden`: outputs, parameter counts and full tangent kernels against PyTorch's.
//!
//! Tolerances: f32 1e-5 and f64 1e-10 in relative Frobenius norm; the transformers' files hold constants rounded to f32
//! (a square root, an exponent), so f64 is compared to 1e-7 there. The values of `cifar10_resnet20_dynamo` were computed with
//! the weights of `cifar10_resnet20`, which differ from those of its own file in the last bit of four tensors: 1e-7 too.

use mercer_data::{Dataset, Source};
use mercer_kernel::{Ntk, NtkForm, NtkKind, Real, Selection};
use mercer_net::Network;
use std::path::PathBuf;

/// Name, tolerance in double precision, number of parameters (`n_params` of the fixture).
const NAMES: &[(&str, f64, usize)] = &[
    ("mlp_tanh", 1e-10, 1281),
    ("mlp_erf", 1e-10, 891),
    ("mnist-net_256x2", 1e-10, 269322),
    ("cnn_mnist_pytorch", 1e-10, 21840),
    ("verivital_Convnet_maxpool", 1e-10, 11690),
    ("conv_zoo_legacy", 1e-10, 2310),
    ("cifar_base_kw", 1e-10, 105966),
    ("resnet_2b", 1e-10, 112006),
    ("marabou_cifar10_small", 1e-10, 85218),
    ("cifar10_resnet20", 1e-10, 269034),
    ("cifar10_resnet20_dynamo", 1e-7, 269034),
    ("cifar10_resnet32", 1e-10, 463018),
    ("cifar10_resnet56", 1e-10, 850986),
    ("tiny_bert", 1e-7, 20835),
    ("tiny_bert_legacy", 1e-7, 20835),
    ("tiny_vit", 1e-7, 19428),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/nets")
}

fn array(name: &str, key: &str) -> Dataset {
    Source::new(folder().join(format!("{name}.npz")), Some(key)).open().expect("a fixture")
}

fn open(name: &str) -> Network {
    Network::from_onnx(folder().join(format!("{name}.onnx"))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The kernel of what the network returns, which the reference values are of: one network ends in a log-softmax.
fn kernel_of<T: Real>(network: &Network, shapes: &[Vec<usize>], kind: NtkKind) -> Ntk<T> {
    let output = network.output_names().into_iter().next();
    Ntk::with_selection(network, shapes, kind, &Selection { output, ..Selection::default() }).expect("a kernel")
}

fn numbers<T: Real>(name: &str, key: &str) -> Vec<T> {
    array(name, key).read::<T>().expect("a fixture").into_iter().collect()
}

fn distance<T: Real>(ours: &[T], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    let square = |x: f64| x * x;
    let difference: f64 = ours.iter().zip(theirs).map(|(a, b)| square(a.wide() - b)).sum();
    (difference / theirs.iter().map(|&b| square(b)).sum::<f64>()).sqrt()
}

fn outputs<T: Real>(name: &str, tolerance: f64) {
    let network = open(name);
    let x = array(name, "x");
    let data: Vec<T> = numbers(name, "x");
    let expected: Vec<f64> = numbers(name, "outputs");
    let sample = x.sample_shape().to_vec();
    for batch in [6, 1] {
        let found = network.predict(&[(&data[..], &sample[..])], 6, None, Some(batch)).expect("runs");
        let error = distance(&found.values, &expected);
        assert!(error <= tolerance, "{name}: outputs at batch {batch} off by {error:e}");
    }
}

fn kernel<T: Real>(name: &str, form: Option<NtkForm>, tolerance: f64) {
    let network = open(name);
    let data: Vec<T> = numbers(name, "x");
    let expected: Vec<f64> = numbers(name, "ntk");
    let mut ntk = kernel_of::<T>(&network, &[array(name, "x").sample_shape().to_vec()], NtkKind::Full);
    if let Some(form) = form {
        ntk = ntk.with_form(form);
    }
    let gram = ntk.gram(&[&data], 6).expect("runs");
    let error = distance(&gram, &expected);
    assert!(error <= tolerance, "{name}: {form:?} kernel off by {error:e}");
}

#[test]
fn parameter_counts() {
    for &(name, _, expected) in NAMES {
        let network = open(name);
        let listed: Vec<_> = network.parameters().iter().map(|p| (p.name(), p.shape(), p.reason())).collect();
        assert_eq!(network.n_params(), expected, "{name}: {listed:#?}");
    }
}

#[test]
fn outputs_in_double_precision() {
    NAMES.iter().for_each(|&(name, tolerance, _)| outputs::<f64>(name, tolerance));
}

#[test]
fn outputs_in_single_precision() {
    NAMES.iter().for_each(|&(name, _, _)| outputs::<f32>(name, 1e-5));
}

#[test]
fn kernels_from_explicit_gradients() {
    NAMES.iter().for_each(|&(name, tolerance, _)| kernel::<f64>(name, Some(NtkForm::Explicit), tolerance));
    NAMES.iter().for_each(|&(name, ..)| kernel::<f32>(name, Some(NtkForm::Explicit), 1e-5));
}

#[test]
fn kernels_from_the_cheapest_factors() {
    NAMES.iter().for_each(|&(name, tolerance, _)| kernel::<f64>(name, None, tolerance));
    NAMES.iter().for_each(|&(name, _, _)| kernel::<f32>(name, None, 1e-5));
}

#[test]
fn kernels_from_outer_products_only() {
    // The deep ResNets have up to 1024 positions in 50 layers: all pairs of them would take minutes and show nothing new.
    for &(name, tolerance, _) in NAMES.iter().filter(|(name, ..)| !name.contains("resnet")) {
        kernel::<f64>(name, Some(NtkForm::Factored), tolerance);
    }
}

/// The kernels of fewer outputs that follow from the full one, `[samples, outputs, samples, outputs]`.
fn derived(full: &[f64], samples: usize, outputs: usize) -> Vec<(NtkKind, Vec<f64>)> {
    let at = |i: usize, p: usize, j: usize, q: usize| full[((i * outputs + p) * samples + j) * outputs + q];
    let each = |value: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..samples * samples).map(|ij| value(ij / samples, ij % samples)).collect()
    };
    let pairs = |i, j| (0..outputs * outputs).map(move |pq| at(i, pq / outputs, j, pq % outputs)).sum::<f64>();
    let last = outputs - 1;
    vec![
        (NtkKind::Trace, each(&|i, j| (0..outputs).map(|p| at(i, p, j, p)).sum())),
        (NtkKind::Pseudo, each(&|i, j| pairs(i, j) / outputs as f64)),
        (NtkKind::Logit(0), each(&|i, j| at(i, 0, j, 0))),
        (NtkKind::Logit(last), each(&|i, j| at(i, last, j, last))),
    ]
}

fn scalar_kernels<T: Real>(name: &str, tolerance: f64) {
    let network = open(name);
    let data: Vec<T> = numbers(name, "x");
    let shape = vec![array(name, "x").sample_shape().to_vec()];
    let full: Vec<f64> = numbers(name, "ntk");
    let outputs = full.len().isqrt() / 6;
    for (kind, expected) in derived(&full, 6, outputs) {
        let ntk = kernel_of::<T>(&network, &shape, kind);
        let gram = ntk.gram(&[&data], 6).expect("runs");
        let error = distance(&gram, &expected);
        assert!(error <= tolerance, "{name}: {kind:?} off by {error:e}");
        if kind != NtkKind::Trace {
            continue;
        }
        let layers = ntk.by_layer().gram(&[&data], 6).expect("runs");
        let mut sum = vec![T::zero(); expected.len()];
        layers.chunks_exact(sum.len()).for_each(|part| sum.iter_mut().zip(part).for_each(|(to, &x)| *to += x));
        let error = distance(&sum, &expected);
        assert!(error <= tolerance, "{name}: {kind:?} as the sum of its layers off by {error:e}");
    }
}

#[test]
fn scalar_kernels_in_double_precision() {
    NAMES.iter().for_each(|&(name, tolerance, _)| scalar_kernels::<f64>(name, tolerance.max(1e-9)));
}

#[test]
fn scalar_kernels_in_single_precision() {
    NAMES.iter().for_each(|&(name, ..)| scalar_kernels::<f32>(name, 1e-5));
}

#[test]
fn scalar_kernels_from_outer_products() {
    for name in ["mlp_erf", "conv_zoo_legacy", "tiny_bert", "tiny_vit"] {
        let network = open(name);
        let data: Vec<f64> = numbers(name, "x");
        let shape = vec![array(name, "x").sample_shape().to_vec()];
        let full: Vec<f64> = numbers(name, "ntk");
        for (kind, expected) in derived(&full, 6, full.len().isqrt() / 6) {
            for form in [NtkForm::Factored, NtkForm::Explicit] {
                let ntk = kernel_of::<f64>(&network, &shape, kind);
                let gram = ntk.with_form(form).gram(&[&data], 6).expect("runs");
                let error = distance(&gram, &expected);
                assert!(error <= 1e-7, "{name}: {kind:?} from {form:?} off by {error:e}");
            }
        }
    }
}

#[test]
fn layers_sum_to_the_full_kernel() {
    for &(name, tolerance, _) in NAMES {
        let network = open(name);
        let data: Vec<f64> = numbers(name, "x");
        let expected: Vec<f64> = numbers(name, "ntk");
        let ntk = kernel_of::<f64>(&network, &[array(name, "x").sample_shape().to_vec()], NtkKind::Full);
        let layers = ntk.by_layer().gram(&[&data], 6).expect("runs");
        let mut sum = vec![0.0; expected.len()];
        layers.chunks_exact(sum.len()).for_each(|part| sum.iter_mut().zip(part).for_each(|(to, &x)| *to += x));
        let error = distance(&sum, &expected);
        assert!(error <= tolerance.max(1e-9), "{name}: sum of layers off by {error:e}");
    }
}

/// Without a name it is the kernel of the logits, `Θ = A Θ_z Aᵀ` with the Jacobian `A = I − 1pᵀ` of the log-softmax.
#[test]
fn a_classifier_has_the_kernel_of_its_logits() {
    let name = "cnn_mnist_pytorch";
    let network = open(name);
    let (data, shape): (Vec<f64>, _) = (numbers(name, "x"), vec![array(name, "x").sample_shape().to_vec()]);
    let graph = network.graph(&shape).expect("a graph");
    let logits = mercer_net::network::default_logits(&graph).and_then(|(_, logits)| logits).expect("logits");
    let chosen = Selection { output: Some(logits.name.clone()), ..Selection::default() };
    let gram = |selection: &Selection| {
        Ntk::<f64>::with_selection(&network, &shape, NtkKind::Full, selection)
            .and_then(|ntk| ntk.gram(&[&data], 6))
            .expect("runs")
    };
    let of_logits = gram(&Selection::default());
    assert_eq!(of_logits, gram(&chosen));
    let log_p = network.predict(&[(&data[..], &shape[0][..])], 6, None, None).expect("runs").values;
    let full: Vec<f64> = numbers(name, "ntk");
    let (classes, side) = (10, 60);
    let slope = |sample: usize, row: usize, column: usize| {
        f64::from(u8::from(row == column)) - log_p[sample * classes + column].exp()
    };
    let image = |row: usize, column: usize| {
        let (i, j) = (row / classes, column / classes);
        let mut sum = 0.0;
        for p in 0..classes {
            for q in 0..classes {
                let inner = of_logits[(i * classes + p) * side + j * classes + q];
                sum += slope(i, row % classes, p) * inner * slope(j, column % classes, q);
            }
        }
        sum
    };
    let images: Vec<f64> = (0..side * side).map(|at| image(at / side, at % side)).collect();
    assert!(distance(&images, &full) < 1e-9);
}
