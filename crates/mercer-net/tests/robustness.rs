//! Untrusted files: whatever the bytes, the importer answers with a network or a typed error. It does not panic, hang,
//! or allocate what a file merely declares.

mod writer;

use mercer_net::network::{Batching, Input};
use mercer_net::{NetError, Network};
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use writer::Attribute::{Int, Ints};
use writer::{FLOAT, Model};

/// Remembers the largest request.
struct Watching;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// No test of this file needs a larger piece of memory: a quarter of a gigabyte is what constants may have.
const LIMIT: usize = 300 << 20;

fn golden(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/nets").join(name);
    std::fs::read(path).expect("a fixture")
}

/// A shape of samples for an input: free sizes are five.
fn sample(input: &Input) -> Vec<usize> {
    input.sample().unwrap_or_default().into_iter().map(|size| size.unwrap_or(5)).collect()
}

/// Opens, lowers and, if that is cheap, runs a model; errors are fine.
fn survives(bytes: &[u8]) {
    for batching in [Batching::Samples, Batching::Whole] {
        let Ok(network) = Network::from_onnx_bytes(bytes, batching) else { continue };
        let shapes: Vec<Vec<usize>> = network.inputs().iter().map(sample).collect();
        let Ok(graph) = network.graph(&shapes) else { continue };
        let elements: usize = graph.values().iter().map(|value| value.meta.numel()).sum();
        if elements > 1 << 20 || graph.flops() > 1 << 26 {
            continue;
        }
        let data: Vec<Vec<f32>> = shapes.iter().map(|shape| vec![0.0; 2 * shape.iter().product::<usize>()]).collect();
        let inputs: Vec<(&[f32], &[usize])> =
            data.iter().zip(&shapes).map(|(data, shape)| (&data[..], &shape[..])).collect();
        let _ = network.predict(&inputs, 2, None, None);
    }
    assert!(
        LARGEST.load(Ordering::Relaxed) < LIMIT,
        "a file made us ask for {} bytes",
        LARGEST.load(Ordering::Relaxed)
    );
}

/// Where a file holds structure and not weights: near words.
fn structure(bytes: &[u8]) -> Vec<usize> {
    let mut near = vec![false; bytes.len()];
    for at in 0..bytes.len().saturating_sub(4) {
        if bytes[at..at + 4].iter().all(u8::is_ascii_alphanumeric) {
            let range = at.saturating_sub(24)..(at + 28).min(bytes.len());
            near[range].fill(true);
        }
    }
    (0..bytes.len()).filter(|&at| near[at]).collect()
}

const FILES: [&str; 3] = ["mlp_tanh.onnx", "tiny_bert_legacy.onnx", "conv_zoo_legacy.onnx"];

/// How many damaged files are tried; more with proptest's `PROPTEST_CASES`.
fn budget() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(budget())]

    #[test]
    fn damaged_files_are_survived(
        file in 0..FILES.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..6),
        cut in prop::option::weighted(0.15, any::<prop::sample::Index>()),
    ) {
        let mut bytes = golden(FILES[file]);
        let places = structure(&bytes);
        for (at, value, bit) in flips {
            let at = places[at.index(places.len())];
            bytes[at] = if bit { bytes[at] ^ 1 << (value % 8) } else { value };
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        survives(&bytes);
    }

    #[test]
    fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }
}

#[test]
fn every_truncation_of_a_small_file_is_survived() {
    let bytes = golden("mlp_tanh.onnx");
    for length in (0..bytes.len()).step_by(7) {
        survives(&bytes[..length]);
    }
}

fn image() -> Model {
    Model::new().input("x", FLOAT, &["batch".into(), 2.into(), 4.into(), 4.into()]).output("y")
}

/// A typed error that names the node, before anything large is allocated.
fn refused(model: &Model) {
    for batching in [Batching::Samples, Batching::Whole] {
        let network = match Network::from_onnx_bytes(&model.bytes(), batching) {
            Ok(network) => network,
            Err(NetError::Malformed { .. } | NetError::Unsupported { .. }) => continue,
            Err(other) => panic!("{other}"),
        };
        let shapes: Vec<Vec<usize>> = network.inputs().iter().map(sample).collect();
        match network.graph(&shapes) {
            Err(
                NetError::Unsupported { node, .. } | NetError::Shape { node, .. } | NetError::MixesSamples { node },
            )
            | Err(NetError::OverBudget { place: node, .. }) => {
                assert!(node.contains("\"y\""), "{node}");
            }
            other => panic!("not refused: {:?}", other.map(|_| "it runs")),
        }
    }
    assert!(LARGEST.load(Ordering::Relaxed) < LIMIT);
}

