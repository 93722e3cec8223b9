//! The language of kernels: what is printed is read as the same, and errors point at the column.

use mercer_kernel::infinite::{LimitKind, Parametrisation, Rule, Variances};
use mercer_kernel::language::Defaults;
use mercer_kernel::sketch::{SketchMethod, Spec};
use mercer_kernel::{NtkKind, Recipe, Selection};
use mercer_net::Network;
use mercer_net::arch::{Initialisation, Mlp};
use proptest::prelude::*;

fn recipe(text: &str) -> Recipe {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn tangent(kind: NtkKind) -> Recipe {
    Recipe::Tangent { kind, selection: Selection::default(), by_layer: false }
}

#[test]
fn every_kernel_has_a_text() {
    let chosen = Selection {
        output: Some("logits \"raw\" \\ 1".to_owned()),
        components: Some(vec![0, 1]),
        combine: Some(vec![1.0, -1.5]),
        parameters: vec!["layer3.*".to_owned(), "it's".to_owned()],
    };
    let he = Rule::initialisation(Initialisation::He);
    let boxed = Box::new;
    for (text, expected) in [
        ("trace", tangent(NtkKind::Trace)),
        (" full ( ) ", tangent(NtkKind::Full)),
        ("logit(0)", tangent(NtkKind::Logit(0))),
        ("logit( 7 )", tangent(NtkKind::Logit(7))),
        (
            "pseudo(node='logits \"raw\" \\\\ 1', outputs=[0,1], combine=[1, -1.5], params=[\"layer3.*\", \"it's\"])",
            Recipe::Tangent { kind: NtkKind::Pseudo, selection: chosen, by_layer: false },
        ),
        (
            "trace(sketch=sjlt:4096:2, total=true, seed=18446744073709551615)",
            Recipe::Sketch(Spec {
                total: true,
                seed: u64::MAX,
                ..Spec::new(SketchMethod::SparseJl { nonzeros: 2 }, 4096, NtkKind::Trace)
            }),
        ),
        ("ck", Recipe::Conjugate { output: None, bias: true }),
        ("ck(node=\"y\", bias=false)", Recipe::Conjugate { output: Some("y".to_owned()), bias: false }),
        ("embedding(nodes='a')", Recipe::Embedding(vec!["a".to_owned()])),
        ("embedding(nodes=[\"a\", 'b'])", Recipe::Embedding(vec!["a".to_owned(), "b".to_owned()])),
        ("nngp(initialisation=he)", Recipe::Limit { of: LimitKind::Nngp, rule: he }),
        ("ntk-limit(weight-std=1.5)", Recipe::Limit { of: LimitKind::Ntk, rule: Rule::ntk(1.5, 0.0) }),
        (
            "ntk-limit(weight-std=1.5, bias-std=.1, parametrisation=standard)",
            Recipe::Limit {
                of: LimitKind::Ntk,
                rule: Rule {
                    variances: Variances::Deviations { weight: 1.5, bias: 0.1 },
                    parametrisation: Parametrisation::Standard,
                },
            },
        ),
        (
            "nngp-mc(networks=1000, initialisation=he, seed=3)",
            Recipe::MonteCarlo { of: LimitKind::Nngp, rule: he, networks: 1000, seed: 3, errors: false },
        ),
        (
            "directions(1000, of=logit:2, signs=true)",
            Recipe::Directions {
                count: 1000,
                kind: NtkKind::Logit(2),
                selection: Selection::default(),
                signs: true,
                seed: 0,
            },
        ),
        (
            "directions(20, of=full)",
            Recipe::Directions {
                count: 20,
                kind: NtkKind::Full,
                selection: Selection::default(),
                signs: false,
                seed: 0,
            },
        ),
        ("rbf + 0.1*linear", Recipe::Classic("rbf(lengthscale=1) + 0.1*linear()".to_owned())),
        ("normalised(trace)", Recipe::Normalised(boxed(tangent(NtkKind::Trace)))),
        (
            "0.5*ck*2 + 0.1*rbf(lengthscale=2) + 1",
            Recipe::Sum(vec![
                Recipe::Scaled { factor: 1.0, kernel: boxed(Recipe::Conjugate { output: None, bias: true }) },
                Recipe::Classic("0.1*rbf(lengthscale=2)".to_owned()),
                Recipe::Classic("1".to_owned()),
            ]),
        ),
        (
            "normalised(rbf*(trace + (linear + 1)))",
            Recipe::Normalised(boxed(Recipe::Product(vec![
                Recipe::Classic("rbf(lengthscale=1)".to_owned()),
                Recipe::Sum(vec![
                    tangent(NtkKind::Trace),
                    Recipe::Classic("linear()".to_owned()),
                    Recipe::Classic("1".to_owned()),
                ]),
            ]))),
        ),
    ] {
        let found = recipe(text);
        assert_eq!(found, expected, "{text}");
        // Printed, it no longer depends on the defaults.
        let others = Defaults { seed: 99, initialisation: Initialisation::LeCun };
        assert_eq!(Recipe::parse(&found.to_string(), &others).expect(text), expected, "{found}");
    }
}

#[test]
fn defaults_fill_what_is_left_open() {
    let defaults = Defaults { seed: 7, initialisation: Initialisation::He };
    let read = |text: &str| Recipe::parse(text, &defaults).expect(text).to_string();
    assert_eq!(read("nngp-mc"), "nngp-mc(networks=100, initialisation=he, seed=7)");
    assert_eq!(read("trace(sketch=srht:8)"), "trace(sketch=srht:8, seed=7)");
    assert_eq!(read("directions(3, seed=1)"), "directions(3, seed=1)");
    assert_eq!(read("ntk-limit(weight-std=2)"), "ntk-limit(weight-std=2.0, bias-std=0.0)");
}

#[test]
fn errors_point_at_the_column() {
    let cases = [
        ("", 1, "expected a kernel"),
        ("trcae", 1, "did you mean `trace`?"),
        ("normalised(trcae)", 12, "did you mean `trace`?"),
        ("0.5*ck + rfb()", 10, "did you mean `rbf`?"),
        ("ck + rbf(lenghtscale=1)", 10, "did you mean `lengthscale`?"),
        ("ck + rbf(lengthscale=-1)", 22, "lengthscale must be positive"),
        ("trace(sketch=sjtl:4096)", 14, "not a sketch"),
        ("trace(sketch=sjlt)", 14, "not a sketch"),
        ("trace(sketch=sjlt:0)", 14, "1 to"),
        ("trace(total=true)", 7, "setting of a sketch"),
        ("trace(seed=1)", 7, "setting of a sketch"),
        ("full(sketch=sjlt:8)", 6, "no sketch"),
        ("trace(outputs=[0.5])", 15, "whole numbers"),
        ("trace(outputs=[])", 15, "whole numbers"),
        ("trace(combine=1, combine=2)", 18, "given twice"),
        ("trace(params=layer3)", 14, "text in quotes"),
        ("trace(params=\"layer3)", 14, "never closed"),
        ("trace(bias=false)", 7, "unknown setting of trace `bias`"),
        ("trace(3)", 7, "expected a setting"),
        ("logit", 1, "logit needs its output"),
        ("logit(ck)", 7, "whole number"),
        ("logit(-1)", 7, "whole number"),
        ("logit(1.5)", 7, "whole number"),
        ("normalised(0)", 1, "normalised needs a kernel"),
        ("logit(1, 2)", 10, "expected a setting"),
        ("directions(1000, of=nngp)", 21, "not trace, pseudo"),
        ("ck(bias=no)", 9, "true or false"),
        ("embedding", 1, "which nodes?"),
        ("nngp(initialisation=hee)", 21, "did you mean `he`?"),
        ("nngp(initialisation=he, weight-std=1)", 6, "either initialisation or weight-std"),
        ("nngp(bias-std=1)", 6, "bias-std needs weight-std"),
        ("ntk-mc(networks=0)", 8, "at least 1"),
        ("normalised()", 1, "normalised needs its kernel"),
        ("normalised(2*3)", 1, ""),
        ("normalised(trace, ck)", 19, "expected `)`"),
        ("trace - ck", 7, "a difference of kernels"),
        ("trace)", 6, "never opened"),
        ("-1*trace", 1, "a number must be positive"),
    ];
    let mut wrong = 0;
    for (text, column, reason) in cases {
        match text.parse::<Recipe>() {
            Err(error) => {
                let fits = error.column == column && error.reason.contains(reason);
                assert!(fits, "{text}: column {}: {}", error.column, error.reason);
                wrong += 1;
            }
            // A constant has a normalisation.
            Ok(found) => assert_eq!(found.to_string(), "normalised(2*3)"),
        }
    }
    assert!(wrong >= 30);
}

#[test]
fn depth_is_limited_everywhere() {
    let nested = |open: &str, depth: usize, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    for text in [
        nested("normalised(", 10_000, "ck", ")"),
        nested("(", 10_000, "ck", ")"),
        format!("trace(outputs={})", nested("[", 10_000, "1", "]")),
    ] {
        assert!(text.parse::<Recipe>().unwrap_err().reason.contains("inside of each other"));
    }
}

#[test]
fn maps_of_the_first_folders_are_read() {
    for (json, expected) in [
        (r#"{"classic":"rbf(lengthscale=1)"}"#, "rbf(lengthscale=1)"),
        (r#"{"tangent":{"kind":"trace"}}"#, "trace"),
        (r#"{"tangent":{"kind":{"logit":3},"selection":{"output":"y"}}}"#, "logit(3, node=\"y\")"),
        (r#"{"normalised":{"conjugate":{"output":null,"bias":true}}}"#, "normalised(ck)"),
        (r#"{"embedding":["a"]}"#, "embedding(nodes=\"a\")"),
        (
            r#"{"limit":{"of":"ntk","rule":{"variances":{"deviations":{"weight":1.5,"bias":0.0}},"parametrisation":"ntk"}}}"#,
            "ntk-limit(weight-std=1.5, bias-std=0.0)",
        ),
        (r#"{"sketch":{"method":"gaussian","k":8,"kind":"pseudo"}}"#, "pseudo(sketch=gaussian:8, seed=0)"),
    ] {
        let read: Recipe = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(read.to_string(), expected);
        let text = serde_json::to_string(&read).expect("writes");
        assert_eq!(serde_json::from_str::<Recipe>(&text).expect("reads"), read, "{text}");
    }
}

/// Kernels of a small network, as text.
const LEAVES: [&str; 14] = [
    "trace",
    "pseudo(outputs=[0, 2])",
    "logit(1, params=\"*weight\")",
    "trace(combine=[1, -1, 0.5])",
    "pseudo(sketch=sjlt:16, seed=3)",
    "trace(sketch=srht:8, total=true)",
    "ck",
    "ck(bias=false)",
    "directions(5, of=pseudo)",
    "nngp(weight-std=1.4, bias-std=0.1)",
    "ntk-limit(initialisation=he)",
    "nngp-mc(networks=2)",
    "rbf(lengthscale=1.5)",
    "polynomial(degree=2)",
];

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![4 => prop::sample::select(&LEAVES[..]).prop_map(str::to_owned),
        1 => (1e-3..1e3f64).prop_map(|x| format!("{x:?}"))];
    leaf.prop_recursive(3, 8, 3, |inner| {
        (prop::collection::vec(inner, 1..4), 0..3).prop_map(|(parts, how)| match how {
            0 => format!("({})", parts.join(" + ")),
            1 => format!("({})", parts.join("*")),
            _ => format!("normalised({})", parts.join(" + ")),
        })
    })
}

fn network() -> Network {
    Mlp::new(2, &[5], 3).build(0).expect("builds")
}

/// The identity of a kernel, and its matrix on three samples.
fn evaluated(recipe: &Recipe, network: &Network) -> (String, Vec<f64>) {
    let kernel = recipe.build::<f64>(Some(network), &[vec![2]]).expect("builds").kernel;
    let block = kernel.prepare(&[&[0.5, -1.0, 0.25, 2.0, -0.75, 1.0]], 3).expect("prepares");
    let mut tile = vec![0.0; 9];
    kernel.contract(&block, &block, &mut tile);
    (kernel.identity().to_string(), tile)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_printed_gives_the_same_kernel(text in expression()) {
        let parsed = recipe(&text);
        let again = recipe(&parsed.to_string());
        prop_assert_eq!(&again, &parsed);
        let network = network();
        prop_assert_eq!(evaluated(&again, &network), evaluated(&parsed, &network));
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC*", pieces in "[a-z0-9_.,=*+()\\[\\]\"': e-]{0,60}", good in expression(), at in 0usize..200) {
        let mut damaged: Vec<char> = good.chars().collect();
        damaged.truncate(at % (damaged.len() + 1));
        for text in [text, pieces, damaged.into_iter().collect()] {
            if let Err(error) = text.parse::<Recipe>() {
                prop_assert!(error.to_string().starts_with("column "));
            }
        }
    }
}

#[test]
fn sums_and_products_are_those_of_their_parts() {
    let network = network();
    let value = |text: &str| evaluated(&recipe(text), &network).1;
    let [trace, ck, rbf] = ["trace", "ck", "rbf(lengthscale=2)"].map(value);
    let close = |found: Vec<f64>, expected: &dyn Fn(usize) -> f64| {
        found.iter().enumerate().all(|(at, found)| (found - expected(at)).abs() <= 1e-14 * expected(at).abs())
    };
    assert!(close(value("0.5*ck + 0.1*rbf(lengthscale=2)"), &|at| 0.5 * ck[at] + 0.1 * rbf[at]));
    assert!(close(value("2*trace*(ck + 1)"), &|at| 2.0 * trace[at] * (ck[at] + 1.0)));
    assert!(close(value("normalised(trace)"), &|at| trace[at] / (trace[4 * (at / 3)] * trace[4 * (at % 3)]).sqrt()));
    let full = recipe("full + ck").build::<f64>(Some(&network), &[vec![2]]);
    assert!(full.unwrap_err().to_string().contains("rows per sample"));
}
