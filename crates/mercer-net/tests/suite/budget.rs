//! One budget for everything that an import makes, and the rules of the format that are checked.

use crate::writer::Attribute::{Graph, Int, Ints, Tensor};
use crate::writer::{FLOAT, INT64, Model, Node};
use mercer_net::arch::Architecture;
use mercer_net::network::{Batching, Import};
use mercer_net::{IMPORT_FLOOR, NetError, Network};

fn vector() -> Model {
    Model::new().input("x", FLOAT, &["batch".into(), 4.into()]).output("y")
}

fn graph(model: &Model, limit: Option<usize>) -> Result<(), NetError> {
    let network = Network::import_bytes(&model.bytes(), &Import { limit, ..Import::default() })?;
    network.graph(&[vec![4]]).map(|_| ())
}

/// Refused by default, at this node, and accepted with a larger limit.
fn too_much(model: &Model, at: &str) {
    match graph(model, None) {
        Err(NetError::OverBudget { place, bytes, spent, limit }) => {
            assert!(place.contains(at), "{place}");
            assert!(limit == IMPORT_FLOOR && spent <= limit && spent + bytes > limit, "{spent} + {bytes} of {limit}");
        }
        other => panic!("not refused: {other:?}"),
    }
    assert!(graph(model, Some(4 * IMPORT_FLOOR)).is_ok(), "{at}: a larger limit is not enough");
}

#[test]
fn many_small_constants_are_counted_together() {
    let range = |model: Model, index: usize| {
        let name = format!("r{index}");
        model.node("Range", &["zero", "many", "one"], &name)
    };
    let start = || vector().int("zero", 0).int("many", 4_000_000).int("one", 1).node("Relu", &["x"], "y");
    assert!(graph(&(0..8).fold(start(), range), None).is_ok());
    too_much(&(0..12).fold(start(), range), "\"r8\" (Range)");
    let fill = |model: Model, index: usize| model.node("ConstantOfShape", &["shape"], &format!("c{index}"));
    too_much(&(0..40).fold(vector().ints("shape", &[1 << 20]).node("Relu", &["x"], "y"), fill), "ConstantOfShape");
}

#[test]
fn a_constant_of_a_function_counts_for_every_call() {
    let constant = [Tensor("value", vec![16_000], vec![0.25; 16_000])];
    let body = [
        Node { op: "Constant", outputs: &["c"], attributes: &constant, ..Node::default() },
        Node { op: "ReduceMean", inputs: &["c"], outputs: &["m"], ..Node::default() },
        Node { op: "Add", inputs: &["a", "m"], outputs: &["b"], ..Node::default() },
    ];
    let calls = |count: usize| {
        let name = |at: usize| {
            if at == 0 {
                "x".into()
            } else if at == count {
                "y".into()
            } else {
                format!("h{at}")
            }
        };
        let call = |model: Model, at: usize| {
            let (from, to) = (name(at), name(at + 1));
            let call = Node { domain: "local", op: "f", inputs: &[&from], outputs: &[&to], ..Node::default() };
            model.full(&call)
        };
        (0..count).fold(vector(), call).function("f", &["a"], &["b"], &body)
    };
    assert!(graph(&calls(1000), None).is_ok());
    too_much(&calls(4000), "Constant");
}

/// A range as long as the batch times twelve million: for one sample it fits, for two it does not.
#[test]
fn the_arithmetic_for_two_samples_counts() {
    let model = |length: i64| {
        let model = vector().int("zero", 0).int("one", 1).int("length", length).int("first", 0);
        let model = model.node("Shape", &["x"], "shape").node("Gather", &["shape", "first"], "batch");
        let model = model.node("Mul", &["batch", "length"], "end").node("Range", &["zero", "end", "one"], "range");
        model.node("Relu", &["x"], "y")
    };
    assert!(graph(&model(6_000_000), None).is_ok());
    too_much(&model(12_000_000), "\"range\" (Range)");
}

#[test]
fn results_that_all_samples_share_count() {
    let expand = |model: Model, index: usize| {
        let (wide, sum) = (format!("e{index}"), format!("s{index}"));
        let before = if index == 0 { "x".to_owned() } else { format!("s{}", index - 1) };
        let model = model.node("Expand", &["w", "sizes"], &wide);
        let mean = format!("m{index}");
        model.node("ReduceMean", &[&wide], &mean).node("Add", &[&before, &mean], &sum)
    };
    let start = vector().weights("w", &[1, 4]).ints("sizes", &[1 << 20, 4]);
    let model = (0..12).fold(start, expand).node("Relu", &["s11"], "y");
    too_much(&model, "(Expand)");
}

#[test]
fn descriptions_have_the_same_budget() {
    let wide = Architecture::from_toml("[mlp]\ninputs = [4]\nwidths = [9000, 9000]\noutputs = 2").unwrap();
    assert!(matches!(wide.build(0), Err(NetError::OverBudget { place, .. }) if place.contains("layer2.weight")));
    assert!(wide.build_within(0, Some(400 << 20)).is_ok());
    let deep = Architecture::from_toml("[resnet]\ndepth = 6000000002\noutputs = 2").unwrap();
    assert!(matches!(deep.build(0), Err(NetError::OverBudget { .. })));
}

fn refused(model: &Model, words: &[&str]) {
    let error = graph(model, None).expect_err("refused").to_string();
    words.iter().for_each(|word| assert!(error.contains(word), "no {word:?} in {error}"));
}

