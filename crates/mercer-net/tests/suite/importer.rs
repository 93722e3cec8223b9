//! What the importer makes of the batch: operations that mix samples are refused and name the node; the many ways in
//! which exporters move the batch about are followed.
//!
//! The oracle is the importer itself with the whole batch as one sample ([`Batching::Whole`]), where nothing is known of
//! samples and every operator does what ONNX says; the official suite checks that.

use crate::writer::Attribute::{Float, Int, Ints, Text};
use crate::writer::{FLOAT, INT64, Model, Size};
use mercer_net::network::Batching;
use mercer_net::{NetError, Network};

/// A model of `x` with a free batch axis and three features.
fn features() -> Model {
    Model::new().input("x", FLOAT, &["batch".into(), 3.into()]).output("y")
}

fn refused_at(model: &Model, sample: &[usize], node: &str) {
    let network = Network::from_onnx_bytes(&model.bytes(), Batching::Samples).expect("a readable model");
    match network.graph(&[sample.to_vec()]) {
        Err(NetError::MixesSamples { node: named }) => assert!(named.contains(node), "{named} instead of {node}"),
        other => panic!("{node} was not refused as mixing samples: {:?}", other.map(|_| "it runs")),
    }
}

fn refused(model: &Model, node: &str) {
    refused_at(model, &[3], node);
}

fn numbers(count: usize, integer: bool) -> Vec<f64> {
    (0..count).map(|i| if integer { (i * 7 % 5 % 2) as f64 } else { ((i * 29 + 5) % 47) as f64 / 47.0 - 0.4 }).collect()
}

/// Runs on samples and as a whole; the results must agree.
fn agrees(model: &Model, sample: &[usize], samples: usize) {
    let bytes = model.bytes();
    let single = Network::from_onnx_bytes(&bytes, Batching::Samples).expect("a readable model");
    let integer = single.inputs()[0].is_integer();
    let x = numbers(samples * sample.iter().product::<usize>(), integer);
    let whole = Network::from_onnx_bytes(&bytes, Batching::Whole).expect("a readable model");
    let shape: Vec<usize> = [samples].iter().chain(sample).copied().collect();
    let expected = whole.predict::<f64>(&[(&x, &shape)], 1, None, None).expect("runs as a whole");
    for shard in [1, 2, samples] {
        let found = single.predict::<f64>(&[(&x, sample)], samples, None, Some(shard)).expect("runs on samples");
        assert_eq!(found.values.len(), expected.values.len());
        for (index, (ours, theirs)) in found.values.iter().zip(&expected.values).enumerate() {
            assert!((ours - theirs).abs() < 1e-12, "element {index}: {ours} instead of {theirs}");
        }
    }
}

#[test]
fn reductions_along_the_batch_are_refused() {
    let reduced = features().node_with("ReduceMean", &["x"], "mean", &[Ints("axes", vec![0])]);
    refused(&reduced.node("Sub", &["x", "mean"], "y"), "mean");
    refused(&features().node_with("Softmax", &["x"], "y", &[Int("axis", 0)]), "\"y\" (Softmax)");
    refused(&features().int("axis", 0).node("CumSum", &["x", "axis"], "y"), "\"y\" (CumSum)");
    let all = features().node("ReduceSum", &["x"], "total").node("Div", &["x", "total"], "y");
    refused(&all, "\"total\" (ReduceSum)");
}

#[test]
fn products_that_contract_the_batch_are_refused() {
    let gram = features().node("Transpose", &["x"], "turned").node("MatMul", &["turned", "x"], "y");
    refused(&gram, "\"y\" (MatMul)");
    let kernel = features().node("Transpose", &["x"], "turned").node("MatMul", &["x", "turned"], "y");
    refused(&kernel, "\"y\" (MatMul)");
}

