//! Descriptions become the networks they describe, and say what is wrong with them if they do not.

use super::*;
use crate::network::Values;

fn refused(text: &str) -> String {
    match Architecture::from_toml(text).and_then(|architecture| architecture.build(0)) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

fn run(network: &Network, x: &[f64], shape: &[usize]) -> Vec<f64> {
    network.predict::<f64>(&[(x, shape)], 1, None, None).unwrap().values
}

fn numbers(network: &Network, name: &str) -> Vec<f64> {
    network.parameters().iter().find(|p| p.name() == name).unwrap().values().to_vec()
}

#[test]
fn descriptions_go_to_toml_and_back() {
    let layers = [CnnLayer::conv(4, 3), CnnLayer::average_pool(2), CnnLayer::GlobalAveragePool, CnnLayer::dense(5)];
    for architecture in [
        Architecture::Mlp(Mlp::new(3, &[4], 2).activation(Activation::SinCos)),
        Architecture::Cnn(Cnn::new(&[1, 8, 8], &layers, 2).initialisation(Initialisation::LeCun)),
        Architecture::Resnet(Resnet::new(8, 10)),
        Architecture::Residual(Residual { width: 4, ..Residual::new(&[1, 1], 10) }),
        Architecture::TwoLayer(TwoLayer::new(5, 7)),
    ] {
        let text = architecture.to_toml().unwrap();
        assert_eq!(Architecture::from_toml(&text).unwrap(), architecture, "{text}");
        let (one, again, other) = (architecture.build(1), architecture.build(1), architecture.build(2));
        let first = |network: &Result<Network>| network.as_ref().unwrap().parameters()[0].values().clone();
        assert_eq!(first(&one), first(&again));
        assert_ne!(first(&one), first(&other));
        assert!(matches!(first(&one), Values::F32(_)));
    }
}

#[test]
fn errors_name_the_key_and_what_is_accepted() {
    let mlp = |line: &str| refused(&format!("[mlp]\ninputs = [2]\noutputs = 1\n{line}"));
    for (line, expected) in [
        ("activation = \"rleu\"", ["activation", "leaky-relu"]),
        ("width = [3]", ["width", "widths"]),
        ("widths = [3, 0]", ["layer2: width = 0", "from 1"]),
        ("widths = 3", ["widths = 3", "sequence"]),
        ("initialisation = \"xavier\"", ["xavier", "lecun"]),
        ("weight_std = 2.0", ["weight_std", "ntk"]),
        ("initialisation = \"ntk\"\nbias_std = -1.0", ["bias_std = -1", "above 0"]),
        ("widths = [1]\nactivation = \"sin-cos\"", ["layer1", "at least 2"]),
    ] {
        let text = mlp(line);
        assert!(expected.iter().all(|part| text.contains(part)), "{line}: {text}");
    }
    assert!(refused("[mpl]\ninputs = [2]").contains("two-layer"));
    assert!(refused("[mlp]\ninputs = [2]").contains("outputs"));
    assert!(refused("[mlp]\ninputs = []\noutputs = 1").contains("inputs = []"));
    assert!(refused("[resnet]\ndepth = 21\noutputs = 10").contains("6k + 2"));
    assert!(refused("[resnet]\ndepth = 20\noutputs = 10\ninitialisation = \"ntk\"").contains("accepted for a resnet"));
    let cnn = |layers: &str| refused(&format!("[cnn]\ninputs = [1, 4, 4]\noutputs = 2\nlayers = [{layers}]"));
    assert!(cnn("{ conv = { channels = 2 } }").contains("kernel"));
    assert!(cnn("{ convolution = { channels = 2 } }").contains("global-average-pool"));
    assert!(cnn("{ dense = { width = 2 } }, { max-pool = { size = 2 } }").contains("layer2"));
    assert!(cnn("{ max-pool = { size = 9 } }").contains("layer1"));
    assert!(cnn("{ conv = { channels = 2, kernel = 3, stride = 0 } }").contains("stride = 0"));
}

#[test]
fn the_two_layer_network_is_the_formula() {
    let network = TwoLayer::new(3, 5).activation(Activation::Tanh).build(2).unwrap();
    let (w, v) = (numbers(&network, "layer1.weight"), numbers(&network, "output.weight"));
    let x = [0.3, -0.7, 1.1];
    let unit = |row: &[f64]| (row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() / 3f64.sqrt()).tanh();
    let f = w.chunks(3).zip(&v).map(|(row, v)| v * unit(row)).sum::<f64>() / 5f64.sqrt();
    assert!((run(&network, &x, &[3])[0] - f).abs() < 1e-14);
}

#[test]
fn half_of_the_units_are_sines() {
    let network = Mlp::new(2, &[3], 3).activation(Activation::SinCos).build(1).unwrap();
    let (w, b) = (numbers(&network, "layer1.weight"), numbers(&network, "layer1.bias"));
    let (v, c) = (numbers(&network, "output.weight"), numbers(&network, "output.bias"));
    let x = [0.4, 2.0];
    let z: Vec<f64> = (0..3).map(|i| w[2 * i] * x[0] + w[2 * i + 1] * x[1] + b[i]).collect();
    let hidden = [z[0].sin(), z[1].sin(), z[2].cos()];
    for (at, y) in run(&network, &x, &[2]).iter().enumerate() {
        let expected = hidden.iter().zip(&v[3 * at..]).map(|(h, v)| h * v).sum::<f64>() + c[at];
        assert!((y - expected).abs() < 1e-14);
    }
}

#[test]
fn residual_networks_have_the_sizes_of_the_paper() {
    // He et al., table 6: 0.27M, 0.46M and 0.85M parameters.
    for (depth, millions) in [(20, 0.27), (32, 0.46), (56, 0.85)] {
        let network = Resnet::new(depth, 10).build(0).unwrap();
        assert!((network.n_params() as f64 / 1e6 - millions).abs() < 0.01, "{depth}: {}", network.n_params());
    }
    for normalisation in [Normalisation::Affine, Normalisation::None] {
        let small = Resnet { inputs: vec![3, 8, 8], normalisation, ..Resnet::new(56, 10) };
        let x: Vec<f64> = (0..192).map(|i| f64::from(i).sin()).collect();
        let y = run(&small.build(0).unwrap(), &x, &[3, 8, 8]);
        assert!(y.len() == 10 && y.iter().all(|y| y.abs() < 20.0), "the signal does not grow with depth: {y:?}");
    }
}

/// `(in, out, kernel)` of the convolutions, counted by hand, with a scale and a shift per channel.
fn counted(convolutions: &[(usize, usize, usize)], norms: &[usize], last: usize, outputs: usize) -> usize {
    let weights: usize = convolutions.iter().map(|(n_in, n_out, kernel)| n_in * n_out * kernel * kernel).sum();
    weights + 2 * norms.iter().sum::<usize>() + (last + 1) * outputs
}

/// Trainable numbers of the networks that others publish: weights, scales, shifts and biases of the last layer, without
/// running statistics. ResNet-18 with ten classes as in kuangliu's pytorch-cifar, with a thousand as in torchvision;
/// the wide networks of Zagoruyko and Komodakis.
#[test]
fn residual_networks_have_the_parameters_of_others() {
    let count = |residual: &Residual| residual.build(0).unwrap().n_params();
    let resnet = Residual::resnet(18, 10).unwrap();
    assert_eq!(count(&resnet), 11_173_962);
    let imagenet = Residual { inputs: vec![3, 64, 64], stem: Stem::ImageNet, outputs: 1000, ..resnet.clone() };
    assert_eq!(count(&imagenet), 11_689_512);
    assert_eq!(count(&Residual::resnet(34, 10).unwrap()), 21_282_122);
    assert_eq!(count(&Residual::wide(16, 4, 10).unwrap()), 2_748_890);
    assert_eq!(count(&Residual::wide(28, 10, 10).unwrap()), 36_479_194);
    // WRN-10-1, layer by layer.
    let small = Residual::wide(10, 1, 10).unwrap();
    let convolutions = [
        (3, 16, 3),
        (16, 16, 3),
        (16, 16, 3),
        (16, 32, 3),
        (32, 32, 3),
        (16, 32, 1),
        (32, 64, 3),
        (64, 64, 3),
        (32, 64, 1),
    ];
    assert_eq!(count(&small), counted(&convolutions, &[16, 16, 16, 32, 32, 64, 64], 64, 10));
    // Without normalisation: a bias per channel of every convolution.
    let plain = Residual { normalisation: Normalisation::None, ..small.clone() };
    let biases: usize = convolutions.iter().map(|(_, n_out, _)| n_out).sum();
    assert_eq!(count(&plain), counted(&convolutions, &[], 64, 10) + biases);
    let affine = Residual { normalisation: Normalisation::Affine, ..small.clone() };
    assert_eq!(count(&affine), count(&small));
    assert!(affine.build(0).unwrap().statistics().is_empty());
    assert_eq!(small.build(0).unwrap().statistics().len(), 14);
}

#[test]
fn residual_networks_of_all_kinds_run() {
    let x: Vec<f64> = (0..3 * 256).map(|i| f64::from(i).sin()).collect();
    for normalisation in [Normalisation::Batch, Normalisation::Affine, Normalisation::None] {
        for shortcut in [Shortcut::Projection, Shortcut::Padding] {
            for pre_activation in [false, true] {
                for stem in [Stem::Cifar, Stem::ImageNet] {
                    let inputs = vec![3, 16, 16];
                    let small = Residual { inputs, width: 4, widen: 2, ..Residual::new(&[1, 2], 5) };
                    let residual = Residual { normalisation, shortcut, pre_activation, stem, ..small };
                    let text = Architecture::Residual(residual.clone()).to_toml().unwrap();
                    assert_eq!(Architecture::from_toml(&text).unwrap(), Architecture::Residual(residual.clone()));
                    let y = run(&residual.build(0).unwrap(), &x, &[3, 16, 16]);
                    assert!(y.len() == 5 && y.iter().all(|y| y.abs() < 50.0), "{residual:?}: {y:?}");
                }
            }
        }
    }
    for (line, part) in [
        ("blocks = []\nwidth = 4", "blocks = []"),
        ("blocks = [2, 0]\nwidth = 4", "at least one block"),
        ("blocks = [2]\nwidth = 0", "width = 0"),
        ("blocks = [2]\nwidth = 4\nwiden = 0", "widen = 0"),
        ("blocks = [2]\nwidth = 4\nstem = \"large\"", "imagenet"),
        ("blocks = [2]\nwidth = 4\nnormalisation = \"layer\"", "batch"),
        ("blocks = [2]\nwidth = 4\ninitialisation = \"ntk\"", "accepted for a resnet or residual"),
        ("blocks = [2]\nwidth = 4\ninitialisation = \"standard\"\nlaw = \"cauchy\"", "he, lecun"),
        ("blocks = [2]\nwidth = 4\nlaw = \"levy\"", "cauchy"),
    ] {
        let text = refused(&format!("[residual]\noutputs = 3\n{line}"));
        assert!(text.contains(part), "{line}: {text}");
    }
    assert!(Residual::wide(27, 10, 10).unwrap_err().to_string().contains("6k + 4"));
    assert!(Residual::resnet(19, 10).unwrap_err().to_string().contains("18, 34"));
}

/// A normalised activation in the two-layer network, and hidden weights with heavy tails.
#[test]
fn factors_and_laws_are_in_the_network() {
    let plain = TwoLayer::new(3, 400).activation(Activation::Tanh);
    let scaled = TwoLayer { activation: "tanh/0.6278".parse().unwrap(), ..plain.clone() };
    let x = [0.3, -0.7, 1.1];
    let [y, z] = [&plain, &scaled].map(|two_layer| run(&two_layer.build(2).unwrap(), &x, &[3])[0]);
    assert!((z - y / 0.6278).abs() < 1e-14);
    let heavy = TwoLayer { law: WeightLaw::Cauchy, ..plain.clone() }.build(2).unwrap();
    let largest = |name: &str| numbers(&heavy, name).iter().fold(0f64, |largest, x| largest.max(x.abs()));
    assert!(largest("layer1.weight") > 50.0, "1200 Cauchy numbers");
    assert_eq!(numbers(&heavy, "output.weight"), numbers(&plain.build(2).unwrap(), "output.weight"));
    let text = "[cnn]\ninputs = [1, 4, 4]\noutputs = 2\nbatch_norm = true\nlaw = \"cauchy\"\ninitialisation = \"lecun\"\n\
                activation = \"normalised(tanh)\"\nlayers = [{ conv = { channels = 2, kernel = 3 } }]";
    let network = Architecture::from_toml(text).unwrap().build(0).unwrap();
    assert_eq!(network.statistics().len(), 2);
}

/// Parameters follow the widths; what has none is refused.
#[test]
fn networks_become_wider() {
    let layers = [CnnLayer::conv(4, 3), CnnLayer::max_pool(2), CnnLayer::dense(6)];
    for (architecture, factor, expected) in [
        (Architecture::Mlp(Mlp::new(3, &[4], 2)), 2.0, 3 * 8 + 8 + 8 * 2 + 2),
        (Architecture::Cnn(Cnn::new(&[1, 4, 4], &layers, 2)), 0.5, 9 * 2 + 2 + 8 * 3 + 3 + 3 * 2 + 2),
        (Architecture::TwoLayer(TwoLayer::new(5, 7)), 0.01, 5 + 1),
    ] {
        assert_eq!(architecture.widened(factor).unwrap().build(0).unwrap().n_params(), expected);
        assert_eq!(architecture.widened(1.0).unwrap(), architecture);
    }
    let residual = |width: usize| Residual { width, ..Residual::new(&[1, 1], 10) };
    assert_eq!(Architecture::Residual(residual(4)).widened(3.0).unwrap(), Architecture::Residual(residual(12)));
    let resnet = Architecture::Resnet(Resnet::new(8, 10)).widened(0.25).unwrap();
    assert_eq!(resnet, Architecture::Resnet(Resnet { width: 4, ..Resnet::new(8, 10) }));
    let linear = Architecture::Mlp(Mlp::new(3, &[], 2));
    assert!(linear.widened(2.0).unwrap_err().to_string().contains("no hidden layer"));
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Architecture::TwoLayer(TwoLayer::new(5, 7)).widened(factor).is_err(), "{factor}");
    }
}
