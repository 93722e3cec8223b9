//! Graphs as networks of infinite width: built, described and read from files.

use super::{grams, mlp, normal, of, worst};
use mercer_kernel::infinite::{
    Activation, Layer, Limit, LimitNet, Of, Parametrisation, Patch, Rule, Scales, Variances, lower,
};
use mercer_kernel::{Kind, Ntk};
use mercer_net::Network;
use mercer_net::arch::{self, Architecture, Cnn, Initialisation, Mlp};
use mercer_net::op::Function;
use std::path::PathBuf;

#[test]
fn files() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/nets");
    for name in [
        "mlp_tanh",
        "mlp_erf",
        "mnist-net_256x2",
        "cnn_mnist_pytorch",
        "verivital_Convnet_maxpool",
        "conv_zoo_legacy",
        "cifar_base_kw",
        "resnet_2b",
        "marabou_cifar10_small",
        "cifar10_resnet20",
        "cifar10_resnet20_dynamo",
        "tiny_bert",
        "tiny_vit",
    ] {
        let network = Network::from_onnx(folder.join(format!("{name}.onnx"))).unwrap();
        let shapes: Vec<Vec<usize>> =
            network.inputs().iter().map(|i| i.declared_sample().unwrap_or_default()).collect();
        match network.graph(&shapes) {
            Ok(graph) => match lower(&graph, &Rule::ntk(1.0, 0.1)) {
                Ok(l) => {
                    println!("{name}: ok");
                    for n in l.net.nodes() {
                        println!("   {} {:?} {:?} {:?}", n.name, n.layer, n.inputs, n.space);
                    }
                }
                Err(e) => println!("{name}: {e}"),
            },
            Err(e) => println!("{name}: graph {e}"),
        }
    }
}
