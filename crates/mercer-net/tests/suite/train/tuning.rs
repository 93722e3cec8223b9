//! Training of the network of a file: a new head, frozen parameters, and the file that is written.

use mercer_net::Network;
use mercer_net::arch::{Activation, Mlp};
use mercer_net::export::{Head, with_head, with_parameters};
use mercer_net::network::{Batching, Values};
use mercer_net::train::{Loss, Optimiser, Targets, Trainer};

const SAMPLES: usize = 24;

/// Points on a spiral and three classes.
fn data() -> (Vec<f64>, Vec<usize>) {
    let points = (0..SAMPLES * 4).map(|at| ((at * at) as f64 * 0.37).sin()).collect();
    (points, (0..SAMPLES).map(|row| row % 3).collect())
}

fn file() -> Vec<u8> {
    Mlp::new(4, &[7, 5], 2).activation(Activation::Tanh).build(3).unwrap().to_onnx_bytes().unwrap()
}

fn open(bytes: &[u8]) -> Network {
    Network::from_onnx_bytes(bytes, Batching::Samples).unwrap()
}

/// Takes some steps on all samples and returns the losses.
fn train(network: &mut Network, inputs: &[f64], classes: &[usize]) -> Vec<f64> {
    let graph = network.declared_graph().unwrap();
    let weights = network.weights::<f64>(&graph);
    let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam()).unwrap();
    let mut step = || trainer.step(&[inputs], &Targets::classes(classes), classes.len(), 0.02).unwrap();
    let losses = (0..15).map(|_| step()).collect();
    network.set_weights(trainer.weights());
    losses
}

fn numbers(network: &Network, name: &str) -> Vec<f64> {
    network.parameters().iter().find(|own| own.name() == name).unwrap().values().to_vec()
}

fn head() -> Head {
    let weight = (0..15).map(|at| (at as f32 * 0.7).sin() * 0.1).collect();
    Head { from: open(&file()).last_hidden().unwrap(), flatten: false, weight, bias: vec![0.0; 3] }
}

#[track_caller]
fn close(left: &[f64], right: &[f64], tolerance: f64) {
    assert_eq!(left.len(), right.len());
    let worst = left.iter().zip(right).map(|(l, r)| (l - r).abs()).fold(0.0, f64::max);
    assert!(worst <= tolerance, "{worst}");
}

/// The same steps, whether the network is described or from a file. The file is in single precision.
#[test]
fn a_file_is_trained_like_its_description() {
    let (inputs, _) = data();
    let classes: Vec<usize> = (0..SAMPLES).map(|row| row % 2).collect();
    let mut described = Mlp::new(4, &[7, 5], 2).activation(Activation::Tanh).build(3).unwrap();
    let mut given = open(&described.to_onnx_bytes().unwrap());
    close(&train(&mut described, &inputs, &classes), &train(&mut given, &inputs, &classes), 1e-12);
    for own in described.parameters() {
        close(&own.values().to_vec(), &numbers(&given, own.name()), 1e-12);
    }
}

/// Training the head alone is training a dense layer on the values in front of it.
#[test]
fn a_head_alone_is_a_layer_on_features() {
    let (inputs, classes) = data();
    let body = open(&file());
    let mut tuned = open(&with_head(&file(), &head()).unwrap());
    let frozen: Vec<String> = body.parameters().iter().map(|own| own.name().to_owned()).collect();
    let frozen: Vec<String> =
        frozen.into_iter().filter(|name| tuned.parameters().iter().any(|own| own.name() == name)).collect();
    assert_eq!(frozen.len(), 4, "the old last layer is gone: {frozen:?}");
    tuned.select_parameters(&[], &frozen).unwrap();
    let names: Vec<&str> = tuned.parameters().iter().map(|own| own.name()).collect();
    assert_eq!(names, ["head.weight", "head.bias"]);
    let features = body.predict(&[(&inputs[..], &[4][..])], SAMPLES, Some(&head().from), None).unwrap();
    let mut layer = Mlp::new(5, &[], 3).build(0).unwrap();
    let shapes: Vec<Vec<usize>> = layer.parameters().iter().map(|own| own.shape().to_vec()).collect();
    assert_eq!(shapes, [vec![3, 5], vec![3]]);
    layer.set_values(vec![Values::from_slice(&head().weight), Values::from_slice(&head().bias)]);
    let features: Vec<f64> = features.values.to_vec();
    close(&train(&mut layer, &features, &classes), &train(&mut tuned, &inputs, &classes), 1e-10);
    let layer: Vec<Vec<f64>> = layer.parameters().iter().map(|own| own.values().to_vec()).collect();
    close(&layer[0], &numbers(&tuned, "head.weight"), 1e-9);
    close(&layer[1], &numbers(&tuned, "head.bias"), 1e-9);
}

/// The written file opens again and computes the same; numbers that were not trained are kept.
#[test]
fn the_written_file_is_the_trained_network() {
    let (inputs, classes) = data();
    let bytes = with_head(&file(), &head()).unwrap();
    let mut tuned = open(&bytes);
    tuned.select_parameters(&[], &["layer1.weight".to_owned()]).unwrap_or_else(|error| panic!("{error}"));
    let before = numbers(&open(&bytes), "layer1.weight");
    train(&mut tuned, &inputs, &classes);
    let read = open(&tuned.written_to(&bytes).unwrap());
    let single: Vec<f32> = inputs.iter().map(|&x| x as f32).collect();
    let outputs = |network: &Network| -> Vec<f64> {
        let found = network.predict(&[(&single[..], &[4][..])], SAMPLES, None, None).unwrap();
        found.values.iter().map(|&x| f64::from(x)).collect()
    };
    assert_eq!(outputs(&read), outputs(&tuned));
    assert_eq!(numbers(&read, "layer1.weight"), before);
    assert_ne!(numbers(&read, "head.weight"), numbers(&open(&bytes), "head.weight"));
    // A second head would be put in the place of the first.
    let second = Head { from: read.last_hidden().unwrap(), ..head() };
    assert_eq!(second.from, head().from);
}

#[test]
fn what_cannot_be_written_is_refused() {
    let other = Mlp::new(2, &[3], 1).build(0).unwrap();
    let error = with_parameters(&file(), other.parameters()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("initialiser") || error.contains("layer"), "{error}");
    assert!(with_head(&file()[..50], &head()).is_err());
    let wrong = Head { weight: vec![0.0; 4], ..head() };
    assert!(with_head(&file(), &wrong).is_err());
    // Flipped bytes are refused, or give another file; they do not bring the program down.
    let whole = file();
    for at in 0..whole.len().min(400) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        if let Ok(edited) = with_head(&bytes, &head()) {
            let _ = Network::from_onnx_bytes(&edited, Batching::Samples);
        }
    }
}