#[test]
fn absurd_sizes_are_refused_before_they_are_allocated() {
    const HUGE: i64 = 1 << 40;
    refused(&image().ints("shape", &[HUGE, 1, 2, 4, 4]).node("Expand", &["x", "shape"], "y"));
    refused(&image().ints("shape", &[i64::MAX, i64::MAX, 1, 1, 1, 1]).node("Expand", &["x", "shape"], "y"));
    refused(&image().ints("repeats", &[1, 1, HUGE, HUGE]).node("Tile", &["x", "repeats"], "y"));
    refused(&image().ints("pads", &[0, 0, HUGE, 0, 0, 0, 0, i64::MAX]).node("Pad", &["x", "pads"], "y"));
    refused(&image().ints("pads", &[0, 0, i64::MIN, 0, 0, 0, 0, 0]).node("Pad", &["x", "pads"], "y"));
    refused(&image().int("a", 0).int("b", HUGE).int("c", 1).node("Range", &["a", "b", "c"], "y"));
    refused(&image().int("a", 0).int("b", 5).int("c", 0).node("Range", &["a", "b", "c"], "y"));
    refused(&image().ints("shape", &[HUGE, HUGE]).node("ConstantOfShape", &["shape"], "y"));
    refused(&image().ints("shape", &[0, HUGE, HUGE]).node("ConstantOfShape", &["shape"], "y"));
    refused(&image().floats("scales", &[4], &[1.0, 1.0, 1e30, 1e30]).node("Resize", &["x", "", "scales"], "y"));
    refused(&image().floats("scales", &[4], &[1.0, 1.0, f32::NAN, -3.0]).node("Resize", &["x", "", "scales"], "y"));
    refused(&image().ints("shape", &[HUGE, HUGE, HUGE, -1]).node("Reshape", &["x", "shape"], "y"));
    let conv = || image().weights("w", &[3, 2, 3, 3]);
    for name in ["pads", "strides", "dilations"] {
        let values = vec![i64::MAX; if name == "pads" { 4 } else { 2 }];
        refused(&conv().node_with("Conv", &["x", "w"], "y", &[Ints(name, values)]));
    }
    refused(&conv().node_with("Conv", &["x", "w"], "y", &[Ints("pads", vec![1 << 23; 4])]));
    refused(&conv().node_with("Conv", &["x", "w"], "y", &[Int("group", i64::MAX)]));
    refused(&image().node_with("MaxPool", &["x"], "y", &[Ints("kernel_shape", vec![i64::MAX; 2])]));
    let wide = [Ints("kernel_shape", vec![1 << 23; 2]), Ints("pads", vec![(1 << 23) - 1; 4])];
    refused(&image().node_with("AveragePool", &["x"], "y", &wide));
    refused(&image().node_with("LRN", &["x"], "y", &[Int("size", i64::MAX)]));
    refused(&image().node_with("DepthToSpace", &["x"], "y", &[Int("blocksize", i64::MAX)]));
    refused(&Model::new().input("x", FLOAT, &["batch".into(), (1usize << 50).into()]).output("y").node(
        "Relu",
        &["x"],
        "y",
    ));
}

#[test]
fn malformed_nodes_are_refused() {
    for op in [
        "Add",
        "Clip",
        "Concat",
        "Conv",
        "Expand",
        "Flatten",
        "Gather",
        "GatherND",
        "GatherElements",
        "Gemm",
        "MatMul",
        "MaxPool",
        "OneHot",
        "Pad",
        "Range",
        "ReduceMean",
        "Reshape",
        "Resize",
        "Shape",
        "Slice",
        "Softmax",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
        "Where",
        "BatchNormalization",
        "LayerNormalization",
        "InstanceNormalization",
        "GroupNormalization",
        "LRN",
        "Trilu",
        "EyeLike",
        "CumSum",
        "ArgMax",
        "PRelu",
        "Pow",
        "Constant",
        "ConstantOfShape",
        "Cast",
        "CastLike",
        "DepthToSpace",
        "SpaceToDepth",
        "Dropout",
        "If",
        "Mean",
        "Attention",
    ] {
        for inputs in
            [&[][..], &["x"], &["x", "x"], &["x", "", "x"], &["", "x", "x"], &["e", "x"], &["x", "e", "n", "s"]]
        {
            for axis in [None, Some(i64::MIN), Some(7), Some(-1)] {
                let attributes = match axis {
                    None => vec![],
                    Some(axis) => vec![
                        Int("axis", axis),
                        Ints("axes", vec![axis, axis]),
                        Ints("perm", vec![axis]),
                        Ints("kernel_shape", vec![]),
                        Int("num_groups", axis),
                        Int("blocksize", axis),
                        Int("to", axis),
                        Int("k", axis),
                    ],
                };
                let model = image().ints("e", &[]).ints("n", &[-1, 0]).int("s", 3);
                survives(&model.node_with(op, inputs, "y", &attributes).bytes());
            }
        }
    }
}

#[test]
fn many_axes_and_no_elements_are_survived() {
    let wide = Model::new().input("x", FLOAT, &["batch".into(), 2.into()]).output("y").ints("shape", &[1; 40]);
    for op in ["Relu", "Transpose", "Softmax", "ReduceSum", "Neg"] {
        let model = wide.clone().ints("long", &[-1, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
        survives(&model.node("Reshape", &["x", "long"], "ten").node(op, &["ten"], "y").bytes());
    }
    let empty = Model::new().input("x", FLOAT, &["batch".into(), 2.into()]).output("y");
    let empty = empty.ints("zero", &[0]).ints("axis", &[1]).floats("w", &[0, 3], &[]);
    let empty = empty.node("Slice", &["x", "zero", "zero", "axis"], "none");
    for op in ["Relu", "Softmax", "ReduceSum", "ReduceMean", "ReduceMax", "ArgMax", "LayerNormalization", "CumSum"] {
        survives(&empty.clone().node(op, &["none", "axis"], "y").bytes());
        survives(&empty.clone().node(op, &["none"], "y").bytes());
    }
    survives(&empty.node("MatMul", &["none", "w"], "y").bytes());
}