#[test]
fn another_order_of_the_batch_is_refused() {
    let slice = features().ints("first", &[-1]).ints("last", &[i64::MIN]).ints("axes", &[0]).ints("steps", &[-1]);
    refused(&slice.node("Slice", &["x", "first", "last", "axes", "steps"], "y"), "\"y\" (Slice)");
    let head = features().ints("first", &[0]).ints("last", &[2]).ints("axes", &[0]);
    refused(&head.node("Slice", &["x", "first", "last", "axes"], "y"), "\"y\" (Slice)");
    refused(&counted().node("Gather", &["x", "indices"], "y"), "\"y\" (Gather)");
    refused(&features().ints("indices", &[0]).node("Gather", &["x", "indices"], "y"), "\"y\" (Gather)");
    let split = features().ints("sizes", &[1, 1]);
    refused(&split.node_with("Split", &["x", "sizes"], "y", &[Int("axis", 0)]), "\"y\" (Split)");
}

/// Indices of the batch computed from its size: `B − 1, …, 0`, as a flip exports.
fn counted() -> Model {
    features()
        .int("zero", 0)
        .int("one", 1)
        .int("minus", -1)
        .node("Shape", &["x"], "shape")
        .node("Gather", &["shape", "zero"], "samples")
        .node("Sub", &["samples", "one"], "last")
        .node("Range", &["last", "minus", "minus"], "indices")
}

#[test]
fn normalisation_by_the_batch_is_refused() {
    let model = features().floats("scale", &[3], &[1.0, 2.0, 3.0]).floats("shift", &[3], &[0.0, 1.0, 0.0]);
    let model = model.floats("mean", &[3], &[0.0; 3]).floats("variance", &[3], &[1.0; 3]);
    let inputs = ["x", "scale", "shift", "mean", "variance"];
    refused(
        &model.clone().node_with("BatchNormalization", &inputs, "y", &[Int("training_mode", 1)]),
        "BatchNormalization",
    );
    agrees(&model.node("BatchNormalization", &inputs, "y"), &[3], 4);
}

#[test]
fn joining_the_batch_with_something_is_refused() {
    refused(&features().node_with("Concat", &["x", "x"], "y", &[Int("axis", 0)]), "\"y\" (Concat)");
    let row = features().weights("row", &[1, 3]).node_with("Concat", &["x", "row"], "y", &[Int("axis", 0)]);
    refused(&row, "\"y\" (Concat)");
    agrees(&features().node_with("Concat", &["x", "x"], "y", &[Int("axis", 1)]), &[3], 3);
}

#[test]
fn pairs_of_samples_are_refused() {
    let pairs = features().ints("first", &[0]).ints("second", &[1]);
    let pairs = pairs.node("Unsqueeze", &["x", "second"], "rows").node("Unsqueeze", &["x", "first"], "columns");
    refused(&pairs.node("Sub", &["rows", "columns"], "y"), "\"y\" (Sub)");
    // The same by expanding to the batch size along a second axis.
    let expanded = features()
        .int("zero", 0)
        .ints("axis", &[1])
        .ints("features", &[3])
        .ints("first", &[0])
        .node("Shape", &["x"], "shape")
        .node("Gather", &["shape", "zero"], "samples")
        .node("Unsqueeze", &["samples", "first"], "size")
        .node_with("Concat", &["size", "size", "features"], "target", &[Int("axis", 0)])
        .node("Unsqueeze", &["x", "axis"], "rows")
        .node("Expand", &["rows", "target"], "y");
    refused(&expanded, "\"y\" (Expand)");
}

#[test]
fn what_depends_on_the_size_of_the_batch_is_refused() {
    let scaled = features()
        .int("zero", 0)
        .node("Shape", &["x"], "shape")
        .node("Gather", &["shape", "zero"], "samples")
        .node_with("Cast", &["samples"], "count", &[Int("to", 1)])
        .node("Div", &["x", "count"], "y");
    refused(&scaled, "\"y\" (Div)");
    refused(&features().node("Shape", &["x"], "y"), "\"y\"");
    // One row of a table for each place in the batch.
    let places = counted().weights("table", &[9, 3]);
    let places = places.node("Range", &["zero", "samples", "one"], "places");
    refused(&places.node("Gather", &["table", "places"], "rows").node("Add", &["x", "rows"], "y"), "\"rows\" (Gather)");
    // A fixed batch of four with a constant for each place in it.
    let fixed = Model::new().input("x", FLOAT, &[4.into(), 3.into()]).output("y").weights("rows", &[4, 3]);
    refused(&fixed.node("Add", &["x", "rows"], "y"), "\"y\" (Add)");
}