#[test]
fn rules_of_the_format() {
    let relu = |model: Model| model.node("Relu", &["x"], "y");
    for version in [0i64, -1, 9999] {
        let model = Model::of_opset(version as u64).input("x", FLOAT, &["batch".into(), 4.into()]).output("y");
        refused(&relu(model), &["opset", &version.to_string()]);
    }
    refused(&relu(vector().weights("w", &[2]).weights("w", &[3])), &["two initialisers", "\"w\""]);
    refused(&relu(vector().output("y")), &["two outputs", "\"y\""]);
    refused(&relu(relu(vector())), &["\"y\"", "already"]);
    let image = || Model::new().input("x", FLOAT, &["batch".into(), 2.into(), 4.into(), 4.into()]).output("y");
    let conv = |sizes: Vec<i64>| {
        let model = image().weights("w", &[3, 2, 3, 3]);
        let model = model.node_with("Conv", &["x", "w"], "y", &[Ints("kernel_shape", sizes)]);
        let network = Network::from_onnx_bytes(&model.bytes(), Batching::Samples).unwrap();
        network.graph(&[vec![2, 4, 4]]).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(conv(vec![3, 3]), Ok(()));
    for wrong in [vec![5, 5], vec![3], vec![3, -3]] {
        assert!(conv(wrong).unwrap_err().contains("kernel_shape"));
    }
}

/// The size of a Concat of empty parts, as a shape that the network adds to its input.
#[test]
fn empty_parts_have_a_shape() {
    let join = |shapes: &[&[usize]], axis: i64| {
        let names: Vec<String> = (0..shapes.len()).map(|index| format!("p{index}")).collect();
        let parts: Vec<&str> = names.iter().map(String::as_str).collect();
        let start = Model::new().input("x", FLOAT, &[1.into()]).output("y");
        let model = names.iter().zip(shapes).fold(start, |model, (name, shape)| model.tensor(name, shape, INT64, &[]));
        let model =
            model.node_with("Concat", &parts, "joined", &[Int("axis", axis)]).node("Shape", &["joined"], "shape");
        let model = model.node_with("Cast", &["shape"], "y", &[Int("to", 1)]);
        let network = Network::from_onnx_bytes(&model.bytes(), Batching::Whole).unwrap();
        let zero = [0.0f64];
        network.predict(&[(&zero[..], &[1][..])], 1, None, None).map(|found| found.values)
    };
    assert_eq!(join(&[&[0, 2], &[0, 3]], 1).unwrap(), [0.0, 5.0]);
    assert_eq!(join(&[&[2, 0], &[3, 0]], 0).unwrap(), [5.0, 0.0]);
    assert_eq!(join(&[&[0, 2], &[0, 2]], 0).unwrap(), [0.0, 2.0]);
    assert!(join(&[&[0, 2], &[0, 3]], 0).is_err());
}

/// Two conditionals whose branches call different constants by the same name.
#[test]
fn the_names_of_a_branch_are_its_own() {
    let branch = |value: f32| {
        let constant = [Tensor("value", vec![], vec![value])];
        let node = Node { op: "Constant", outputs: &["inner"], attributes: &constant, ..Node::default() };
        Model::new().output("inner").full(&node)
    };
    let choice = |model: Model, value: f32, output: &str| {
        let branches = [Graph("then_branch", branch(value)), Graph("else_branch", branch(-1.0))];
        model.full(&Node { op: "If", inputs: &["yes"], outputs: &[output], attributes: &branches, ..Node::default() })
    };
    let model = choice(choice(vector().int("yes", 1), 1.0, "a"), 20.0, "b");
    let model = model.node("Add", &["a", "b"], "sum").node("Add", &["x", "sum"], "y");
    let network = Network::from_onnx_bytes(&model.bytes(), Batching::Samples).unwrap();
    let found = network.predict(&[(&[0.0f64; 4][..], &[4][..])], 1, None, None).unwrap();
    assert_eq!(found.values, [21.0; 4]);
}

/// Nodes that work on nothing are refused by name; what no output needs, and empty parts of what is joined, do no harm.
#[test]
fn what_has_no_elements() {
    refused(&vector().weights("w", &[4, 0]).node("MatMul", &["x", "w"], "y"), &["\"y\" (MatMul)", "no elements"]);
    let cut = vector().ints("zero", &[0]).ints("axis", &[1]).node("Slice", &["x", "zero", "zero", "axis"], "none");
    refused(&cut.clone().node("Relu", &["none"], "y"), &["\"none\" (Slice)", "no elements"]);
    assert!(graph(&cut.node_with("Concat", &["none", "x"], "y", &[Int("axis", 1)]), None).is_ok());
}

#[test]
fn a_concat_of_very_many_parts_has_its_derivative() {
    let parts = vec!["h"; 1000];
    let model = vector().weights("w", &[4, 4]).node("MatMul", &["x", "w"], "h");
    let model = model.node_with("Concat", &parts, "y", &[Int("axis", 1)]);
    let network = Network::from_onnx_bytes(&model.bytes(), Batching::Samples).unwrap();
    let x = [0.5f64, -1.0, 2.0, 0.25];
    let found = network.predict(&[(&x[..], &[4][..])], 1, None, None).unwrap();
    let once = network.predict(&[(&x[..], &[4][..])], 1, Some("h"), None).unwrap();
    assert_eq!(found.values, once.values.repeat(1000));
}
