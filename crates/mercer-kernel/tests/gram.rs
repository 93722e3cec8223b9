//! The Gram engine: the same numbers for any memory, any number of threads and any order of tiles.

use mercer_data::Dataset;
use mercer_kernel::gram::{Gram, InMemory};
use mercer_kernel::store::Layout;
use mercer_kernel::{Block, Cost, Kernel, KernelError, Kind, Ntk, Result};
use mercer_net::Network;
use mercer_net::arch::Mlp;
use mercer_net::progress::Silent;
use ndarray::{Array2, ArrayD};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An arc-cosine-like kernel of vectors, `x·x' + (x·x')²`, that counts its prepares and has large blocks.
#[derive(Debug, Default)]
struct Counting {
    prepared: AtomicUsize,
}

const WIDTH: usize = 3;

impl Kernel<f64> for Counting {
    fn cost(&self) -> Cost {
        // Sixteen samples to a tile: a sample claims a twenty-fifth of the largest block.
        Cost { sample_bytes: 40 << 20, prepare_bytes: 1 << 20, prepare_flops: 1e6, pair_flops: 1e6, ..Cost::default() }
    }

    fn identity(&self) -> serde_json::Value {
        "counting".into()
    }

    fn prepare(&self, inputs: &[&[f64]], samples: usize) -> Result<Block> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        Ok(Block::new(samples, inputs[0].to_vec()))
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [f64]) {
        let (x, y) = (a.content::<Vec<f64>>(), b.content::<Vec<f64>>());
        for (row, x) in tile.chunks_exact_mut(b.samples()).zip(x.chunks_exact(WIDTH)) {
            for (to, y) in row.iter_mut().zip(y.chunks_exact(WIDTH)) {
                let product: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
                *to = product + product * product;
            }
        }
    }

    fn diagonal(&self, a: &Block) -> Vec<f64> {
        let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        a.content::<Vec<f64>>().chunks_exact(WIDTH).map(|x| norm(x) + norm(x) * norm(x)).collect()
    }
}

fn vectors(count: usize, width: usize) -> Dataset {
    let numbers = Array2::from_shape_fn((count, width), |(i, j)| ((i * 7 + j * 3) % 11) as f64 - 5.0);
    Dataset::from_array("vectors", numbers.into_dyn().view()).unwrap()
}

fn expected(rows: &Dataset, columns: &Dataset) -> ArrayD<f64> {
    let (x, y) = (rows.read::<f64>().unwrap(), columns.read::<f64>().unwrap());
    let product = |i: usize, j: usize| (0..WIDTH).map(|k| x[[i, k]] * y[[j, k]]).sum::<f64>();
    Array2::from_shape_fn((rows.n_samples(), columns.n_samples()), |(i, j)| product(i, j) + product(i, j).powi(2))
        .into_dyn()
}

fn all(layout: &Layout) -> Vec<usize> {
    (0..layout.n_tiles()).collect()
}

#[test]
fn any_memory_gives_the_same_matrix() {
    let data = [vectors(150, WIDTH)];
    let kernel = Counting::default();
    let gram = Gram::new(&kernel, &data);
    let layout = gram.layout();
    assert_eq!(layout.tile, 16);
    let least = gram.memory(usize::MAX).plan(&all(&layout)).unwrap().least_bytes;
    let mut prepares = Vec::new();
    // With every block more that stays, fewer are prepared again. Half a block to spare: the plan counts what the process
    // holds, which other tests change meanwhile.
    for blocks in [0, 1, 3, 20] {
        let memory = least + blocks * (640 << 20) + (320 << 20);
        let plan = gram.memory(memory).plan(&all(&layout)).unwrap();
        assert!(plan.bytes <= memory, "{plan:?}");
        kernel.prepared.store(0, Ordering::Relaxed);
        let arrays = gram.memory(memory).to_arrays(&Silent::default()).unwrap();
        assert_eq!(arrays, [expected(&data[0], &data[0])]);
        assert_eq!(kernel.prepared.load(Ordering::Relaxed), plan.prepared_blocks);
        prepares.push(plan.prepared_blocks);
    }
    assert_eq!(prepares, [55, 30, 18, 10], "ten blocks, of which 1, 2, 4 and all stay");
}

