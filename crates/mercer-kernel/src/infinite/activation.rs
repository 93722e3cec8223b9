//! Activations, and which of them have a closed form.
//!
//! For `(u, v)` Gaussian with variances `a = s²`, `b = t²` and covariance `c`, the limit needs `E[φ(u)φ(v)]` and
//! `E[φ'(u)φ'(v)]`, its derivative in `c` (Price's theorem). The closed forms are in [`dual`](super::dual); everything else is a
//! series in the correlation ([`series`](super::series)).

use super::expression::Elementwise;
use mercer_net::op::{Combine, Function};
use std::sync::Arc;

/// `x ↦ outer · f(inner · x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitActivation {
    pub(super) dual: Dual,
    pub(super) inner: f64,
    pub(super) outer: f64,
}

/// The function, classified by its expectations.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Dual {
    /// `right·x` for positive and `left·x` for negative `x`: identity, ReLU, leaky ReLU, absolute value.
    Bent {
        left: f64,
        right: f64,
    },
    Erf,
    Sin,
    Cos,
    /// `e^{−x²}`.
    Gaussian,
    /// `x Φ(x)`.
    Gelu,
    /// `x^n`.
    Monomial(u32),
    /// Any other function; whether it is odd.
    Series {
        expression: Arc<Elementwise>,
        odd: bool,
    },
}

/// The largest power with a closed form here: the integer coefficients of its expectations are still exact in `f64`.
const LARGEST_POWER: f64 = 12.0;

impl LimitActivation {
    fn plain(dual: Dual) -> Self {
        Self { dual, inner: 1.0, outer: 1.0 }
    }

    /// `max(x, 0)`.
    pub fn relu() -> Self {
        Self::leaky(0.0)
    }

    /// `x` for positive and `slope·x` for negative `x`.
    pub fn leaky(slope: f64) -> Self {
        Self::plain(Dual::Bent { left: slope, right: 1.0 })
    }

    /// A function of the graph's list, in closed form if it has one.
    ///
    /// ```
    /// use mercer_kernel::infinite::LimitActivation;
    /// use mercer_net::op::Function;
    ///
    /// assert!(LimitActivation::from_function(Function::Erf).is_closed());
    /// assert!(!LimitActivation::from_function(Function::Tanh).is_closed());
    /// ```
    pub fn from_function(function: Function) -> Self {
        Self::recognise(&Elementwise::Unary(function, Arc::new(Elementwise::Unit)))
    }

    /// Any function, in closed form if it is known to have one.
    pub fn recognise(expression: &Elementwise) -> Self {
        closed(expression).unwrap_or_else(|| Self::series(expression.clone()))
    }

    /// Any function by its series, even if there is a closed form.
    pub fn series(expression: Elementwise) -> Self {
        let odd = is_odd(&expression);
        Self::plain(Dual::Series { expression: Arc::new(expression), odd })
    }

    /// Whether the expectations are closed forms.
    pub fn is_closed(&self) -> bool {
        !matches!(self.dual, Dual::Series { .. })
    }

    /// Whether `φ(−x) = −φ(x)`, so that the mean is zero.
    pub(super) fn is_odd(&self) -> bool {
        match &self.dual {
            Dual::Bent { left, right } => left == right,
            Dual::Erf | Dual::Sin => true,
            Dual::Cos | Dual::Gaussian | Dual::Gelu => false,
            Dual::Monomial(power) => power % 2 == 1,
            Dual::Series { odd, .. } => *odd,
        }
    }
}

/// Points that distinguish functions.
fn probes() -> Vec<f64> {
    (0..200).map(|i| (i as f64 + 0.37) * 0.04).collect()
}

/// Whether `φ(−x) = −φ(x)`.
fn is_odd(expression: &Elementwise) -> bool {
    let x = probes();
    let (right, left) = (expression.at(&x).0, expression.at(&x.iter().map(|x| -x).collect::<Vec<_>>()).0);
    right.iter().zip(&left).all(|(a, b)| (a + b).abs() <= 1e-12 * (a.abs() + b.abs()))
}

/// The closed form of a function, if it has one.
fn closed(expression: &Elementwise) -> Option<LimitActivation> {
    named(expression).or_else(|| bent(expression)).or_else(|| gelu(expression))
}

/// A known function between scales.
fn named(expression: &Elementwise) -> Option<LimitActivation> {
    use Elementwise::{Binary, Unary};
    let scaled = |factor: f64, inner: &Elementwise| {
        let found = named(inner)?;
        Some(LimitActivation { outer: factor * found.outer, ..found })
    };
    if let Some((scale, 0.0)) = expression.affine() {
        return Some(LimitActivation::plain(Dual::Bent { left: scale, right: scale }));
    }
    let dual = match expression {
        Unary(Function::Affine { scale, shift: 0.0 }, inner) => return scaled(*scale, inner),
        Unary(Function::Neg, inner) => return scaled(-1.0, inner),
        Binary(Combine::Mul, a, b) => {
            return match (a.affine(), b.affine()) {
                (Some((0.0, factor)), _) => scaled(factor, b),
                (_, Some((0.0, factor))) => scaled(factor, a),
                _ => None,
            };
        }
        Binary(Combine::Div, a, b) => {
            return match b.affine() {
                Some((0.0, factor)) if factor != 0.0 => scaled(1.0 / factor, a),
                _ => None,
            };
        }
        Unary(Function::Erf, _) => Dual::Erf,
        Unary(Function::Sin, _) => Dual::Sin,
        Unary(Function::Cos, _) => Dual::Cos,
        Unary(Function::Gelu, _) => Dual::Gelu,
        Unary(Function::Power(p), _) if (2.0..=LARGEST_POWER).contains(p) && p.fract() == 0.0 => {
            Dual::Monomial(*p as u32)
        }
        Unary(Function::Exp, inner) => return gaussian(inner),
        _ => return None,
    };
    let Unary(_, inner) = expression else { return None };
    let (inner, shift) = inner.affine()?;
    (shift == 0.0).then_some(LimitActivation { dual, inner, outer: 1.0 })
}

