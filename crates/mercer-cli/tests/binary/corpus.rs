//! Files that were made to hurt: networks that ask for memory or time, or that break the rules of their format. They are
//! written here, because what is dangerous about a file is easier to see in a line than in its bytes.

use crate::writer::Attribute::{Float, Graph, Int, Ints, Tensor, Text};
use crate::writer::{FLOAT, INT64, Model, Node};

/// Samples are `[4]`, or `[2, 4, 4]` for images.
fn vector() -> Model {
    Model::new().input("x", FLOAT, &["batch".into(), 4.into()]).output("y")
}

pub(crate) fn image() -> Model {
    Model::new().input("x", FLOAT, &["batch".into(), 2.into(), 4.into(), 4.into()]).output("y")
}

/// A chain of nodes `h0 → h1 → …`, from `x` to `y`.
pub(crate) fn chain(length: usize, node: impl Fn(Model, &str, &str) -> Model) -> Model {
    let name = |index: usize| match index {
        0 => "x".to_owned(),
        _ if index == length => "y".to_owned(),
        _ => format!("h{index}"),
    };
    (0..length).fold(vector(), |model, index| node(model, &name(index), &name(index + 1)))
}

/// A dense layer, so that there is something to differentiate, from `x` to `h`.
fn dense(model: Model) -> Model {
    model.weights("w", &[4, 4]).node("MatMul", &["x", "w"], "h")
}

pub(crate) fn concat(operands: usize) -> Model {
    dense(vector()).node_with("Concat", &vec!["h"; operands], "y", &[Int("axis", 1)])
}

