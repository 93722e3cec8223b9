//! Probes of small networks on the embedded digits.

use mercer::data::{Existing, digits, write_npy};
use mercer::job::probe::ProbeFindings;
use mercer::job::{Destination, Job, Opened, ProbeJob};
use mercer::prelude::{Context, Mlp, Network};
use mercer::spec::{DataRef, DataSpec, Inputs, Opening, Precision};
use ndarray::{Array1, Array2, Axis};
use std::path::Path;

/// The first digits of four classes, and an untrained network in a folder.
fn case(change: impl FnOnce(&mut Network)) -> (tempfile::TempDir, Array2<f64>, Vec<usize>) {
    let (train, _) = digits::split().expect("digits");
    let all = train.classes.indices();
    let rows: Vec<usize> = (0..all.len()).filter(|&row| all[row] < 4).take(120).collect();
    let images =
        train.images.select::<f64>(&rows).expect("reads").into_shape_with_order((120, 64)).expect("rows") / 16.0;
    let labels: Vec<usize> = rows.iter().map(|&row| all[row]).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    write_npy(&path("x.npy"), &images, Existing::Refuse).expect("writes");
    let numbers = Array1::from_iter(labels.iter().map(|&label| label as i64));
    write_npy(&path("y.npy"), &numbers, Existing::Refuse).expect("writes");
    let mut network = Mlp::new(64, &[16, 12], 4).build(1).expect("builds");
    change(&mut network);
    std::fs::write(path("net.onnx"), network.to_onnx_bytes().expect("bytes")).expect("writes");
    (folder, images, labels)
}

fn job(folder: &Path) -> ProbeJob {
    let data = |name: &str| DataRef::from(folder.join(name).display().to_string());
    let train = DataSpec { data: vec![data("x.npy")], labels: Some(data("y.npy")), ..DataSpec::default() };
    let test = vec![data("x.npy")];
    let job = ProbeJob { test, test_labels: Some(data("y.npy")), ..ProbeJob::new(folder.join("net.onnx"), train) };
    ProbeJob { precision: Precision::F64, ..job }
}

fn probed(job: &ProbeJob, context: &Context) -> ProbeFindings {
    let inputs = Inputs::none();
    let opened = job.open(&Destination::default(), Opening { inputs: &inputs, context }).expect("opens");
    opened.run(context).expect("probes").findings
}

#[test]
fn layers_are_those_of_the_network() {
    let (folder, images, labels) = case(|_| ());
    let found = probed(&job(folder.path()), &Context::new());
    assert_eq!(found.layers.iter().map(|layer| layer.n_features).collect::<Vec<_>>(), [16, 12]);
    // The same layer by prediction, and its within-class variation by hand.
    let network = Network::from_onnx(folder.path().join("net.onnx")).expect("opens");
    let values: Vec<f64> = images.iter().copied().collect();
    let node = &found.layers[1].node;
    let layer = network.predict(&[(&values, &[64])], 120, Some(node), None).expect("runs");
    let layer = Array2::from_shape_vec((120, 12), layer.values).expect("rows");
    let mean = |class: usize| {
        let rows: Vec<usize> = (0..120).filter(|&row| labels[row] == class).collect();
        layer.select(Axis(0), &rows).mean_axis(Axis(0)).expect("samples")
    };
    let means: Vec<Array1<f64>> = (0..4).map(mean).collect();
    let nearest = |row: usize| {
        let far = |class: usize| (&layer.row(row) - &means[class]).mapv(|x| x * x).sum();
        (0..4).min_by(|&a, &b| f64::total_cmp(&far(a), &far(b))).expect("classes")
    };
    let scores = network.predict(&[(&values, &[64])], 120, None, None).expect("runs").values;
    let decision = |row: usize| mercer::net::network::largest(&scores[4 * row..4 * row + 4]);
    let different = (0..120).filter(|&row| nearest(row) != decision(row)).count();
    assert_eq!(found.layers[1].collapse.nc4, different as f64 / 120.0);
    assert!(found.layers[1].collapse.nc3.is_some() && found.layers[0].collapse.nc3.is_none());
    // Tested on the samples it was trained on, a single neighbour is the sample itself.
    let one = ProbeJob { neighbours: 1, ..job(folder.path()) };
    let found = probed(&one, &Context::new());
    assert_eq!(found.layers[0].accuracy.expect("alive").neighbours, 1.0);
}

#[test]
fn a_constant_layer_is_reported() {
    let (folder, ..) = case(|network| {
        let graph = network.graph(&[vec![64]]).expect("a graph");
        let mut weights = network.weights::<f64>(&graph);
        weights.parameters[0].fill(0.0);
        network.set_weights(&weights);
    });
    let found = probed(&job(folder.path()), &Context::new());
    let first = &found.layers[0];
    assert_eq!((first.n_dead, first.n_components, first.accuracy), (16, 0, None));
    assert!(found.sentences.iter().any(|text| text.contains("same for all samples")), "{:?}", found.sentences);
}

#[test]
fn a_run_can_be_interrupted() {
    let (folder, ..) = case(|_| ());
    let context = Context::new();
    let inputs = Inputs::none();
    let opening = Opening { inputs: &inputs, context: &context };
    let opened = job(folder.path()).open(&Destination::default(), opening).expect("opens");
    context.cancel();
    assert!(opened.run(&context).expect_err("stops").is_interrupted());
}
