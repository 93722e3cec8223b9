//! What every kernel must do.
//!
//! Tolerances are relative to `√(κ(x, x) κ(x', x'))`, the largest that a value can be; `members.rs` says why they are what they
//! are.

use super::jacobian::{Jacobian, Tangents};
use super::members::{CLOSE, Member, members};
use super::networks::{Case, built, golden};
use mercer_kernel::{Block, Kernel, Real};
use mercer_linalg::symmetric_eigen;
use mercer_net::network::Shards;
use ndarray::ArrayView2;

fn prepare<T: Real>(kernel: &dyn Kernel<T>, case: &Case, rows: std::ops::Range<usize>) -> Block {
    kernel.prepare(&[&case.rows::<T>(rows.clone())], rows.len()).expect("prepares")
}

/// The matrices that a kernel writes.
fn matrices<T: Real>(kernel: &dyn Kernel<T>) -> usize {
    kernel.parts().len() + kernel.beside().len()
}

/// All parts of two blocks, and what there is beside them.
fn tile<T: Real>(kernel: &dyn Kernel<T>, a: &Block, b: &Block) -> Vec<T> {
    let rows = kernel.per_sample();
    // What was in the tile before must not matter.
    let mut tile = vec![T::nan(); matrices(kernel) * a.samples() * rows * b.samples() * rows];
    kernel.contract(a, b, &mut tile);
    tile
}

/// The sum of the parts.
fn whole<T: Real>(kernel: &dyn Kernel<T>, a: &Block, b: &Block) -> Vec<f64> {
    let tile = tile(kernel, a, b);
    let size = tile.len() / matrices(kernel);
    let mut sum = vec![0.0; size];
    tile.chunks_exact(size)
        .take(kernel.parts().len())
        .for_each(|part| sum.iter_mut().zip(part).for_each(|(to, x)| *to += x.wide()));
    sum
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    let difference: f64 = x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum();
    (difference / y.iter().map(|y| y * y).sum::<f64>().max(f64::MIN_POSITIVE)).sqrt()
}

/// One kernel on one network: everything but what needs the explicit Jacobian.
fn check(member: &Member<f64>, case: &Case) {
    let (kernel, samples) = (&*member.kernel, case.samples);
    let name = format!("{} of {}", member.name, case.name);
    let rows = kernel.per_sample();
    let n = samples * rows;
    let block = prepare(kernel, case, 0..samples);
    let parts = tile(kernel, &block, &block);
    assert_eq!(block.samples(), samples, "{name}");
    assert!(parts.iter().all(|x| x.is_finite()), "{name}: all is written, and finite");
    for part in parts.chunks_exact(n * n) {
        assert!((0..n * n).all(|at| part[at] == part[at % n * n + at / n]), "{name}: symmetric to the last bit");
    }

    let gram = whole(kernel, &block, &block);
    let trace: f64 = (0..n).map(|at| gram[at * n + at]).sum();
    // An entry is wrong by no more than `CLOSE` of the diagonal, so an eigenvalue by no more than that of the trace.
    let values = symmetric_eigen(ArrayView2::from_shape((n, n), &gram).expect("square")).expect("eigenvalues").values;
    assert!(values[n - 1] >= -CLOSE * trace, "{name}: eigenvalue {} of {trace}", values[n - 1]);

    let diagonal = kernel.diagonal(&block);
    assert_eq!(diagonal.len(), n, "{name}");
    let limit = |row: usize, column: usize| member.close * (diagonal[row] * diagonal[column]).sqrt();
    for at in 0..n {
        let (found, expected) = (diagonal[at], gram[at * n + at]);
        assert!((found - expected).abs() <= limit(at, at), "{name}: diagonal {at} is {found}, not {expected}");
    }

    // Tiles are what the whole is, whatever else was prepared with a sample; rectangles are sub-blocks.
    for size in [1, 3] {
        let starts: Vec<usize> = (0..samples).step_by(size).collect();
        let blocks: Vec<Block> =
            starts.iter().map(|&start| prepare(kernel, case, start..(start + size).min(samples))).collect();
        for (a, &row_start) in blocks.iter().zip(&starts) {
            for (b, &column_start) in blocks.iter().zip(&starts) {
                let width = b.samples() * rows;
                for (at, &found) in whole(kernel, a, b).iter().enumerate() {
                    let (row, column) = (row_start * rows + at / width, column_start * rows + at % width);
                    let expected = gram[row * n + column];
                    let error = (found - expected).abs();
                    assert!(
                        error <= limit(row, column),
                        "{name}: blocks of {size}, ({row}, {column}): {found}, not {expected}"
                    );
                }
            }
        }
    }
    let (few, many) = (prepare(kernel, case, 1..3), &block);
    let rectangle = whole(kernel, many, &few);
    for (at, &found) in rectangle.iter().enumerate() {
        let (row, column) = (at / (2 * rows), at % (2 * rows) + rows);
        assert!((found - gram[row * n + column]).abs() <= limit(row, column), "{name}: rectangle ({row}, {column})");
    }
    threads(member, case, &name);
}

