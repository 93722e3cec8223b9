//! Embedding and conjugate kernels.

use super::networks::{Case, built, golden};
use mercer_kernel::empirical::layer_names;
use mercer_kernel::{Activations, Conjugate, FeatureMap, Features, Kernel, KernelError, Ntk, NtkKind};
use mercer_net::NetError;
use mercer_net::arch::{Cnn, CnnLayer, Initialisation, Mlp};
use mercer_net::graph::ValueId;

fn gram(kernel: &dyn Kernel<f64>, case: &Case) -> Vec<f64> {
    let block = kernel.prepare(&[&case.data], case.samples).expect("prepares");
    let mut gram = vec![0.0; kernel.parts().len() * case.samples * case.samples];
    kernel.contract(&block, &block, &mut gram);
    gram
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    assert_eq!(found.len(), expected.len(), "{what}");
    // Both are sums of a few thousand products.
    assert!(found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= 1e-12 * largest), "{what}");
}

/// The layers of the last weight and of the last bias: one, unless a file names no layers but only nodes.
fn last_layer(case: &Case) -> [String; 2] {
    let graph = case.network.graph(&case.shapes()).unwrap();
    let names = layer_names(&graph);
    ["MatMul", "Binary"].map(|operation| {
        let nodes = graph.nodes().iter().rev().filter(|node| node.op.name() == operation);
        let parameter = |id: &ValueId| graph.parameters().iter().position(|own| own == id);
        let last = nodes.flat_map(|node| &node.inputs).find_map(parameter).unwrap();
        names[last].clone()
    })
}

