//! Which tensors of a file count as parameters, where exporters make it hard to tell.

use crate::writer::Attribute::{Float, Int};
use crate::writer::{FLOAT, Model};
use mercer_net::Network;
use mercer_net::arch::{Initialisation, Mlp};
use mercer_net::network::Batching;

fn read(model: &Model) -> Network {
    Network::from_onnx_bytes(&model.bytes(), Batching::Samples).expect("a readable model")
}

fn names(network: &Network) -> Vec<&str> {
    network.parameters().iter().map(|parameter| parameter.name()).collect()
}

fn rows(features: usize) -> Model {
    Model::new().input("x", FLOAT, &["batch".into(), features.into()]).output("y")
}

fn image() -> Model {
    Model::new().input("x", FLOAT, &["batch".into(), 8.into(), 2.into(), 3.into()]).output("y")
}

/// What a network of one input makes of two samples.
fn outputs(network: &Network, features: usize) -> Vec<f64> {
    let x: Vec<f64> = (0..2 * features).map(|i| ((i * 29 + 5) % 47) as f64 / 47.0 - 0.4).collect();
    network.predict::<f64>(&[(&x, &[features])], 2, None, None).expect("runs").values
}

#[test]
fn ones_and_zeros_inside_a_group_norm_are_none() {
    let unit = image()
        .ints("groups", &[0, 4, -1])
        .floats("ones", &[4], &[1.0; 4])
        .floats("zeros", &[4], &[0.0; 4])
        .weights("scale", &[8, 1, 1])
        .node("Reshape", &["x", "groups"], "grouped")
        .node_with("InstanceNormalization", &["grouped", "ones", "zeros"], "unit", &[Float("epsilon", 1e-5)])
        .node("Shape", &["x"], "shape");
    let group = unit.node("Reshape", &["unit", "shape"], "back").node("Mul", &["back", "scale"], "y");
    assert_eq!(names(&read(&group)), ["scale"]);
    // An untrained InstanceNorm has the same numbers, and they are its own.
    let instance = image().floats("norm.weight", &[8], &[1.0; 8]).floats("norm.bias", &[8], &[0.0; 8]).node(
        "InstanceNormalization",
        &["x", "norm.weight", "norm.bias"],
        "y",
    );
    assert_eq!(names(&read(&instance)), ["norm.weight", "norm.bias"]);
    // The new exporter makes up the names of numbers that no module has.
    let plain = image()
        .by("pytorch")
        .floats("val_1", &[8], &[1.0; 8])
        .floats("val_2", &[8], &[0.0; 8])
        .node("InstanceNormalization", &["x", "val_1", "val_2"], "node_norm")
        .node("Identity", &["node_norm"], "y");
    assert!(names(&read(&plain)).is_empty());
}