/// Networks that ask for memory. Each is named after what it repeats.
fn memory() -> Vec<(&'static str, Model)> {
    const MILLION: i64 = 1 << 20;
    const LARGE: i64 = 1 << 25;
    let add = |model: Model, index: usize, part: &str| {
        let sum = if index == 0 { "x".to_owned() } else { format!("s{index}") };
        model.node("Add", &[&sum, part], &format!("s{}", index + 1))
    };
    let mut ranges = vector().int("zero", 0).int("one", 1);
    for index in 0..16 {
        let (limit, range, sum) = (format!("l{index}"), format!("r{index}"), format!("t{index}"));
        ranges = ranges.int(&limit, LARGE - index).node("Range", &["zero", &limit, "one"], &range);
        ranges = ranges.node_with("ReduceSum", &[&range], &sum, &[Int("keepdims", 1)]);
        ranges = add(ranges, index as usize, &sum);
    }
    let mut fills = vector().ints("shape", &[MILLION]);
    for index in 0..4000 {
        fills = fills.node("ConstantOfShape", &["shape"], &format!("c{index}"));
    }
    let constant = [Tensor("value", vec![16_000], vec![0.25; 16_000])];
    let body = [
        Node { op: "Constant", outputs: &["c"], attributes: &constant, ..Node::default() },
        Node { op: "ReduceMean", inputs: &["c"], outputs: &["m"], ..Node::default() },
        Node { op: "Add", inputs: &["a", "m"], outputs: &["b"], ..Node::default() },
    ];
    let calls = chain(4000, |model, from, to| {
        model.full(&Node { name: to, domain: "local", op: "f", inputs: &[from], outputs: &[to], ..Node::default() })
    });
    let grown = |op: &str, sizes: &[i64]| dense(vector()).ints("sizes", sizes).node(op, &["h", "sizes"], "y");
    let expand = |index: usize, model: Model| {
        let name = format!("e{index}");
        model.node("Expand", &["w", "sizes"], &name).node("ReduceSum", &[&name], &format!("r{index}"))
    };
    let shared = (0..64).fold(dense(vector()).ints("sizes", &[1 << 12, 4, 4]), |model, index| expand(index, model));
    let shared = (0..64).fold(shared, |model, index| {
        let sum = if index == 0 { "h".to_owned() } else { format!("s{index}") };
        let to = if index == 63 { "y".to_owned() } else { format!("s{}", index + 1) };
        model.node("Add", &[&sum, &format!("r{index}")], &to)
    });
    let squares = (0..2000).fold(vector().ints("shape", &[2048, 2048]), |model, index| {
        let name = format!("m{index}");
        model.node("ConstantOfShape", &["shape"], &name).node("MatMul", &[&name, &name], &format!("p{index}"))
    });
    vec![
        ("range", ranges.node("Relu", &["s16"], "y")),
        ("fill", fills.node("Relu", &["x"], "y")),
        ("function_constant", calls.function("f", &["a"], &["b"], &body)),
        ("function_tree", tree()),
        ("function_cycle", cycle()),
        ("expand", grown("Expand", &[1 << 24, 1, 4])),
        ("expand_more", grown("Expand", &[i64::MAX, i64::MAX, 4])),
        (
            "expand_often",
            chain(64, |model, from, to| model.node("Expand", &[from, "sizes"], to)).ints("sizes", &[LARGE / 4, 4]),
        ),
        ("expand_shared", shared),
        ("tile", grown("Tile", &[1, 1 << 24])),
        ("pad", grown("Pad", &[0, LARGE, 0, LARGE])),
        (
            "resize",
            image().floats("scales", &[4], &[1.0, 1.0, 2048.0, 2048.0]).node_with(
                "Resize",
                &["x", "", "scales"],
                "y",
                &[Text("mode", "linear")],
            ),
        ),
        (
            "resize_nearest",
            image().floats("scales", &[4], &[1.0, 1.0, 1e6, 1.0]).node("Resize", &["x", "", "scales"], "y"),
        ),
        ("products", squares.node("Relu", &["x"], "y")),
        (
            "triangle",
            vector()
                .ints("shape", &[1 << 14, 1 << 14])
                .node("ConstantOfShape", &["shape"], "c")
                .node("Trilu", &["c"], "t")
                .node("ReduceSum", &["t"], "s")
                .node("Add", &["x", "s"], "y"),
        ),
        (
            "one_hot",
            vector().int("depth", LARGE).floats("values", &[2], &[0.0, 1.0]).node(
                "OneHot",
                &["x", "depth", "values"],
                "y",
            ),
        ),
        (
            "window",
            image().node_with(
                "MaxPool",
                &["x"],
                "y",
                &[Ints("kernel_shape", vec![1 << 20, 1 << 20]), Ints("pads", vec![(1 << 20) - 1; 4])],
            ),
        ),
        (
            "conv_border",
            image().weights("w", &[64, 2, 1, 1]).node_with("Conv", &["x", "w"], "y", &[Ints("pads", vec![1000; 4])]),
        ),
        (
            "declared_input",
            Model::new().input("x", FLOAT, &["batch".into(), (1usize << 27).into()]).output("y").node(
                "Relu",
                &["x"],
                "y",
            ),
        ),
        (
            "gigantic_input",
            Model::new().input("x", FLOAT, &["batch".into(), usize::MAX.into(), 8.into()]).output("y").node(
                "Relu",
                &["x"],
                "y",
            ),
        ),
        (
            "gigantic_tensor",
            vector().tensor("w", &[1 << 40, 1 << 40], FLOAT, &[0; 16]).node("MatMul", &["x", "w"], "y"),
        ),
        ("negative_tensor", vector().tensor("w", &[usize::MAX, 4], FLOAT, &[0; 16]).node("MatMul", &["x", "w"], "y")),
        ("empty_nodes", (0..2000).fold(vector(), |model, _| model.raw(1, &[])).node("Relu", &["x"], "y")),
    ]
}

