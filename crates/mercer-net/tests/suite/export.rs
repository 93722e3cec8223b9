//! What is exported comes back: ONNX with the same outputs and parameters, safetensors with the same numbers.

use mercer_net::arch::{
    Activation, Cnn, CnnLayer, Initialisation, Mlp, Normalisation, Residual, Resnet, Stem, TwoLayer,
};
use mercer_net::graph::{Batch, GraphBuilder};
use mercer_net::network::{Batching, Values};
use mercer_net::op::{CumSum, Softmax};
use mercer_net::{NetError, Network};

fn check(name: &str, network: &Network) {
    let read = Network::from_onnx_bytes(&network.to_onnx_bytes().unwrap(), Batching::Samples).unwrap();
    assert_eq!(read.n_params(), network.n_params(), "{name}");
    let names = |network: &Network| -> Vec<(String, Vec<usize>)> {
        network.parameters().iter().map(|p| (p.name().to_owned(), p.shape().to_vec())).collect()
    };
    assert_eq!(names(&read), names(network), "{name}");
    assert_eq!(read.origin(), Some(("mercer".to_owned(), 17)));
    assert_eq!(read.output_names(), network.output_names());
    let sample = network.inputs()[0].declared_sample().unwrap();
    assert_eq!(read.inputs()[0].declared_sample().unwrap(), sample);
    let size: usize = sample.iter().product();
    let x: Vec<f32> = (0..5 * size).map(|i| (i as f32 * 0.37).sin()).collect();
    let run = |network: &Network| network.predict::<f32>(&[(&x, &sample)], 5, None, None).unwrap();
    let (ours, theirs) = (run(network), run(&read));
    assert_eq!(ours.shape, theirs.shape, "{name}");
    for (a, b) in ours.values.iter().zip(&theirs.values) {
        assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{name}: {a} against {b}");
    }
}

#[test]
fn networks_survive_the_round_trip() {
    for activation in Activation::all() {
        let mlp = Mlp { inputs: vec![2, 3], ..Mlp::new(6, &[7, 5], 4).activation(activation) };
        check(&activation.to_string(), &mlp.build(1).unwrap());
    }
    for initialisation in [Initialisation::Standard, Initialisation::Ntk] {
        let layers = [
            CnnLayer::Conv { channels: 6, kernel: 3, stride: 2, padding: Some(0) },
            CnnLayer::MaxPool { size: 2, stride: Some(1) },
            CnnLayer::conv(4, 3),
            CnnLayer::average_pool(2),
            CnnLayer::dense(5),
        ];
        let cnn = Cnn::new(&[2, 11, 11], &layers, 3).initialisation(initialisation);
        check("cnn", &cnn.clone().build(2).unwrap());
        check("cnn without biases", &cnn.bias(false).activation(Activation::SinCos).build(2).unwrap());
    }
    let global = Cnn::new(&[1, 6, 6], &[CnnLayer::conv(4, 3), CnnLayer::GlobalAveragePool], 3);
    check("global pool", &global.build(3).unwrap());
    for normalisation in [Normalisation::Affine, Normalisation::None, Normalisation::Batch] {
        let resnet = Resnet { inputs: vec![3, 9, 9], width: 4, normalisation, ..Resnet::new(14, 5) };
        check("resnet", &resnet.build(4).unwrap());
    }
    let wide = Residual { inputs: vec![3, 9, 9], width: 2, ..Residual::wide(10, 2, 5).unwrap() };
    check("wide", &wide.build(4).unwrap());
    let imagenet = Residual { inputs: vec![3, 33, 33], width: 4, stem: Stem::ImageNet, ..Residual::new(&[1, 1], 5) };
    check("imagenet", &imagenet.build(4).unwrap());
    check("mlp with batch norm", &Mlp::new(6, &[7], 4).batch_norm(true).build(1).unwrap());
    check("normalised", &Mlp::new(6, &[7], 4).activation(Activation::Tanh.normalised()).build(1).unwrap());
    check("two layers", &TwoLayer::new(4, 6).build(5).unwrap());
    check("one unit", &TwoLayer::new(1, 1).build(5).unwrap());
}

#[test]
fn a_primitive_without_an_export_is_named() {
    let mut builder = GraphBuilder::new();
    let x = builder.input("input", [1, 4], Batch::axis(0));
    let y = builder.node("running sum", CumSum { axis: 1, exclusive: false, reverse: false }, &[x]).unwrap();
    let z = builder.node("softmax", Softmax { axis: 1, log: false }, &[y]).unwrap();
    builder.output("output", z);
    let network = Network::from_graph(builder.finish(), vec![]).unwrap();
    let error = network.to_onnx_bytes().unwrap_err();
    assert!(matches!(error, NetError::Unsupported { .. }));
    let text = error.to_string();
    assert!(text.contains("running sum") && text.contains("CumSum"), "{text}");
}

#[test]
fn weights_that_do_not_fit_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    Mlp::new(3, &[4], 2).build(0).unwrap().save_safetensors(&path).unwrap();
    let refused = |mut network: Network| {
        let before: Vec<Values> = network.parameters().iter().map(|p| p.values().clone()).collect();
        let text = network.load_safetensors(&path).unwrap_err().to_string();
        assert!(network.parameters().iter().zip(&before).all(|(p, values)| p.values() == values));
        text
    };
    let text = refused(Mlp::new(3, &[5], 2).build(0).unwrap());
    assert!(text.contains("\"layer1.weight\" has shape [4, 3], but [5, 3] is needed"), "{text}");
    let text = refused(Mlp::new(3, &[4, 4], 2).build(0).unwrap());
    assert!(text.contains("\"layer2.weight\" is missing"), "{text}");
    let text = refused(Mlp::new(3, &[4], 2).bias(false).build(0).unwrap());
    assert!(text.contains(".bias\" is not a parameter"), "{text}");
    std::fs::write(&path, [1, 2, 3]).unwrap();
    assert!(refused(Mlp::new(3, &[4], 2).build(0).unwrap()).contains("not a readable safetensors file"));
    let missing = folder.path().join("nothing.safetensors");
    let error = Mlp::new(3, &[4], 2).build(0).unwrap().load_safetensors(missing).unwrap_err();
    assert!(matches!(error, NetError::Io { .. }));
}