#[test]
fn too_little_memory_is_refused_with_what_would_do() {
    let data = [vectors(40, WIDTH)];
    let kernel = Counting::default();
    let gram = Gram::new(&kernel, &data);
    let Err(KernelError::Memory { needed, .. }) = gram.memory(1 << 20).plan(&[0]) else { panic!("not refused") };
    // What the process holds may have grown between the two.
    assert!(gram.memory(needed + (256 << 20)).to_arrays(&Silent::default()).is_ok());
    // The matrix itself counts: 80 GB here.
    let many = [vectors(100_000, WIDTH)];
    let found = Gram::new(&kernel, &many).memory(16 << 30).to_arrays(&Silent::default());
    let Err(KernelError::Memory { needed, .. }) = found else { panic!("not refused") };
    assert!(needed > 80_000_000_000);
}

#[test]
fn two_data_sets_make_a_rectangle() {
    let (rows, columns) = ([vectors(37, WIDTH)], [vectors(50, WIDTH)]);
    let kernel = Counting::default();
    let arrays = Gram::new(&kernel, &rows).against(&columns).to_arrays(&Silent::default()).unwrap();
    assert_eq!(arrays, [expected(&rows[0], &columns[0])]);
}

#[test]
fn some_tiles_are_only_those() {
    let data = [vectors(50, WIDTH)];
    let kernel = Counting::default();
    let gram = Gram::new(&kernel, &data);
    let layout = gram.layout();
    let sink = InMemory::new(layout.clone());
    let chosen = [1, 5, 8];
    gram.run(&chosen, &sink, &Silent::default()).unwrap();
    let found = sink.into_arrays().remove(0);
    let whole = expected(&data[0], &data[0]);
    for tile in 0..layout.n_tiles() {
        let place = layout.tile(tile).unwrap();
        for (i, j) in place.rows.flat_map(|i| place.columns.clone().map(move |j| (i, j))) {
            let value = if chosen.contains(&tile) { whole[[i, j]] } else { 0.0 };
            assert_eq!((found[[i, j]], found[[j, i]]), (value, value), "tile {tile}");
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let network: Network = Mlp::new(WIDTH, &[17, 9], 4).build(3).unwrap();
    let data = [vectors(700, WIDTH)];
    for kind in [Kind::Full, Kind::Trace, Kind::Pseudo] {
        let kernel = Ntk::<f32>::new(&network, &[vec![WIDTH]], kind).unwrap();
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Gram::new(&kernel, &data).to_arrays(&Silent::default()).unwrap())
        };
        assert_eq!(run(1), run(3), "{kind:?}");
    }
}

#[test]
fn a_cancelled_run_stops() {
    let data = [vectors(50, WIDTH)];
    let handle = Silent::default();
    handle.cancel();
    let result = Gram::new(&Counting::default(), &data).to_arrays(&handle);
    assert!(matches!(result, Err(KernelError::Cancelled)));
}

#[test]
fn a_bad_sample_is_named_by_its_row() {
    let network: Network = Mlp::new(WIDTH, &[5], 2).build(3).unwrap();
    let mut numbers = Array2::<f32>::ones((600, WIDTH));
    numbers[[517, 1]] = 3e38;
    let data = [Dataset::from_array("huge", numbers.into_dyn().view()).unwrap()];
    let kernel = Ntk::<f32>::new(&network, &[vec![WIDTH]], Kind::Trace).unwrap();
    let error = Gram::new(&kernel, &data).to_arrays(&Silent::default()).unwrap_err();
    assert!(error.to_string().contains("517"), "{error}");
}
