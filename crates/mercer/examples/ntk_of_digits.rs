//! Trains a small network on the embedded digits and draws its tangent kernel before and after.
//!
//! `cargo run --release -p mercer --example ntk_of_digits -- docs/ntk-of-digits.svg`

use mercer::data::{Dataset, Labels, digits};
use mercer::kernel::{Kind, Ntk};
use mercer::net::Network;
use mercer::net::arch::{Cnn, CnnLayer};
use mercer::net::train::{Loss, Optimiser, Schedule, Trainer, TrainingLoop, TrainingSamples, TrainingSettings};
use std::fmt::Write;

/// Digits of each class in the picture, and pixels of a cell.
const PER_CLASS: usize = 4;
const CELL: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "ntk-of-digits.svg".to_owned());
    let (train, test) = digits::split()?;
    let pixels = train.pixels()?.into_shape_with_order((train.classes.indices().len(), 1, 8, 8))?;
    let inputs = Dataset::from_array("digits", pixels.view().into_dyn())?;
    let labels = Labels::Classes(train.classes.clone());

    // The same few test digits, sorted by class.
    let images = test.pixels()?;
    let chosen: Vec<usize> = (0..10)
        .flat_map(|class| {
            let of_class = test.classes.indices().iter().enumerate().filter(move |&(_, &c)| c == class);
            of_class.map(|(index, _)| index).take(PER_CLASS)
        })
        .collect();
    let x: Vec<f32> = chosen.iter().flat_map(|&index| images.index_axis(ndarray::Axis(0), index).to_owned()).collect();

    let layers = [CnnLayer::conv(16, 3), CnnLayer::max_pool(2), CnnLayer::conv(32, 3), CnnLayer::dense(64)];
    let mut network = Cnn::new(&[1, 8, 8], &layers, 10).build(0)?;
    let before = cosines(&network, &x, chosen.len())?;
    let graph = network.declared_graph()?;
    let weights = network.weights::<f32>(&graph);
    let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam())?;
    let settings = TrainingSettings {
        epochs: 20,
        batch_size: Some(32),
        seed: 0,
        schedule: Schedule::constant(2e-3),
        checkpoints: vec![],
    };
    TrainingLoop::new(settings).run(&mut trainer, TrainingSamples { inputs: &inputs, labels: &labels })?;
    network.set_weights(trainer.weights());
    let after = cosines(&network, &x, chosen.len())?;

    std::fs::write(&path, picture(&[("before training", &before), ("after training", &after)], chosen.len()))?;
    println!("{path}: the tangent kernel of {} digits before and after training", chosen.len());
    Ok(())
}

/// The trace-NTK, cosine-normalised.
fn cosines(network: &Network, x: &[f32], n: usize) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    let gram = Ntk::<f32>::new(network, &[vec![1, 8, 8]], Kind::Trace)?.gram(&[x], n)?;
    let norm = |i: usize| gram[i * n + i].sqrt();
    Ok((0..n * n).map(|at| gram[at] / (norm(at / n) * norm(at % n))).collect())
}

fn picture(panels: &[(&str, &[f32])], n: usize) -> String {
    let side = n * CELL;
    let (width, height) = (panels.len() * (side + 20) + 20, side + 50);
    let mut svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">\n");
    svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    for (index, (title, values)) in panels.iter().enumerate() {
        let left = 20 + index * (side + 20);
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"22\" font-family=\"sans-serif\" font-size=\"14\">{title}</text>");
        for (at, value) in values.iter().enumerate() {
            // From white at 0 to dark blue at 1.
            let shade = value.clamp(0.0, 1.0);
            let channel = |dark: f32| (255.0 - (255.0 - dark) * shade).round();
            let (x, y) = (left + at % n * CELL, 32 + at / n * CELL);
            let (r, g, b) = (channel(8.0), channel(48.0), channel(107.0));
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"rgb({r},{g},{b})\"/>"
            );
        }
    }
    svg + "</svg>\n"
}
