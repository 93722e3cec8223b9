//! A training step in its steady state allocates nothing.

use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, CnnLayer, Initialisation, Mlp, Normalisation, Resnet};
use mercer_net::train::{Loss, Optimiser, Targets, Trainer};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of ten steps after two.
fn allocations(network: &Network, size: usize) -> usize {
    let graph = network.declared_graph().unwrap();
    let weights = network.weights::<f32>(&graph);
    let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam()).unwrap();
    let samples = 40;
    let inputs: Vec<f32> = (0..samples * size).map(|i| ((i as f32) * 0.7).sin()).collect();
    let classes: Vec<usize> = (0..samples).map(|i| i % 3).collect();
    let mut step = || trainer.step(&[&inputs], &Targets::classes(&classes), samples, 0.01).unwrap();
    let fresh = COUNT.load(Ordering::Relaxed);
    step();
    step();
    let before = COUNT.load(Ordering::Relaxed);
    assert!(before > fresh, "the first steps allocate their memory, and that is seen");
    for _ in 0..10 {
        step();
    }
    COUNT.load(Ordering::Relaxed) - before
}

// One test, so that no other thread allocates meanwhile.
#[test]
fn a_step_allocates_nothing() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let layers = [
        CnnLayer::conv(4, 3),
        CnnLayer::max_pool(2),
        CnnLayer::conv(4, 3),
        CnnLayer::average_pool(2),
        CnnLayer::dense(8),
    ];
    let resnet = Resnet { inputs: vec![1, 8, 8], width: 2, ..Resnet::new(8, 3) };
    let normalised = Resnet { normalisation: Normalisation::Batch, ..resnet.clone() };
    let networks = [
        ("mlp", Mlp::new(64, &[20, 20], 3).activation(Activation::Gelu).build(0).unwrap()),
        ("mlp with sin-cos", Mlp::new(64, &[20], 3).activation(Activation::SinCos).build(0).unwrap()),
        ("mlp, ntk", Mlp::new(64, &[20], 3).initialisation(Initialisation::Ntk).build(0).unwrap()),
        ("cnn", Cnn::new(&[1, 8, 8], &layers, 3).build(0).unwrap()),
        ("resnet", resnet.build(0).unwrap()),
        ("resnet with batch normalisation", normalised.build(0).unwrap()),
        ("mlp with batch normalisation", Mlp::new(64, &[20], 3).batch_norm(true).build(0).unwrap()),
    ];
    for (name, network) in &networks {
        let count = pool.install(|| allocations(network, 64));
        assert_eq!(count, 0, "{name}: {count} allocations in ten steps");
    }
}