/// Functions that call the next one eight times: 8^12 nodes in a few kB.
fn tree() -> Model {
    let names: Vec<String> = (0..13).map(|level| format!("f{level}")).collect();
    let locals: Vec<String> = (0..=8).map(|step| if step == 8 { "b".into() } else { format!("a{step}") }).collect();
    let mut model = vector();
    for level in 0..12 {
        let inputs: Vec<[&str; 1]> = (0..8).map(|step| [if step == 0 { "a" } else { &*locals[step] }]).collect();
        let outputs: Vec<[&str; 1]> = (0..8).map(|step| [&*locals[step + 1]]).collect();
        let call = |step: usize| Node {
            domain: "local",
            op: &names[level + 1],
            inputs: &inputs[step],
            outputs: &outputs[step],
            ..Node::default()
        };
        model = model.function(&names[level], &["a"], &["b"], &(0..8).map(call).collect::<Vec<_>>());
    }
    let last = [Node { op: "Relu", inputs: &["a"], outputs: &["b"], ..Node::default() }];
    model = model.function(&names[12], &["a"], &["b"], &last);
    model.full(&Node { domain: "local", op: "f0", inputs: &["x"], outputs: &["y"], ..Node::default() })
}

/// A function that calls itself.
fn cycle() -> Model {
    let body = [Node { domain: "local", op: "f", inputs: &["a"], outputs: &["b"], ..Node::default() }];
    let call = Node { domain: "local", op: "f", inputs: &["x"], outputs: &["y"], ..Node::default() };
    vector().function("f", &["a"], &["b"], &body).full(&call)
}

/// Networks that take time if anything is done for every pair of things.
fn time() -> Vec<(&'static str, Model)> {
    let outputs: Vec<String> = (0..20_000).map(|index| format!("p{index}")).collect();
    let parts: Vec<&str> = outputs.iter().map(String::as_str).collect();
    let split = vector().weights("w", &[4, 20_000]).node("MatMul", &["x", "w"], "h");
    let split = split.full(&Node {
        name: "split",
        op: "Split",
        inputs: &["h"],
        outputs: &parts,
        attributes: &[Int("axis", 1)],
        ..Node::default()
    });
    let many = (0..20_000)
        .fold(vector().node("Relu", &["x"], "y"), |model, index| model.weights(&format!("w{index}"), &[1, 4]));
    let biases = (0..5_000).fold(vector(), |model, index| model.weights(&format!("b{index}"), &[1, 4]));
    let biases = (0..5_000).fold(biases, |model, index| {
        let name = |at: usize| {
            if at == 0 {
                "x".to_owned()
            } else if at == 5_000 {
                "y".to_owned()
            } else {
                format!("h{at}")
            }
        };
        model.node("Add", &[&name(index), &format!("b{index}")], &name(index + 1))
    });
    vec![
        ("concat_40k", concat(40_000)),
        ("concat_100k", concat(100_000)),
        ("chain_100k", chain(100_000, |model, from, to| model.node("Relu", &[from], to))),
        ("views_50k", chain(50_000, |model, from, to| model.node("Reshape", &[from, "s"], to)).ints("s", &[-1, 4])),
        ("split_20k", split.node_with("Concat", &parts, "y", &[Int("axis", 1)])),
        ("tensors_20k", many),
        ("biases_5k", biases),
    ]
}