#[test]
fn rows_that_tear_samples_apart_are_refused() {
    // [B, 6] as [2, 3·B]: the first row holds the first half of the batch.
    let model = Model::new().input("x", FLOAT, &["batch".into(), 6.into()]).output("y").ints("shape", &[2, -1]);
    refused_at(&model.node("Reshape", &["x", "shape"], "y"), &[6], "\"y\" (Reshape)");
}

/// Self-attention with the heads folded into the batch, as PyTorch's older modules and exporters write it.
fn folded_heads() -> Model {
    let mut model = Model::new()
        .input("x", FLOAT, &["batch".into(), "tokens".into(), 6.into()])
        .output("y")
        .weights("weight", &[6, 6])
        .int("zero", 0)
        .int("one", 1)
        .ints("axis", &[0])
        .int("heads", 2)
        .ints("parts", &[2, 3])
        .ints("width", &[3])
        .ints("whole", &[6])
        .node("Shape", &["x"], "shape")
        .node("Gather", &["shape", "zero"], "samples")
        .node("Gather", &["shape", "one"], "tokens")
        .node("Mul", &["samples", "heads"], "folds")
        .node("Unsqueeze", &["samples", "axis"], "samples_")
        .node("Unsqueeze", &["tokens", "axis"], "tokens_")
        .node("Unsqueeze", &["folds", "axis"], "folds_")
        .node_with("Concat", &["samples_", "tokens_", "parts"], "split", &[Int("axis", 0)])
        .node_with("Concat", &["folds_", "tokens_", "width"], "fold", &[Int("axis", 0)])
        .ints("two", &[2])
        .node_with("Concat", &["samples_", "two", "tokens_", "width"], "unfold", &[Int("axis", 0)])
        .node_with("Concat", &["samples_", "tokens_", "whole"], "merge", &[Int("axis", 0)])
        .node("MatMul", &["x", "weight"], "projected");
    for name in ["query", "value"] {
        let source = if name == "query" { "projected" } else { "x" };
        let (parts, turned) = (format!("{name}_parts"), format!("{name}_turned"));
        model = model
            .node("Reshape", &[source, "split"], &parts)
            .node_with("Transpose", &[&parts], &turned, &[Ints("perm", vec![0, 2, 1, 3])])
            .node("Reshape", &[&turned, "fold"], name);
    }
    model
        .node_with("Transpose", &["value"], "keys", &[Ints("perm", vec![0, 2, 1])])
        .node("MatMul", &["query", "keys"], "scores")
        .node_with("Softmax", &["scores"], "weights", &[Int("axis", -1)])
        .node("MatMul", &["weights", "value"], "mixed")
        .node("Reshape", &["mixed", "unfold"], "heads_apart")
        .node_with("Transpose", &["heads_apart"], "tokens_first", &[Ints("perm", vec![0, 2, 1, 3])])
        .node("Reshape", &["tokens_first", "merge"], "y")
}

#[test]
fn heads_folded_into_the_batch_are_followed() {
    agrees(&folded_heads(), &[5, 6], 3);
    agrees(&folded_heads(), &[2, 6], 4);
    // A softmax over the folded axis is over samples too.
    let mixed = folded_heads().node_with("Softmax", &["query"], "over", &[Int("axis", 0)]).output("over");
    refused_at(&mixed, &[5, 6], "\"over\" (Softmax)");
}