/// Where the outputs are logits, the last layer's share of the trace kernel is C times the conjugate kernel.
#[test]
fn the_last_layer_of_the_trace_kernel() {
    let names = [
        "mlp_tanh",
        "mlp_erf",
        "mnist-net_256x2",
        "verivital_Convnet_maxpool",
        "conv_zoo_legacy",
        "cifar_base_kw",
        "resnet_2b",
        "marabou_cifar10_small",
        "cifar10_resnet20",
        "cifar10_resnet20_dynamo",
        "tiny_bert",
        "tiny_vit",
    ];
    for case in names.into_iter().map(golden).chain([built("mlp"), built("cnn")]) {
        let conjugate = Conjugate::<f64>::new(&case.network, &case.shapes(), None);
        let conjugate = conjugate.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let ntk = Ntk::<f64>::new(&case.network, &case.shapes(), NtkKind::Trace).unwrap().by_layer();
        let parts = Kernel::<f64>::parts(&ntk);
        let chosen = last_layer(&case);
        let is_last = |at: usize| chosen.contains(&parts[at]);
        let mut last = vec![0.0; case.samples * case.samples];
        let by_layer = gram(&ntk, &case);
        for (_, part) in by_layer.chunks_exact(last.len()).enumerate().filter(|&(at, _)| is_last(at)) {
            last.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
        let expected: Vec<f64> =
            gram(&Features(conjugate), &case).iter().map(|x| case.n_outputs() as f64 * x).collect();
        assert_close(&last, &expected, case.name);
    }
}

/// In the NTK parametrisation the last layer is `v·z/√h` without a bias.
#[test]
fn the_scale_of_the_ntk_parametrisation_belongs_to_the_features() {
    let case = built("ntk mlp");
    let conjugate = Conjugate::<f64>::new(&case.network, &case.shapes(), None).unwrap().without_bias();
    let ntk = Ntk::<f64>::new(&case.network, &case.shapes(), NtkKind::Logit(1)).unwrap().by_layer();
    let by_layer = gram(&ntk, &case);
    assert_close(&by_layer[by_layer.len() / 2..], &gram(&Features(conjugate), &case), case.name);
}

/// A softmax at the end does not change the features.
#[test]
fn features_before_a_softmax() {
    let case = golden("cnn_mnist_pytorch");
    let conjugate = Conjugate::<f64>::new(&case.network, &case.shapes(), None).unwrap();
    assert_eq!(FeatureMap::<f64>::n_features(&conjugate), 51);
    let embedding = Activations::<f64>::new(&case.network, &case.shapes(), &[conjugate.layer()]).unwrap();
    let plus_one: Vec<f64> = gram(&Features(embedding), &case).iter().map(|x| x + 1.0).collect();
    assert_close(&gram(&Features(conjugate), &case), &plus_one, case.name);
}

/// The embedding kernel is the sum of its layers' Gram matrices, and a layer's is that of its values.
#[test]
fn embeddings_sum_over_layers() {
    let case = golden("conv_zoo_legacy");
    let nodes = super::members::two_nodes(&case);
    let of =
        |names: &[&str]| gram(&Features(Activations::<f64>::new(&case.network, &case.shapes(), names).unwrap()), &case);
    let mut sum = vec![0.0; case.samples * case.samples];
    for node in &nodes {
        let found = case.network.predict(&[(&case.data, &case.shape)], case.samples, Some(node), None).unwrap().values;
        let width = found.len() / case.samples;
        for (at, to) in sum.iter_mut().enumerate() {
            let (x, y) = (&found[at / case.samples * width..][..width], &found[at % case.samples * width..][..width]);
            *to += x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        }
    }
    assert_close(&of(&[&nodes[0], &nodes[1]]), &sum, "both layers");
}

#[test]
fn networks_without_a_last_hidden_layer_are_refused() {
    let cnn = Cnn::new(&[1, 5, 5], &[CnnLayer::conv(3, 3)], 2).build(1).unwrap();
    let refused = |output: &str| Conjugate::<f64>::new(&cnn, &[vec![1, 5, 5]], Some(output)).unwrap_err();
    let graph = cnn.declared_graph().unwrap();
    let convolution = graph.nodes().iter().find(|node| node.op.name() == "Conv").unwrap();
    match refused(&graph.value(convolution.output).name) {
        KernelError::Network(error) => match *error {
            NetError::Unsupported { node, reason } => {
                assert_eq!(node, convolution.label());
                assert!(reason.contains("convolution") && reason.contains("embedding"), "{reason}");
            }
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
    let error = refused(&graph.value(graph.inputs()[0]).name).to_string();
    assert!(error.contains("no last hidden layer"), "{error}");
    assert!(refused("no such thing").to_string().contains("no such thing"));
    // A sequence has a feature vector per position.
    let bert = golden("tiny_bert");
    let graph = bert.network.graph(&bert.shapes()).unwrap();
    let positions = graph.nodes().iter().find(|node| node.op.name() == "MatMul").unwrap();
    let error =
        Conjugate::<f64>::new(&bert.network, &bert.shapes(), Some(&graph.value(positions.output).name)).unwrap_err();
    assert!(error.to_string().contains("positions"), "{error}");
}

#[test]
fn errors_name_node_and_sample() {
    let network = Mlp::new(2, &[3], 1).build(1).unwrap();
    assert!(Activations::<f32>::new(&network, &[vec![2]], &[]).is_err());
    let weight = Activations::<f32>::new(&network, &[vec![2]], &["layer1.weight"]).unwrap_err();
    assert!(weight.to_string().contains("does not depend on the input"), "{weight}");
    // Weights of seven inputs sum to more than one in some of the units, and the largest number overflows there.
    let network = Mlp::new(7, &[13], 3).initialisation(Initialisation::He).build(1).unwrap();
    let kernel = Features(Activations::<f32>::new(&network, &[vec![7]], &["layer1/product"]).unwrap());
    // Shards have 128 samples: row 300 is in the third.
    let mut data = vec![1.0; 7 * 400];
    data[7 * 300..7 * 301].fill(f32::MAX);
    let error = kernel.prepare(&[&data], 400).unwrap_err().to_string();
    assert!(error.contains("layer1/product") && error.ends_with("sample 300"), "{error}");
    data[7 * 300] = f32::NAN;
    assert!(kernel.prepare(&[&data], 400).unwrap_err().to_string().ends_with("sample 300"));
}
