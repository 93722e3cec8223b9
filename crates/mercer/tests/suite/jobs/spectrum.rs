//! Spectra of networks whose weights are known.

use mercer::data::{Existing, write_npy};
use mercer::job::spectrum::SpectrumFindings;
use mercer::job::{Destination, Job, Opened, SpectrumJob};
use mercer::lens::spectra::SpectrumKind;
use mercer::prelude::{Context, Mlp};
use mercer::spec::{Inputs, Opening};
use ndarray::{Array1, Array2};

fn spectra(job: &SpectrumJob) -> SpectrumFindings {
    let (context, inputs) = (Context::new(), Inputs::none());
    let opened = job.open(&Destination::default(), Opening { inputs: &inputs, context: &context }).expect("opens");
    opened.run(&context).expect("runs").findings
}

/// A network of noise gets a direction planted into its first weight.
#[test]
fn a_planted_spike_leaves_the_bulk() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut network = Mlp::new(120, &[80], 2).build(3).expect("builds");
    std::fs::write(path("net.onnx"), network.to_onnx_bytes().expect("bytes")).expect("writes");
    network.save_safetensors(path("start.safetensors")).expect("writes");
    let direction = Array1::<f64>::from_shape_fn(120, |j| if j % 3 == 0 { 1.0 } else { -0.5 });
    let norm = direction.dot(&direction).sqrt();
    let graph = network.graph(&[vec![120]]).expect("a graph");
    let mut weights = network.weights::<f64>(&graph);
    let names: Vec<&str> = network.parameters().iter().map(|own| own.name()).collect();
    let at = network.parameters().iter().position(|own| own.numel() == 120 * 80).expect("the first weight");
    let shape = network.parameters()[at].shape().to_vec();
    let rms = (weights.parameters[at].iter().map(|x| x * x).sum::<f64>() / 9600.0).sqrt();
    let change = Array2::from_shape_fn((80, 120), |(i, j)| {
        // Four times as strong as the edge of noise, along the direction.
        let row = if i % 2 == 0 { 1.0 } else { -1.0 };
        rms * 4.0 * (120.0_f64.sqrt()) * row / 80.0_f64.sqrt() * direction[j] / norm
    });
    let change = if shape == [80, 120] { change } else { change.reversed_axes() };
    for (value, change) in weights.parameters[at].iter_mut().zip(change.iter()) {
        *value += change;
    }
    assert_eq!(names.len(), 4);
    network.set_weights(&weights);
    network.save_safetensors(path("later.safetensors")).expect("writes");
    write_npy(&path("direction.npy"), &direction, Existing::Refuse).expect("writes");
    let job = SpectrumJob {
        checkpoints: vec![path("start.safetensors"), path("later.safetensors")],
        direction: Some(path("direction.npy").display().to_string().as_str().into()),
        ..SpectrumJob::new(path("net.onnx"))
    };
    let found = spectra(&job);
    let [start, later] = &found.checkpoints[..] else { panic!("two checkpoints") };
    let (before, after) = (&start.weights[0], &later.weights[0]);
    assert_eq!((before.rows, before.columns), (80, 120));
    assert_eq!((before.n_spikes, after.n_spikes), (0, 1));
    assert_eq!((before.kind, after.kind), (SpectrumKind::Bulk, SpectrumKind::Spikes));
    // The deviation of the noise is found in spite of the spike, and the edge is that of the law.
    let sigma = after.sigma.expect("a bulk");
    assert!((sigma / rms - 1.0).abs() < 0.05, "{sigma} {rms}");
    let edge = sigma * sigma * (1.0 + (80.0_f64 / 120.0).sqrt()).powi(2);
    assert!((after.edge.expect("an edge") / edge - 1.0).abs() < 1e-9);
    let cosine = after.direction.as_ref().expect("a direction").cosines[0].expect("a cosine");
    assert!(cosine > 0.9, "{cosine}");
    let drift = after.drift.expect("a drift");
    let length = change.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!((drift.frobenius / length - 1.0).abs() < 1e-5, "{} {length}", drift.frobenius);
    assert!(found.sentences[0].starts_with("A spike left the bulk of"), "{:?}", found.sentences);
    assert!(found.sentences[0].contains("at later"), "{:?}", found.sentences);
}