#[test]
fn sequence_first_layouts_are_followed() {
    let model = Model::new()
        .input("x", FLOAT, &["batch".into(), 5.into(), 3.into()])
        .output("y")
        .weights("weight", &[3, 4])
        .ints("rows", &[-1, 3])
        .ints("back", &[5, -1, 4])
        .node_with("Transpose", &["x"], "tokens_first", &[Ints("perm", vec![1, 0, 2])])
        .node("Reshape", &["tokens_first", "rows"], "flat")
        .node("MatMul", &["flat", "weight"], "dense")
        .node("Reshape", &["dense", "back"], "apart");
    let mean = model.clone().node_with("ReduceMean", &["apart"], "y", &[Ints("axes", vec![0]), Int("keepdims", 0)]);
    agrees(&mean, &[5, 3], 3);
    let mixed = model.node_with("ReduceMean", &["apart"], "y", &[Ints("axes", vec![1]), Int("keepdims", 0)]);
    refused_at(&mixed, &[5, 3], "\"y\" (ReduceMean)");
}

/// Patches and a class token that is expanded to `target`.
fn class_token(batch: Size) -> Model {
    Model::new()
        .input("x", FLOAT, &[batch, 4.into(), 3.into()])
        .output("y")
        .weights("token", &[1, 1, 3])
        .weights("places", &[1, 5, 3])
}

#[test]
fn a_class_token_expanded_to_the_batch_is_shared() {
    let model = class_token("batch".into())
        .int("zero", 0)
        .ints("axis", &[0])
        .ints("rest", &[-1, -1])
        .ints("ones", &[1, 1, 1])
        .ints("minus", &[-1])
        .node("Shape", &["x"], "shape")
        .node("Gather", &["shape", "zero"], "samples")
        .node("Unsqueeze", &["samples", "axis"], "samples_")
        .node_with("Concat", &["samples_", "rest"], "wanted", &[Int("axis", 0)])
        .node("Equal", &["wanted", "minus"], "kept")
        .node("Where", &["kept", "ones", "wanted"], "target")
        .node("Expand", &["token", "target"], "tokens")
        .node_with("Concat", &["tokens", "x"], "joined", &[Int("axis", 1)])
        .node("Add", &["joined", "places"], "y");
    agrees(&model, &[4, 3], 3);
    // With the batch of the exporter's example written into the file.
    let fixed = class_token(4.into())
        .ints("target", &[4, 1, 3])
        .node("Expand", &["token", "target"], "tokens")
        .node_with("Concat", &["tokens", "x"], "joined", &[Int("axis", 1)])
        .node("Add", &["joined", "places"], "y");
    agrees(&fixed, &[4, 3], 4);
}

#[test]
fn views_of_rows_and_back_are_followed() {
    let model = Model::new()
        .input("x", FLOAT, &["batch".into(), "tokens".into(), 3.into()])
        .output("y")
        .weights("weight", &[3, 3])
        .ints("rows", &[-1, 3])
        .node("Reshape", &["x", "rows"], "flat")
        .node("MatMul", &["flat", "weight"], "dense")
        .node("Relu", &["dense"], "active")
        .node("Shape", &["x"], "shape")
        .node("Reshape", &["active", "shape"], "apart")
        .node_with("ReduceMax", &["apart"], "y", &[Ints("axes", vec![1]), Int("keepdims", 0)]);
    agrees(&model, &[5, 3], 3);
    agrees(&model, &[1, 3], 4);
}

#[test]
fn batches_written_into_the_file_are_taken_out() {
    for batch in [1usize, 4] {
        let size = batch as i64;
        let model = Model::new()
            .input("x", FLOAT, &[batch.into(), 2.into(), 3.into()])
            .output("y")
            .weights("weight", &[6, 4])
            .ints("flat", &[size, 6])
            .ints("square", &[size, 2, 2])
            .ints("rows", &[size * 2, 2])
            .node("Reshape", &["x", "flat"], "flattened")
            .node("MatMul", &["flattened", "weight"], "dense")
            .node("Reshape", &["dense", "square"], "images")
            .node("Reshape", &["images", "rows"], "lines")
            .node_with("Softmax", &["lines"], "soft", &[Int("axis", 1)])
            .node("Reshape", &["soft", "square"], "y");
        agrees(&model, &[2, 3], batch);
        // And at a batch that the file was not made for.
        let network = Network::from_onnx_bytes(&model.bytes(), Batching::Samples).unwrap();
        let x = numbers(7 * 6, false);
        let all = network.predict::<f64>(&[(&x, &[2, 3])], 7, None, None).unwrap();
        for sample in 0..7 {
            let one = network.predict::<f64>(&[(&x[sample * 6..][..6], &[2, 3])], 1, None, None).unwrap();
            assert_eq!(one.values[..], all.values[sample * 4..][..4]);
        }
    }
}

