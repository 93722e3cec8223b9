//! The Gram engine: the same numbers for any memory, any number of threads and any order of tiles.

use mercer_data::Dataset;
use mercer_kernel::gram::{Gram, InMemory, Sink};
use mercer_kernel::store::{StoreColumns, StoreLayout, TilePlace, Tiles};
use mercer_kernel::{Block, Cost, Kernel, KernelError, Ntk, NtkKind, Result};
use mercer_net::Network;
use mercer_net::arch::Mlp;
use mercer_run::Context;
use ndarray::{Array2, ArrayD};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An arc-cosine-like kernel of vectors, `x·x' + (x·x')²`, that counts its prepares and has large blocks.
#[derive(Debug, Default)]
struct Counting {
    prepared: AtomicUsize,
    /// How often it was asked what it costs.
    costs: AtomicUsize,
}

const WIDTH: usize = 3;

impl Kernel<f64> for Counting {
    fn cost(&self) -> Cost {
        self.costs.fetch_add(1, Ordering::Relaxed);
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

fn within(bytes: usize) -> Context {
    Context::new().with_memory(bytes)
}

#[test]
fn any_memory_gives_the_same_matrix() {
    let data = [vectors(150, WIDTH)];
    let kernel = Counting::default();
    let gram = Gram::new(&kernel, &data);
    let layout = gram.layout();
    assert_eq!(layout.tile, 16);
    let least = gram.plan(&layout.all_tiles(), &within(usize::MAX)).unwrap().least_bytes;
    let mut prepares = Vec::new();
    // With every block more that stays, fewer are prepared again. Half a block to spare: the plan counts what the process
    // holds, which other tests change meanwhile.
    for blocks in [0, 1, 3, 20] {
        let memory = least + blocks * (640 << 20) + (320 << 20);
        let plan = gram.plan(&layout.all_tiles(), &within(memory)).unwrap();
        assert!(plan.bytes <= memory, "{plan:?}");
        kernel.prepared.store(0, Ordering::Relaxed);
        let arrays = gram.to_arrays(&within(memory)).unwrap();
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
    let Err(KernelError::Memory { needed, .. }) = gram.plan(&Tiles::range(0..1), &within(1 << 20)) else {
        panic!("not refused")
    };
    // What the process holds may have grown between the two.
    assert!(gram.to_arrays(&within(needed + (256 << 20))).is_ok());
    // The matrix itself counts: 80 GB here.
    let many = [vectors(100_000, WIDTH)];
    let found = Gram::new(&kernel, &many).to_arrays(&within(16 << 30));
    let Err(KernelError::Memory { needed, .. }) = found else { panic!("not refused") };
    assert!(needed > 80_000_000_000);
}

#[test]
fn two_data_sets_make_a_rectangle() {
    let (rows, columns) = ([vectors(37, WIDTH)], [vectors(50, WIDTH)]);
    let kernel = Counting::default();
    let arrays = Gram::new(&kernel, &rows).against(&columns).to_arrays(&Context::new()).unwrap();
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
    gram.run(&chosen.into_iter().collect(), &sink, &Context::new()).unwrap();
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
    for kind in [NtkKind::Full, NtkKind::Trace, NtkKind::Pseudo] {
        let kernel = Ntk::<f32>::new(&network, &[vec![WIDTH]], kind).unwrap();
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Gram::new(&kernel, &data).to_arrays(&Context::new()).unwrap())
        };
        assert_eq!(run(1), run(3), "{kind:?}");
    }
}

#[test]
fn a_cancelled_run_stops() {
    let data = [vectors(50, WIDTH)];
    let handle = Context::new();
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
    let kernel = Ntk::<f32>::new(&network, &[vec![WIDTH]], NtkKind::Trace).unwrap();
    let error = Gram::new(&kernel, &data).to_arrays(&Context::new()).unwrap_err();
    assert!(error.to_string().contains("517"), "{error}");
}

/// A kernel that knows its cost only after planning is asked once per run, not once per tile.
#[test]
fn the_cost_is_asked_for_once() {
    let data = [vectors(150, WIDTH)];
    let kernel = Counting::default();
    let gram = Gram::new(&kernel, &data);
    let layout = gram.layout();
    gram.plan(&layout.all_tiles(), &Context::new()).unwrap();
    gram.run(&layout.all_tiles(), &InMemory::new(layout.clone()), &Context::new()).unwrap();
    assert_eq!((layout.n_tiles(), kernel.costs.load(Ordering::Relaxed)), (55, 1));
}

/// Keeps the order in which tiles come, and nothing else.
#[derive(Default)]
struct Order(std::sync::Mutex<Vec<usize>>);

impl Sink<f64> for Order {
    fn write(&self, index: usize, _: &TilePlace, _: &[&[f64]]) -> Result<()> {
        self.0.lock().unwrap().push(index);
        Ok(())
    }
}

/// What a plan promises in closed form is what a run does: for random sets of tiles, symmetric and not, and for any number of
/// blocks that stay.
#[test]
fn plans_are_kept() {
    use rand::Rng;
    let mut random = mercer_data::random::stream(1, "gram/plans");
    let (rows, columns) = ([vectors(150, WIDTH)], [vectors(75, WIDTH)]);
    let kernel = Counting::default();
    for round in 0..24 {
        let gram = Gram::new(&kernel, &rows);
        let gram = if round % 2 == 0 { gram } else { gram.against(&columns) };
        let layout = gram.layout();
        let chosen: Tiles =
            (0..layout.n_tiles()).filter(|_| round < 2 || random.next_u64().is_multiple_of(3)).collect();
        let least = gram.plan(&chosen, &within(usize::MAX)).unwrap().least_bytes;
        let context = within(least + round * (320 << 20) + (320 << 20));
        kernel.prepared.store(0, Ordering::Relaxed);
        let (plan, order) = (gram.plan(&chosen, &context).unwrap(), Order::default());
        let outcome = gram.run(&chosen, &order, &context).unwrap();
        let mut seen = order.0.into_inner().unwrap();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(chosen.iter()), "round {round}");
        assert_eq!((plan.tiles, outcome.tiles), (seen.len(), seen.len()));
        assert_eq!(kernel.prepared.load(Ordering::Relaxed), plan.prepared_blocks, "round {round}");
        // One operation in a million pairs, as the kernel claims: half of a tile on the diagonal.
        let pairs = chosen.iter().filter_map(|tile| layout.tile(tile)).map(|place| {
            let whole = (place.rows.len() * place.columns.len()) as f64;
            if layout.is_symmetric() && place.row_block == place.column_block { whole / 2.0 } else { whole }
        });
        let pairs = pairs.sum::<f64>() * 1e-3;
        assert!(
            plan.gflop > pairs && plan.gflop < pairs + 0.15 * plan.prepared_blocks as f64,
            "round {round}: {plan:?}"
        );
    }
}

