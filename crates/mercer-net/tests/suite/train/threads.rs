//! The same bits for any number of threads.

use super::trainer;
use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, CnnLayer, Initialisation, Mlp};
use mercer_net::run::Weights;
use mercer_net::train::{Loss, Optimiser, Targets, Trainer};

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i as f32) * 12.9898).sin()).collect()
}

/// The weights after three steps on `samples` samples, on so many threads.
fn trained(network: &Network, samples: usize, size: usize, threads: usize) -> Vec<Vec<f32>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut trainer = trainer(network, Loss::CrossEntropy, Optimiser::adam());
        let inputs = numbers(samples * size);
        let classes: Vec<usize> = (0..samples).map(|i| i * 7 % 10).collect();
        for _ in 0..3 {
            trainer.step(&[&inputs], &Targets::classes(&classes), samples, 0.01).unwrap();
        }
        trainer.weights().parameters.clone()
    })
}

#[test]
fn a_step_has_the_same_bits_on_one_two_and_three_threads() {
    let layers = [CnnLayer::conv(8, 3), CnnLayer::max_pool(2), CnnLayer::dense(300)];
    let cnn = Cnn::new(&[1, 8, 8], &layers, 10).build(1).unwrap();
    let mlp = Mlp::new(64, &[600, 80], 10).activation(Activation::Gelu).build(1).unwrap();
    // More shards than lanes, a ragged end, and a batch of less than a shard.
    for (network, samples) in [(&cnn, 203), (&cnn, 5), (&mlp, 1500)] {
        let one = trained(network, samples, 64, 1);
        assert!(one.iter().flatten().all(|x| x.is_finite()));
        for threads in [2, 3] {
            assert!(trained(network, samples, 64, threads) == one, "{samples} samples, {threads} threads");
        }
    }
}

#[test]
fn the_gradient_is_that_of_the_whole_batch() {
    let tanh = Mlp::new(3, &[7], 4).activation(Activation::Tanh);
    // The second one has biases that are used through another node.
    let ntk = Mlp { bias_std: Some(0.5), ..tanh.clone().initialisation(Initialisation::Ntk) };
    for mlp in [tanh, ntk] {
        check_gradient(&mlp.build(3).unwrap());
    }
}

/// In double precision the gradient agrees with finite differences of the loss of the batch, which is so large that
/// lanes have more than one shard.
fn check_gradient(network: &Network) {
    let graph = network.declared_graph().unwrap();
    let samples = 1300;
    assert!(samples > mercer_net::network::Shards::for_graph(&graph).grain * mercer_net::train::LANES);
    let inputs: Vec<f64> = numbers(samples * 3).iter().map(|&x| f64::from(x)).collect();
    let classes: Vec<usize> = (0..samples).map(|i| i % 4).collect();
    let weights: Vec<f64> = (0..samples).map(|i| 0.5 + (i % 3) as f64).collect();
    let targets = Targets::classes(&classes).weighted(&weights);
    let new = |parameters| {
        let weights = Weights::new(&graph, parameters);
        Trainer::new(graph.clone(), weights, Loss::CrossEntropy, Optimiser::sgd()).unwrap()
    };
    let start = network.weights::<f64>(&graph).parameters;
    let mut trainer = new(start.clone());
    trainer.step(&[&inputs], &targets, samples, 0.1).unwrap();
    let mut offset = 0;
    for index in 0..start.len() {
        for at in [0, start[index].len() - 1] {
            let loss = |by: f64| {
                let mut moved = start.clone();
                moved[index][at] += by;
                new(moved).evaluate(&[&inputs], &targets, samples).unwrap().loss
            };
            let estimate = (loss(1e-5) - loss(-1e-5)) / 2e-5;
            let error = (estimate - trainer.gradient()[offset + at]).abs();
            assert!(error < 1e-8, "parameter {index}, element {at}: {error}");
        }
        offset += start[index].len();
    }
}
