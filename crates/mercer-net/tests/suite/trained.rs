//! What a network says about its training, in and out of ONNX files, and hints that come of it.

use mercer_data::{Columns, Dataset, Preprocess};
use mercer_net::Network;
use mercer_net::arch::{Cnn, CnnLayer, Mlp};
use mercer_net::graph::{Batch, GraphBuilder};
use mercer_net::network::{Batching, TrainedOn, Values};
use mercer_net::op::{Binary, Combine, MatMul};
use ndarray::{Array, Array3, Array4};

fn known() -> TrainedOn {
    TrainedOn {
        classes: Some(["cat", "sea, \"horse\"", "dog"].map(str::to_owned).to_vec()),
        columns: vec![Some(Columns {
            inputs: ["b", "a"].map(str::to_owned).to_vec(),
            used: vec!["species".to_owned()],
            named: true,
            single: false,
            reading: None,
        })],
        preprocess: Some(vec![Preprocess::new().scale(1.0 / 255.0)]),
    }
}

fn read_back(network: &Network) -> mercer_net::Result<Network> {
    Network::from_onnx_bytes(&network.to_onnx_bytes()?, Batching::Samples)
}

#[test]
fn the_file_keeps_what_the_network_was_trained_on() {
    let mut network = Mlp::new(2, &[4], 3).build(0).unwrap();
    assert_eq!(read_back(&network).unwrap().trained_on(), &TrainedOn::default());
    network.set_trained_on(known()).unwrap();
    assert_eq!(read_back(&network).unwrap().trained_on(), &known());
    // Once more: what was read is written again.
    assert_eq!(read_back(&read_back(&network).unwrap()).unwrap().trained_on(), &known());
    let two = TrainedOn { columns: vec![None, None], ..TrainedOn::default() };
    assert!(network.set_trained_on(two).is_err());
}

#[test]
fn metadata_that_make_no_sense_are_refused() {
    let mut network = Mlp::new(2, &[4], 3).build(0).unwrap();
    network.set_trained_on(known()).unwrap();
    let bytes = network.to_onnx_bytes().unwrap();
    let at = bytes.windows(5).position(|part| part == b"[\"cat").unwrap();
    let mut broken = bytes.clone();
    broken[at] = b'{';
    let error = Network::from_onnx_bytes(&broken, Batching::Samples).unwrap_err().to_string();
    assert!(error.contains("mercer.classes"), "{error}");
}

fn images(value: u8) -> Dataset {
    Dataset::from_array("images", Array4::from_elem((3, 1, 6, 6), value).into_dyn().view()).unwrap()
}

fn hint(network: &Network, images: &Dataset) -> Option<String> {
    network.scale_hint(std::slice::from_ref(images)).unwrap()
}

#[test]
fn bytes_that_go_in_unscaled_get_a_hint() {
    let mut network = Cnn::new(&[1, 6, 6], &[CnnLayer::conv(4, 3), CnnLayer::dense(5)], 3).build(1).unwrap();
    assert!(hint(&network, &images(200)).unwrap().contains("--scale 1/255"));
    let flat = Dataset::from_array("images", Array3::from_elem((3, 6, 6), 9_u8).into_dyn().view()).unwrap();
    assert!(hint(&Mlp::new(36, &[4], 3).build(0).unwrap(), &flat).is_some());
    // Masks, floats, scaled ones, tables, and networks that were trained on bytes.
    assert_eq!(hint(&network, &images(1)), None);
    let floats = Array::from_elem((3, 1, 6, 6), 200.0_f32);
    assert_eq!(hint(&network, &Dataset::from_array("floats", floats.into_dyn().view()).unwrap()), None);
    for steps in [Preprocess::new().scale(1.0 / 255.0), Preprocess::new().normalise(vec![120.0], vec![60.0])] {
        assert_eq!(hint(&network, &images(200).with_preprocess(steps).unwrap()), None);
    }
    let table = Dataset::from_array("table", Array::from_elem((3, 36), 200_u8).into_dyn().view()).unwrap();
    assert_eq!(hint(&Mlp::new(36, &[4], 3).build(0).unwrap(), &table), None);
    let trained = |steps: Preprocess| TrainedOn { preprocess: Some(vec![steps]), ..TrainedOn::default() };
    network.set_trained_on(trained(Preprocess::new())).unwrap();
    assert_eq!(hint(&network, &images(200)), None);
    network.set_trained_on(trained(Preprocess::new().scale(1.0 / 255.0))).unwrap();
    assert!(hint(&network, &images(200)).unwrap().contains("it was trained on scaled pixels"));
}

#[test]
fn a_network_that_scales_its_input_gets_no_hint() {
    let build = |scaled: bool| {
        let mut graph = GraphBuilder::new();
        let mut x = graph.input("x", vec![1, 36], Batch::axis(0));
        if scaled {
            let factor = graph.scalar(1.0 / 255.0);
            x = graph.node("scaled", Binary(Combine::Mul), &[x, factor]).unwrap();
        }
        let weight = graph.parameter("w", vec![36, 2]);
        let y = graph.node("y", MatMul { transposed: false }, &[x, weight]).unwrap();
        graph.output("y", y);
        Network::from_graph(graph.finish(), vec![Values::from_slice(&[0.01_f32; 72])]).unwrap()
    };
    let flat = Dataset::from_array("images", Array3::from_elem((3, 6, 6), 9_u8).into_dyn().view()).unwrap();
    assert!(hint(&build(false), &flat).is_some());
    assert_eq!(hint(&build(true), &flat), None);
}
