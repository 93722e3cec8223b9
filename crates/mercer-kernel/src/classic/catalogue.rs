//! The kernels by name, with their parameters: the table for parser, printer and help.

/// The function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Linear,
    Polynomial,
    Rbf,
    Laplacian,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    Periodic,
    Cosine,
    ArcCosine,
}

impl Family {
    /// Whether the kernel is a function of squared distances.
    pub(super) fn by_distance(self) -> bool {
        use Family::{Matern12, Matern32, Matern52, Periodic, RationalQuadratic, Rbf};
        matches!(self, Rbf | Matern12 | Matern32 | Matern52 | RationalQuadratic | Periodic)
    }
}

/// The valid values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Positive,
    /// Positive; one number, or one per coordinate of a sample.
    Lengths,
    /// Not negative. Zero stays zero and is not tuned.
    NotNegative,
    /// An integer up to this one, never tuned.
    Whole(f64),
}

#[derive(Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) default: f64,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq)]
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) family: Family,
    pub(super) formula: &'static str,
    pub(super) settings: &'static [Setting],
}

const LENGTHSCALE: Setting = Setting { name: "lengthscale", default: 1.0, kind: Kind::Lengths };

const fn spec(name: &'static str, family: Family, formula: &'static str, settings: &'static [Setting]) -> Spec {
    Spec { name, family, formula, settings }
}

const fn positive(name: &'static str) -> Setting {
    Setting { name, default: 1.0, kind: Kind::Positive }
}

const fn whole(name: &'static str, default: f64, most: f64) -> Setting {
    Setting { name, default, kind: Kind::Whole(most) }
}

pub(super) static KERNELS: [Spec; 11] = [
    spec("linear", Family::Linear, "x·x'", &[]),
    spec(
        "polynomial",
        Family::Polynomial,
        "(scale·x·x' + bias)^degree",
        &[
            whole("degree", 3.0, 100.0),
            positive("scale"),
            Setting { name: "bias", default: 1.0, kind: Kind::NotNegative },
        ],
    ),
    spec("rbf", Family::Rbf, "exp(-‖x-x'‖²/(2ℓ²))", &[LENGTHSCALE]),
    spec("laplacian", Family::Laplacian, "exp(-‖x-x'‖₁/ℓ)", &[LENGTHSCALE]),
    spec("matern12", Family::Matern12, "exp(-r), r = ‖x-x'‖/ℓ", &[LENGTHSCALE]),
    spec("matern32", Family::Matern32, "(1+√3r) exp(-√3r)", &[LENGTHSCALE]),
    spec("matern52", Family::Matern52, "(1+√5r+5r²/3) exp(-√5r)", &[LENGTHSCALE]),
    spec("rational_quadratic", Family::RationalQuadratic, "(1+r²/(2α))^-α", &[LENGTHSCALE, positive("alpha")]),
    spec("periodic", Family::Periodic, "exp(-2 Σ sin²(π(x-x')/period)/ℓ²)", &[LENGTHSCALE, positive("period")]),
    spec("cosine", Family::Cosine, "x·x'/(‖x‖‖x'‖)", &[]),
    spec(
        "arccosine",
        Family::ArcCosine,
        "of infinitely many steps (order 0) or ReLUs (order 1)",
        &[whole("order", 1.0, 2.0)],
    ),
];

impl Setting {
    /// The reason why a value is invalid.
    pub(super) fn refuses(&self, value: f64) -> Option<String> {
        let name = self.name;
        let fine = value.is_finite()
            && match self.kind {
                Kind::Positive | Kind::Lengths => value > 0.0,
                Kind::NotNegative => value >= 0.0,
                Kind::Whole(most) => value.fract() == 0.0 && (0.0..=most).contains(&value),
            };
        let wanted = match self.kind {
            Kind::Positive | Kind::Lengths => "positive".to_owned(),
            Kind::NotNegative => "not negative".to_owned(),
            Kind::Whole(most) => format!("an integer from 0 to {most}"),
        };
        (!fine).then(|| format!("{name} must be {wanted} and finite, not {value}"))
    }
}

/// The kernels with their parameters, defaults and formulas, one per line.
pub fn help() -> String {
    let line = |spec: &Spec| {
        let settings = spec.settings.iter().map(|setting| format!("{}={}", setting.name, setting.default));
        let written = format!("{}({})", spec.name, settings.collect::<Vec<_>>().join(", "));
        format!("  {written:<46} {}\n", spec.formula)
    };
    KERNELS.iter().map(line).collect()
}