#[test]
fn statistics_that_were_merged_with_a_scale_stay_constant() {
    let model = image().floats("norm.weight", &[8], &[1.0; 8]).floats("norm.bias", &[8], &[0.0; 8]).node(
        "BatchNormalization",
        &["x", "norm.weight", "norm.bias", "norm.bias", "norm.weight"],
        "y",
    );
    let mut network = read(&model);
    assert_eq!(names(&network), ["norm.weight", "norm.bias"]);
    let constants = network.constants();
    assert_eq!(constants.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["norm.weight@y", "norm.bias@y"]);
    assert!(constants.iter().all(|(.., reason)| reason.starts_with("running statistic")), "{constants:?}");
    assert!(network.remarks().is_empty());
    network.unmerge().unwrap();
    assert_eq!(network.n_params(), 16);
    // Tracing says the same by Identity.
    let traced = image()
        .by("pytorch")
        .floats("norm.weight", &[8], &[1.0; 8])
        .floats("norm.bias", &[8], &[0.0; 8])
        .node("Identity", &["norm.weight"], "norm.running_var")
        .node("Identity", &["norm.bias"], "norm.running_mean")
        .node("BatchNormalization", &["x", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"], "y");
    let mut network = read(&traced);
    assert_eq!(names(&network), ["norm.weight", "norm.bias"]);
    network.unmerge().unwrap();
    assert_eq!(network.n_params(), 16);
}

#[test]
fn a_bias_of_one_number_may_carry_a_factor() {
    let product = |weight: &[usize]| {
        rows(3)
            .weights("weight", weight)
            .floats("bias", &[1], &[0.5])
            .floats("half", &[], &[0.5])
            .node("MatMul", &["x", "weight"], "product")
            .node("Mul", &["product", "half"], "scaled")
    };
    let factor = product(&[3, 1]).node("Mul", &["bias", "half"], "factor").node("Add", &["scaled", "factor"], "y");
    assert_eq!(names(&read(&factor)), ["weight", "bias"]);
    let turned = product(&[3, 1]).node("Mul", &["half", "bias"], "factor").node("Add", &["factor", "scaled"], "y");
    assert_eq!(names(&read(&turned)), ["weight", "bias"]);
    // A number that is added to something else, or to products of data, belongs to the formula.
    let formula = rows(3)
        .weights("weight", &[3, 1])
        .floats("one", &[1], &[1.0])
        .node("Mul", &["x", "x"], "square")
        .node("Add", &["square", "one"], "shifted")
        .node("MatMul", &["shifted", "weight"], "y");
    assert_eq!(names(&read(&formula)), ["weight"]);
    // The networks that this project trains in the parametrisation of tangent kernels come back whole.
    let mlp = Mlp { initialisation: Initialisation::Ntk, bias_std: Some(0.3), ..Mlp::new(3, &[4], 1) };
    let bytes = mlp.build(0).unwrap().to_onnx_bytes().unwrap();
    assert_eq!(Network::from_onnx_bytes(&bytes, Batching::Samples).unwrap().n_params(), 4 * 3 + 4 + 4 + 1);
}

#[test]
fn fused_activations_have_a_bias() {
    for (op, gelu) in [
        ("BiasGelu", (|x: f64| 0.5 * x * (1.0 + erf(x / 2.0f64.sqrt()))) as fn(f64) -> f64),
        ("FastGelu", |x: f64| {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
        }),
    ] {
        let biases = [0.5f32, -0.25, 1.0];
        let model = rows(3).floats("bias", &[3], &biases).node(op, &["x", "bias"], "y");
        let plain = rows(3).floats("bias", &[3], &biases).node("Add", &["x", "bias"], "y");
        let (network, sums) = (read(&model), outputs(&read(&plain), 3));
        assert_eq!(names(&network), ["bias"], "{op}");
        for (ours, sum) in outputs(&network, 3).iter().zip(sums) {
            assert!((ours - gelu(sum)).abs() < 1e-10, "{op} of {sum}: {ours}");
        }
    }
    let alone = rows(3).node("FastGelu", &["x"], "y");
    assert!(read(&alone).parameters().is_empty() && outputs(&read(&alone), 3).iter().all(|y| y.is_finite()));
}

/// The error function by its series.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// Two layers with the same numbers for their biases and normalisations, and one weight for both.
fn merged(bias: &[f32], scale: &[f32]) -> Model {
    let norm = [Int("axis", -1)];
    rows(3)
        .weights("weight", &[3, 3])
        .floats("bias", &[3], bias)
        .floats("scale", &[3], scale)
        .node("Gemm", &["x", "weight", "bias"], "first")
        .node_with("LayerNormalization", &["first", "scale", "bias"], "norm", &norm)
        .node("Gemm", &["norm", "weight", "bias"], "second")
        .node_with("LayerNormalization", &["second", "scale", "bias"], "y", &norm)
}

#[test]
fn merged_biases_and_scales_are_told_and_counted_apart() {
    let mut network = read(&merged(&[0.0; 3], &[1.0; 3]));
    assert_eq!(names(&network), ["weight", "bias", "scale"]);
    let remarks = network.remarks().join("\n");
    for word in ["4 of the module's parameters", "bias is also bias@norm, bias@second, bias@y", "scale@y", "--unmerge"]
    {
        assert!(remarks.contains(word), "{word} in {remarks}");
    }
    let before = outputs(&network, 3);
    network.unmerge().unwrap();
    let apart = ["weight", "bias", "bias@norm", "bias@second", "bias@y", "scale", "scale@y"];
    assert_eq!(names(&network), apart);
    assert!(network.remarks().is_empty());
    assert_eq!(outputs(&network, 3), before);
    // A second time changes nothing, and names choose among the new ones.
    network.unmerge().unwrap();
    assert_eq!(names(&network), apart);
    network.select_parameters(&[], &["bias@*".to_owned()]).unwrap();
    assert_eq!(names(&network), ["weight", "bias", "scale", "scale@y"]);
    assert_eq!(outputs(&network, 3), before);
    // A single one may be taken out by name.
    let mut one = read(&merged(&[0.0; 3], &[1.0; 3]));
    one.select_parameters(&["scale@y".to_owned()], &["bias".to_owned()]).unwrap();
    assert_eq!(names(&one), ["weight", "scale", "scale@y"]);
    assert_eq!(outputs(&one, 3), before);
}

#[test]
fn parameters_that_were_counted_apart_stay_apart_in_a_written_file() {
    let model = rows(3)
        .weights("weight", &[3, 3])
        .floats("bias", &[3], &[0.0; 3])
        .node("Gemm", &["x", "weight", "bias"], "first")
        .node("Gemm", &["first", "weight", "bias"], "y");
    let mut network = read(&model);
    network.unmerge().unwrap();
    let graph = network.declared_graph().unwrap();
    let mut weights = network.weights::<f64>(&graph);
    // As training would, another number in one of them.
    weights.parameters[2][0] = 0.5;
    network.set_weights(&weights);
    let written = Network::from_onnx_bytes(&network.to_onnx_bytes().unwrap(), Batching::Samples).unwrap();
    assert_eq!(names(&written), ["weight", "bias", "bias@y"]);
    let (before, after) = (outputs(&read(&model), 3), outputs(&written, 3));
    for (at, (before, after)) in before.iter().zip(after).enumerate() {
        let shift = if at % 3 == 0 { 0.5 } else { 0.0 };
        assert!((after - before - shift).abs() < 1e-6, "output {at}: {before}, {after}");
    }
}

#[test]
fn what_was_trained_together_stays_together() {
    let mut shared = read(&merged(&[0.1, 0.2, 0.3], &[1.0, 1.1, 0.9]));
    assert!(shared.remarks().is_empty());
    shared.unmerge().unwrap();
    assert_eq!(names(&shared), ["weight", "bias", "scale"]);
    // Tracing tells what it merges: what it does not tell is one module used twice.
    let mut traced = read(&merged(&[0.0; 3], &[1.0; 3]).by("pytorch"));
    assert!(traced.remarks().is_empty());
    traced.unmerge().unwrap();
    assert_eq!(names(&traced), ["weight", "bias", "scale"]);
}

#[test]
fn tracing_names_what_it_merged() {
    let model = rows(3)
        .by("pytorch")
        .weights("a.weight", &[3, 3])
        .floats("a.bias", &[3], &[0.0; 3])
        .weights("onnx::MatMul_7", &[3, 3])
        .node("Identity", &["a.weight"], "b.weight")
        .node("Identity", &["a.bias"], "b.bias")
        .node("Identity", &["onnx::MatMul_7"], "onnx::MatMul_8")
        .node("Gemm", &["x", "a.weight", "a.bias"], "first")
        .node("Gemm", &["first", "b.weight", "b.bias"], "second")
        .node("MatMul", &["second", "onnx::MatMul_7"], "third")
        .node("MatMul", &["third", "onnx::MatMul_8"], "y");
    let mut network = read(&model);
    // The writer's weights are equal: the turned and renamed copy is taken for the tied weight that it looks like.
    assert_eq!(names(&network), ["a.weight", "a.bias"]);
    let before = outputs(&network, 3);
    network.unmerge().unwrap();
    assert_eq!(names(&network), ["a.weight", "a.bias", "b.weight", "b.bias"]);
    assert_eq!(outputs(&network, 3), before);
}

#[test]
fn folded_normalisations_are_counted_with_the_advice_that_works() {
    let open = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/");
        Network::from_onnx(format!("{folder}{name}.onnx")).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    for (name, layers, text, advice) in [
        ("nets/cifar10_resnet20", 19, "19 convolutions.", "training=TrainingMode.PRESERVE"),
        ("nets/cifar10_resnet20_dynamo", 19, "19 convolutions.", "optimize=False"),
        ("idioms/batch_norm.legacy", 2, "2 convolutions.", "do_constant_folding=False"),
        ("idioms/batch_norm.dynamo", 2, "2 convolutions.", "optimize=False"),
        ("idioms/batch_norm_dense.dynamo", 1, "1 dense layer.", "optimize=False"),
    ] {
        let network = open(name);
        let remarks = network.remarks().join("\n");
        assert_eq!(network.folded_normalisations(), layers, "{name}: {remarks}");
        assert!(remarks.contains(text) && remarks.contains(advice), "{name}: {remarks}");
    }
    for name in [
        "batch_norm.legacy-kept",
        "batch_norm.dynamo-kept",
        "batch_norm_dense.legacy",
        "group_norm.dynamo",
        "weight_norm.legacy",
    ] {
        assert_eq!(open(&format!("idioms/{name}")).folded_normalisations(), 0, "{name}");
    }
}