/// Three thousand million tiles: planned in no time and memory, as the memory of this process tells.
#[test]
fn a_plan_does_not_grow_with_the_tiles() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.npy");
    sparse(&path, 20_000_000);
    let data = [mercer_data::Source::new(&path, None).open().unwrap()];
    let kernel = mercer_kernel::Classic::<f32>::new(&"rbf()".parse().unwrap(), 4).unwrap();
    let (gram, context) = (Gram::new(&kernel, &data), within(4 << 30));
    let layout = gram.layout();
    assert!(layout.n_tiles() > 3_000_000_000);
    let before = mercer_run::resident_memory();
    let plan = gram.plan(&layout.all_tiles(), &context).unwrap();
    let every_other: Tiles = (0..500).map(|tile| 2 * tile).collect();
    let few = gram.plan(&every_other.and(&Tiles::range(3_000_000_000..3_000_100_000)), &context).unwrap();
    let after = mercer_run::resident_memory();
    assert_eq!((plan.tiles, few.tiles), (layout.n_tiles(), 100_500));
    assert!(plan.prepared_blocks >= 78_125 && few.prepared_blocks < plan.prepared_blocks);
    // Other tests of this process allocate, too; a list of the tiles alone would have 24 GB.
    assert!(after < before + (1 << 30), "{before} {after}");
    // Numbers of a matrix, and of a store with its checksums.
    assert_eq!(layout.bytes(), 20_000_000 * 20_000_000 * 4);
    assert_eq!(layout.stored_bytes(&layout.all_tiles()), 78_125 * 78_125 * (256 * 256 * 4 + 4));
}

/// A `.npy` file of so many rows of four zeros, which takes no room on the disk.
fn sparse(path: &std::path::Path, rows: u64) {
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 4), }}");
    let mut header = format!("{text:<117}\n").into_bytes();
    let length = header.len() as u16;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(length.to_le_bytes());
    bytes.append(&mut header);
    std::fs::write(path, &bytes).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(bytes.len() as u64 + rows * 16).unwrap();
}

/// Whole chunks, with their mirror images: what the files of a store have in the end.
#[test]
fn the_bytes_of_a_store_are_known_before() {
    for (count, symmetric) in [(10, true), (7, false)] {
        let columns = StoreColumns::Samples { count, symmetric };
        let arrays = vec!["one".to_owned(), "two".to_owned()];
        let precision = mercer_data::DType::F64;
        let layout = StoreLayout { arrays, rows: 10, columns, per_sample: 1, tile: 4, precision };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gram.zarr");
        let manifest = mercer_kernel::store::Manifest::new(layout.clone());
        let store = mercer_kernel::store::Store::create(&path, manifest).unwrap();
        for chosen in [Tiles::from_iter([1, 3]), layout.all_tiles()] {
            for tile in chosen.iter() {
                let (height, width) = layout.tile_shape(&layout.tile(tile).unwrap());
                let zeros = vec![0.0; height * width];
                store.write(tile, &[&zeros, &zeros]).unwrap();
            }
            let chunks = ["one/c", "two/c"].map(|array| size(&path.join(array)));
            assert_eq!(layout.stored_bytes(&chosen), chunks.iter().sum::<u64>());
        }
    }
}

/// The bytes of all files below a folder.
fn size(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| if entry.path().is_dir() { size(&entry.path()) } else { entry.metadata().unwrap().len() }).sum()
}