/// `e^{−k²x²}`, from its exponent.
fn gaussian(exponent: &Elementwise) -> Option<LimitActivation> {
    if !exponent.is_polynomial() {
        return None;
    }
    let (values, _) = exponent.at(&[1.0, 0.0, -1.0, 2.0, 0.5]);
    let [k, origin, mirrored, two, half] = values[..] else { return None };
    let square = origin == 0.0 && k == mirrored && two == 4.0 * k && half == 0.25 * k;
    (k < 0.0 && square).then(|| LimitActivation { inner: (-k).sqrt(), ..LimitActivation::plain(Dual::Gaussian) })
}

/// Whether two lists agree to the precision in which files store constants.
fn agree(values: &[f64], expected: impl Iterator<Item = f64>) -> bool {
    values.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= 2e-7 * expected.abs())
}

/// A line on either side of zero. Constants are compared exactly: these functions have none that exporters round.
fn bent(expression: &Elementwise) -> Option<LimitActivation> {
    let x = probes();
    let (positive, _) = expression.at(&x);
    let (negative, _) = expression.at(&x.iter().map(|x| -x).collect::<Vec<_>>());
    // Removes the sign of a zero slope.
    let (right, left) = (expression.at(&[1.0]).0[0] + 0.0, 0.0 - expression.at(&[-1.0]).0[0]);
    let line = |values: &[f64], slope: f64| values.iter().zip(&x).all(|(y, x)| (y - slope * x).abs() <= 1e-15 * x);
    // Also far out: a clip at six is a line up to there.
    let far = expression.at(&[1e4, -1e4]).0;
    let ends = far[0] == right * 1e4 && far[1] == -left * 1e4;
    let fits = right.is_finite() && left.is_finite() && ends && expression.at(&[0.0]).0[0] == 0.0;
    let negated: Vec<f64> = negative.iter().map(|y| -y).collect();
    (fits && line(&positive, right) && line(&negated, left)).then(|| LimitActivation::plain(Dual::Bent { left, right }))
}

/// GELU as exported, `x · ½ (1 + erf(x/√2))` in any arrangement.
fn gelu(expression: &Elementwise) -> Option<LimitActivation> {
    let x = probes();
    let reference = |sign: f64| {
        let x: Vec<f64> = x.iter().map(|x| sign * x).collect();
        let mut y = vec![0.0; x.len()];
        Function::Gelu.values(&x, &mut y);
        (expression.at(&x).0, y)
    };
    let ((found, right), (below, left)) = (reference(1.0), reference(-1.0));
    // On the left, GELU is a small difference of rounded numbers, so it is compared with its value for an exact erf of
    // them.
    let near = |found: &[f64], expected: &[f64]| found.iter().zip(expected).all(|(f, e)| (f - e).abs() <= 2e-7);
    (agree(&found, right.into_iter()) && near(&below, &left)).then(|| LimitActivation::plain(Dual::Gelu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Elementwise::{Binary, Constant, Unary, Unit};

    fn unary(function: Function, inner: Elementwise) -> Elementwise {
        Unary(function, Arc::new(inner))
    }

    fn binary(combine: Combine, a: Elementwise, b: Elementwise) -> Elementwise {
        Binary(combine, Arc::new(a), Arc::new(b))
    }

    #[test]
    fn exported_activations_are_recognised() {
        let root = f64::from(std::f32::consts::SQRT_2);
        let erf = unary(Function::Erf, binary(Combine::Div, Unit, Constant(root)));
        let gelu =
            binary(Combine::Mul, binary(Combine::Mul, Unit, binary(Combine::Add, erf, Constant(1.0))), Constant(0.5));
        assert_eq!(LimitActivation::recognise(&gelu), LimitActivation::from_function(Function::Gelu));
        let leaky = Elementwise::Where(
            Arc::new(binary(Combine::Less, Constant(0.0), Unit)),
            Arc::new(Unit),
            Arc::new(binary(Combine::Mul, Constant(0.2), Unit)),
        );
        assert_eq!(LimitActivation::recognise(&leaky), LimitActivation::leaky(0.2));
        assert_eq!(LimitActivation::recognise(&binary(Combine::Max, Unit, Constant(0.0))), LimitActivation::relu());
        let scaled =
            binary(Combine::Mul, Constant(3.0), unary(Function::Sin, binary(Combine::Mul, Unit, Constant(2.0))));
        assert_eq!(LimitActivation::recognise(&scaled), LimitActivation { dual: Dual::Sin, inner: 2.0, outer: 3.0 });
        let bell = unary(Function::Exp, unary(Function::Neg, binary(Combine::Mul, Unit, Unit)));
        assert_eq!(LimitActivation::recognise(&bell), LimitActivation::plain(Dual::Gaussian));
        assert!(!LimitActivation::from_function(Function::Clip { low: 0.0, high: 6.0 }).is_closed());
        assert!(!LimitActivation::from_function(Function::GeluTanh).is_closed());
        assert!(
            !LimitActivation::recognise(&unary(Function::Erf, binary(Combine::Add, Unit, Constant(1.0)))).is_closed()
        );
        assert!(
            LimitActivation::from_function(Function::Tanh).is_odd()
                && !LimitActivation::from_function(Function::Softplus).is_odd()
        );
    }
}
