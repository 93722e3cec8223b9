//! The textual form.

use super::{ALL, kernel};
use mercer_kernel::classic::{ClassicError, Formula};
use proptest::prelude::*;

fn error(text: &str) -> (usize, String) {
    match text.parse::<Formula>() {
        Err(ClassicError::Text(error)) => (error.column, error.reason),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn is_read_as_it_is_written() {
    for text in ALL {
        let printed = kernel(text).to_string();
        assert_eq!(kernel(&printed), kernel(text));
        assert_eq!(kernel(&printed).to_string(), printed);
    }
    assert_eq!(kernel("rbf").to_string(), "rbf(lengthscale=1)");
    assert_eq!(kernel(" rbf( lengthscale = 1.5 )+ .1 *linear() ").to_string(), "rbf(lengthscale=1.5) + 0.1*linear()");
    assert_eq!(kernel("((2e-7)*((rbf+1)))*(cosine)").to_string(), "2e-7*(rbf(lengthscale=1) + 1)*cosine()");
    assert_eq!(kernel("rbf+linear+(1+cosine)"), kernel("rbf() + linear() + 1 + cosine()"));
    assert_eq!(kernel("rbf") * kernel("2 + linear") + kernel("1"), kernel("rbf*(2 + linear) + 1"));
}

#[test]
fn errors_point_at_the_column() {
    for (text, column, reason) in [
        ("", 1, "expected a kernel or a number"),
        ("0.1 * rfb()", 7, "unknown kernel `rfb`; did you mean `rbf`?"),
        ("rbf(lenghtscale=1)", 5, "unknown setting of rbf `lenghtscale`; did you mean `lengthscale`?"),
        ("linear(scale=1)", 8, "unknown setting `scale`; linear has none"),
        ("linear(1)", 8, "linear has no settings"),
        ("rbf(1)", 5, "expected a setting, as in lengthscale=1"),
        ("rbf(lengthscale 1)", 17, "expected `,` or `)`"),
        ("rbf(lengthscale=)", 17, "expected a value for lengthscale"),
        ("rbf(lengthscale=0)", 17, "lengthscale must be positive"),
        ("rbf(lengthscale=-1)", 17, "lengthscale must be positive"),
        ("rbf(lengthscale=1e999)", 17, "finite, not inf"),
        ("rbf(lengthscale=[1, -2])", 21, "lengthscale must be positive"),
        ("rbf(lengthscale=[])", 17, "expected a number"),
        ("rbf(lengthscale=[1 2])", 20, "expected `,` or `]`"),
        ("rbf(lengthscale=1, lengthscale=2)", 20, "given twice"),
        ("polynomial(degree=-1)", 19, "degree must be an integer from 0 to 100"),
        ("polynomial(degree=1.5)", 19, "degree must be an integer"),
        ("polynomial(bias=-1)", 17, "bias must be not negative"),
        ("polynomial(scale=[1,2])", 18, "scale is one number, not a list"),
        ("arccosine(order=3)", 17, "order must be an integer from 0 to 2"),
        ("rbf() rbf()", 7, "expected `+`, `*` or the end"),
        ("rbf() - linear()", 7, "a difference of kernels is not a kernel"),
        ("rbf()^2", 6, "there are no powers"),
        ("-1*rbf()", 1, "a number must be positive"),
        ("0*rbf()", 1, "a number must be positive"),
        ("rbf() + ", 9, "expected a kernel"),
        ("(rbf()", 1, "never closed"),
        ("rbf())", 6, "never opened"),
        ("rbf() + §", 9, "not `§`"),
        ("1..2", 1, "`1..2` is not a number"),
    ] {
        let (found, why) = error(text);
        assert!(found == column && why.contains(reason), "{text}: column {found}: {why}");
    }
    let shown = "0.1 * rfb()".parse::<Formula>().unwrap_err().to_string();
    assert_eq!(shown, "column 7: unknown kernel `rfb`; did you mean `rbf`?\n  0.1 * rfb()\n        ^");
}

#[test]
fn depth_and_size_are_limited() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(kernel(&nested(49)), kernel("1"));
    assert!(error(&nested(400_000)).1.contains("inside of each other"));
    assert!(error(&vec!["1"; 1000].join("+")).1.contains("more than 200 kernels"));
    assert!(error(&" ".repeat(2_000_000)).1.contains("at most"));
}

/// Expressions as text, of all kernels and shapes.
fn expression() -> impl Strategy<Value = String> {
    let number = prop_oneof![Just(1.0), 1e-3..1e3, prop::num::f64::POSITIVE | prop::num::f64::NORMAL]
        .prop_map(|x: f64| format!("{:e}", x.abs().max(f64::MIN_POSITIVE)));
    let leaf = prop_oneof![prop::sample::select(&ALL[..]).prop_map(str::to_owned), number];
    leaf.prop_recursive(5, 40, 4, |inner| {
        (prop::collection::vec(inner, 1..4), prop::bool::ANY)
            .prop_map(|(parts, sum)| format!("({})", parts.join(if sum { " + " } else { "*" })))
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_the_same(text in expression()) {
        let parsed = kernel(&text);
        let printed = parsed.to_string();
        prop_assert_eq!(kernel(&printed), parsed);
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC*", pieces in "[a-z0-9_.,=*+()\\[\\] e-]{0,60}") {
        for text in [text, pieces] {
            if let Err(error) = text.parse::<Formula>() {
                prop_assert!(error.to_string().starts_with("column "));
            }
        }
    }

    #[test]
    fn no_damage_is_too_strange(text in expression(), at in 0usize..200, with in prop::char::any()) {
        let mut characters: Vec<char> = text.chars().collect();
        let place = at % (characters.len() + 1);
        characters.splice(place..(place + 1).min(characters.len()), [with]);
        let _ = characters.into_iter().collect::<String>().parse::<Formula>();
    }
}