#[test]
fn images_are_flattened_shuffled_and_normalised() {
    let image = || Model::new().input("x", FLOAT, &["batch".into(), 8.into(), 2.into(), 3.into()]).output("y");
    agrees(&image().node("Flatten", &["x"], "y"), &[8, 2, 3], 3);
    for mode in ["DCR", "CRD"] {
        let attributes = [Int("blocksize", 2), Text("mode", mode)];
        agrees(&image().node_with("DepthToSpace", &["x"], "y", &attributes), &[8, 2, 3], 3);
    }
    // PixelShuffle written out.
    let shuffle = image()
        .ints("apart", &[0, 2, 2, 2, 2, 3])
        .ints("merged", &[0, 2, 4, 6])
        .node("Reshape", &["x", "apart"], "blocks")
        .node_with("Transpose", &["blocks"], "turned", &[Ints("perm", vec![0, 1, 4, 2, 5, 3])])
        .node("Reshape", &["turned", "merged"], "y");
    agrees(&shuffle, &[8, 2, 3], 3);
    // GroupNorm by InstanceNormalization.
    let group = image()
        .ints("groups", &[0, 4, -1])
        .floats("ones", &[4], &[1.0; 4])
        .floats("zeros", &[4], &[0.0; 4])
        .weights("scale", &[8, 1, 1])
        .node("Reshape", &["x", "groups"], "grouped")
        .node_with("InstanceNormalization", &["grouped", "ones", "zeros"], "unit", &[Float("epsilon", 1e-5)])
        .node("Shape", &["x"], "shape")
        .node("Reshape", &["unit", "shape"], "back")
        .node("Mul", &["back", "scale"], "y");
    agrees(&group, &[8, 2, 3], 3);
}

/// A mask of tokens, and numbers that count samples and tokens.
fn mask() -> Model {
    Model::new()
        .input("mask", INT64, &["batch".into(), "tokens".into()])
        .output("y")
        .int("zero", 0)
        .int("one", 1)
        .ints("second", &[1])
        .node("Shape", &["mask"], "shape")
        .node("Gather", &["shape", "zero"], "samples")
        .node("Gather", &["shape", "one"], "tokens")
        .node("Range", &["zero", "samples", "one"], "rows")
        .node("Range", &["zero", "tokens", "one"], "columns")
        .node("Unsqueeze", &["rows", "second"], "row")
}

#[test]
fn masks_looked_up_over_the_batch_are_followed() {
    // The mask flattened, at sample · tokens + token.
    let flat = mask()
        .ints("all", &[-1])
        .node("Reshape", &["mask", "all"], "flat")
        .node("Mul", &["row", "tokens"], "start")
        .node("Add", &["start", "columns"], "places");
    let found = flat.clone().node("Gather", &["flat", "places"], "y");
    agrees(&found, &[5], 3);
    // The neighbour's mask.
    let shifted = flat.node("Add", &["places", "one"], "next").node("Gather", &["flat", "next"], "y");
    refused_at(&shifted, &[5], "\"y\" (Gather)");
    // Pairs of sample and token.
    let pairs = mask()
        .ints("third", &[2])
        .node_with("Concat", &["samples_", "tokens_"], "grid", &[Int("axis", 0)])
        .ints("first", &[0])
        .node("Unsqueeze", &["samples", "first"], "samples_")
        .node("Unsqueeze", &["tokens", "first"], "tokens_")
        .node("Expand", &["row", "grid"], "all_rows")
        .node("Expand", &["columns", "grid"], "all_columns")
        .node("Unsqueeze", &["all_rows", "third"], "left")
        .node("Unsqueeze", &["all_columns", "third"], "right")
        .node_with("Concat", &["left", "right"], "pairs", &[Int("axis", 2)])
        .node("GatherND", &["mask", "pairs"], "y");
    agrees(&pairs, &[5], 3);
}
