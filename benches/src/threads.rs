//! A whole training step (forward, reverse, update) on one thread and on two.

use super::cases::{self, numbers};
use mercer_net::Network;
use mercer_net::train::{Loss, Optimiser, Targets, Trainer};
use std::time::Instant;

/// Seconds of a step with this many threads, best of some rounds.
fn seconds(network: &Network, batch: usize, threads: usize, rounds: usize) -> f64 {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    let graph = network.declared_graph().expect("declared sizes");
    let weights = network.weights::<f32>(&graph);
    let size: usize = network.inputs()[0].declared_sample().expect("declared sizes").iter().product();
    let x = numbers(batch * size, 1.0);
    let classes: Vec<usize> = (0..batch).map(|sample| sample * 7 % 10).collect();
    let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::sgd()).expect("trains");
    let mut best = f64::INFINITY;
    pool.install(|| {
        for _ in 0..rounds {
            let start = Instant::now();
            trainer.step(&[&x], &Targets::classes(&classes), batch, 1e-4).expect("a finite loss");
            best = best.min(start.elapsed().as_secs_f64());
        }
    });
    best
}

pub(super) fn print(only: &str, rounds: usize) {
    println!("\n| training step | one thread, ms | two threads, ms | faster by |");
    println!("|---|---:|---:|---:|");
    for (name, network, batch) in cases::trained() {
        if name.contains(only) {
            let [one, two] = [1, 2].map(|threads| seconds(&network, batch, threads, 4 * rounds));
            println!("| {name} | {:.2} | {:.2} | {:.2}× |", one * 1e3, two * 1e3, one / two);
        }
    }
}