/// The same bits from one thread and from two; enough samples for several shards.
fn threads(member: &Member<f64>, case: &Case, name: &str) {
    let kernel = &*member.kernel;
    let graph = case.network.graph(&case.shapes()).expect("a graph");
    let samples = 2 * Shards::for_graph(&graph).grain + 1;
    let data = case.repeated::<f64>(samples);
    let few = prepare(kernel, case, 0..2);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let block = kernel.prepare(&[&data], samples).expect("prepares");
            (tile(kernel, &block, &few), kernel.diagonal(&block))
        })
    };
    let (one, two) = (run(1), run(2));
    assert!(one == two, "{name}: other bits with other threads");
    // Samples repeat, so rows do: a shard does not matter.
    let width = few.samples() * kernel.per_sample() * kernel.per_sample();
    let limit = member.close * one.1.iter().fold(0.0, |most: f64, &x| most.max(x));
    for sample in case.samples..samples {
        let row = |at: usize| &one.0[at * width..(at + 1) * width];
        let pairs = row(sample).iter().zip(row(sample % case.samples));
        assert!(pairs.clone().all(|(x, y)| (x - y).abs() <= limit), "{name}: sample {sample} in another shard");
    }
}

/// Tangent kernels against the explicit Jacobian, whole and layer by layer.
fn against_jacobian(member: &Member<f64>, case: &Case, jacobian: &Jacobian) {
    let Some(tangents) = &member.tangents else { return };
    let (kernel, name) = (&*member.kernel, format!("{} of {}", member.name, case.name));
    let block = prepare(kernel, case, 0..case.samples);
    let error = distance(&whole(kernel, &block, &block), &jacobian.gram(tangents));
    assert!(error <= CLOSE, "{name}: off by {error:e}");
    let parts = kernel.parts();
    if parts.len() > 1 {
        let tile = tile(kernel, &block, &block);
        for (part, layer) in tile.chunks_exact(tile.len() / parts.len()).zip(parts) {
            let expected = jacobian.gram(&Tangents { layer: Some(layer.clone()), ..tangents.clone() });
            let error = distance(part, &expected);
            assert!(error <= CLOSE, "{name}: layer {layer} off by {error:e}");
        }
    }
}

/// Single precision against double, and what a kernel says of itself.
fn against_single(member: &Member<f64>, single: &Member<f32>, case: &Case) {
    let name = format!("{} of {}", member.name, case.name);
    let block = prepare(&*member.kernel, case, 0..case.samples);
    let expected = whole(&*member.kernel, &block, &block);
    let block = prepare(&*single.kernel, case, 0..case.samples);
    let error = distance(&whole(&*single.kernel, &block, &block), &expected);
    assert!(error <= single.single, "{name}: single precision off by {error:e}");
    assert_eq!(member.kernel.parts(), single.kernel.parts(), "{name}");
    assert_eq!(member.kernel.beside(), single.kernel.beside(), "{name}");
    let (cost, half) = (member.kernel.cost(), single.kernel.cost());
    assert!(cost.sample_bytes > 0 && cost.pair_flops > 0.0, "{name}: {cost:?}");
    assert!(half.sample_bytes <= cost.sample_bytes, "{name}: {half:?} {cost:?}");
    assert_ne!(member.kernel.identity(), single.kernel.identity(), "{name}: other numbers, other identity");
}

fn suite(case: &Case) {
    let jacobian = Jacobian::new(case);
    for (member, single) in members::<f64>(case).iter().zip(&members::<f32>(case)) {
        check(member, case);
        against_jacobian(member, case, &jacobian);
        against_single(member, single, case);
    }
}

#[test]
fn mlp_tanh() {
    suite(&golden("mlp_tanh"));
}

#[test]
fn conv_zoo() {
    suite(&golden("conv_zoo_legacy"));
}

#[test]
fn tiny_bert() {
    suite(&golden("tiny_bert"));
}

#[test]
fn cnn_mnist() {
    suite(&golden("cnn_mnist_pytorch"));
}

#[test]
fn built_networks() {
    ["mlp", "ntk mlp", "cnn"].into_iter().for_each(|name| suite(&built(name)));
}