/// Networks that break rules, or are at the edge of them.
fn broken() -> Vec<(&'static str, Model)> {
    let relu = |model: Model| model.node("Relu", &["x"], "y");
    let named = |name: &str| {
        dense(vector()).full(&Node { name, op: "Relu", inputs: &["h"], outputs: &["y"], ..Node::default() })
    };
    let opset = |version: i64| {
        Model::of_opset(version as u64).input("x", FLOAT, &["batch".into(), 4.into()]).output("y").node(
            "Relu",
            &["x"],
            "y",
        )
    };
    let nested = (0..40).fold(relu(vector()), |inner, _| {
        let branches = [Graph("then_branch", inner.clone()), Graph("else_branch", inner)];
        // Two copies each would double at every level: one is enough.
        let branches = &branches[..1];
        relu(vector()).full(&Node {
            op: "If",
            inputs: &["c"],
            outputs: &["z"],
            attributes: branches,
            ..Node::default()
        })
    });
    let kernel = [Ints("kernel_shape", vec![5, 5])];
    vec![
        ("opset_zero", opset(0)),
        ("opset_negative", opset(-1)),
        ("opset_future", opset(9999)),
        ("two_initialisers", relu(vector().weights("w", &[4, 4]).weights("w", &[4, 4]))),
        ("two_outputs", relu(vector().output("y"))),
        ("two_inputs", relu(vector().input("x", FLOAT, &["batch".into(), 4.into()]))),
        ("two_makers", relu(relu(vector()))),
        ("kernel_shape", image().weights("w", &[3, 2, 3, 3]).node_with("Conv", &["x", "w"], "y", &kernel)),
        ("long_name", named(&"n".repeat(65_536))),
        ("escapes", named("\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\nerror: forged")),
        ("unicode", named("层\u{202e}κ\u{0}")),
        ("empty_name", named("")),
        ("deep", nested),
        (
            "loop",
            vector().int("n", 1 << 40).full(&Node {
                op: "Loop",
                inputs: &["n", "", "x"],
                outputs: &["y"],
                attributes: &[Graph("body", relu(vector()))],
                ..Node::default()
            }),
        ),
        (
            "condition",
            vector().full(&Node {
                op: "If",
                inputs: &["x"],
                outputs: &["y"],
                attributes: &[Graph("then_branch", relu(vector()))],
                ..Node::default()
            }),
        ),
        ("strings", vector().tensor("w", &[4], 8, b"abcd").node("Add", &["x", "w"], "y")),
        ("sparse", relu(vector()).raw(15, &[])),
        ("no_nodes", Model::new().input("x", FLOAT, &["batch".into(), 4.into()]).output("x")),
        ("no_outputs", Model::new().input("x", FLOAT, &["batch".into(), 4.into()]).node("Relu", &["x"], "y")),
        ("no_parameters", relu(vector())),
        ("only_constant", vector().weights("w", &[4, 4]).node("Identity", &["w"], "y")),
        ("scalar", dense(vector()).node_with("ReduceSum", &["h"], "y", &[Int("keepdims", 0)])),
        (
            "scalar_per_sample",
            dense(vector()).ints("axis", &[1]).node_with("ReduceSum", &["h", "axis"], "y", &[Int("keepdims", 0)]),
        ),
        ("no_numbers", vector().weights("w", &[4, 0]).node("MatMul", &["x", "w"], "y")),
        (
            "no_inputs",
            vector()
                .ints("z", &[0])
                .ints("a", &[1])
                .weights("w", &[0, 3])
                .node("Slice", &["x", "z", "z", "a"], "h")
                .node("MatMul", &["h", "w"], "y"),
        ),
        ("conv_nothing", image().weights("w", &[0, 2, 3, 3]).node("Conv", &["x", "w"], "y")),
        ("conv_no_channels", image().weights("w", &[3, 0, 3, 3]).node("Conv", &["x", "w"], "y")),
        ("conv_no_window", image().weights("w", &[3, 2, 0, 0]).node("Conv", &["x", "w"], "y")),
        (
            "empty_concat",
            vector()
                .tensor("a", &[0, 2], INT64, &[])
                .tensor("b", &[0, 3], INT64, &[])
                .node_with("Concat", &["a", "b"], "c", &[Int("axis", 1)])
                .node("Shape", &["c"], "s")
                .node("Cast", &["s"], "f")
                .node("Relu", &["x"], "y"),
        ),
        ("step", dense(vector()).node_with("LeakyRelu", &["h"], "y", &[Float("alpha", f32::NAN)])),
    ]
}

/// All of them.
pub(crate) fn networks() -> Vec<(&'static str, Model)> {
    memory().into_iter().chain(time()).chain(broken()).collect()
}
