//! A function of one number, written with the primitives of a graph: an activation as exported.

use mercer_net::op::{Combine, Function};
use std::sync::Arc;

/// The maximum number of primitives of a function; larger ones are not activations.
const LARGEST: usize = 500;

/// A function of one number.
#[derive(Clone, Debug, PartialEq)]
pub enum Elementwise {
    /// The number itself.
    Unit,
    /// A constant.
    Constant(f64),
    /// A function of a function.
    Unary(Function, Arc<Elementwise>),
    /// Two functions combined.
    Binary(Combine, Arc<Elementwise>, Arc<Elementwise>),
    /// The second function where the first is not zero, else the third.
    Where(Arc<Elementwise>, Arc<Elementwise>, Arc<Elementwise>),
}

/// Values and slopes at some points.
pub(super) type Samples = (Vec<f64>, Vec<f64>);

impl Elementwise {
    /// The values and derivatives at some points; kinks have the graph's convention.
    pub(super) fn at(&self, x: &[f64]) -> Samples {
        match self {
            Self::Unit => (x.to_vec(), vec![1.0; x.len()]),
            Self::Constant(value) => (vec![*value; x.len()], vec![0.0; x.len()]),
            Self::Unary(function, inner) => {
                let (inner, slope) = inner.at(x);
                let (mut values, mut slopes) = (vec![0.0; x.len()], vec![0.0; x.len()]);
                function.values(&inner, &mut values);
                function.slopes(&inner, &values, &mut slopes);
                // A constant has derivative zero, even if the function around it has an infinite derivative.
                slopes.iter_mut().zip(&slope).for_each(|(d, &s)| *d = if s == 0.0 { 0.0 } else { *d * s });
                (values, slopes)
            }
            Self::Binary(combine, a, b) => {
                let ((a, da), (b, db)) = (a.at(x), b.at(x));
                (0..x.len()).map(|i| binary(*combine, [a[i], b[i]], [da[i], db[i]])).unzip()
            }
            Self::Where(condition, a, b) => {
                let ((c, _), (a, da), (b, db)) = (condition.at(x), a.at(x), b.at(x));
                (0..x.len()).map(|i| if c[i] != 0.0 { (a[i], da[i]) } else { (b[i], db[i]) }).unzip()
            }
        }
    }

    /// Whether this many primitives can be an activation.
    pub(super) fn is_small(&self) -> bool {
        fn count(expression: &Elementwise, left: usize) -> Option<usize> {
            let left = left.checked_sub(1)?;
            match expression {
                Elementwise::Unit | Elementwise::Constant(_) => Some(left),
                Elementwise::Unary(_, a) => count(a, left),
                Elementwise::Binary(_, a, b) => count(b, count(a, left)?),
                Elementwise::Where(a, b, c) => count(c, count(b, count(a, left)?)?),
            }
        }
        count(self, LARGEST).is_some()
    }

    /// `scale·x + shift`, if the function is affine.
    pub(super) fn affine(&self) -> Option<(f64, f64)> {
        let both = |a: &Self, b: &Self| Some((a.affine()?, b.affine()?));
        match self {
            Self::Unit => Some((1.0, 0.0)),
            Self::Constant(value) => Some((0.0, *value)),
            Self::Unary(Function::Affine { scale, shift }, a) => {
                a.affine().map(|(s, t)| (scale * s, scale * t + shift))
            }
            Self::Unary(Function::Neg, a) => a.affine().map(|(s, t)| (-s, -t)),
            Self::Binary(Combine::Add, a, b) => both(a, b).map(|((s, t), (u, v))| (s + u, t + v)),
            Self::Binary(Combine::Sub, a, b) => both(a, b).map(|((s, t), (u, v))| (s - u, t - v)),
            Self::Binary(Combine::Mul, a, b) => match both(a, b)? {
                ((0.0, c), (s, t)) | ((s, t), (0.0, c)) => Some((c * s, c * t)),
                _ => None,
            },
            Self::Binary(Combine::Div, a, b) => match both(a, b)? {
                ((s, t), (0.0, c)) if c != 0.0 => Some((s / c, t / c)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it consists only of sums, products and integer powers.
    pub(super) fn is_polynomial(&self) -> bool {
        match self {
            Self::Unit | Self::Constant(_) => true,
            Self::Unary(Function::Affine { .. } | Function::Neg, a) => a.is_polynomial(),
            Self::Unary(Function::Power(p), a) => *p >= 0.0 && p.fract() == 0.0 && a.is_polynomial(),
            Self::Binary(Combine::Add | Combine::Sub | Combine::Mul, a, b) => a.is_polynomial() && b.is_polynomial(),
            Self::Binary(Combine::Pow, a, b) => {
                matches!(**b, Self::Constant(p) if p >= 0.0 && p.fract() == 0.0) && a.is_polynomial()
            }
            _ => false,
        }
    }
}

fn binary(combine: Combine, [a, b]: [f64; 2], [da, db]: [f64; 2]) -> (f64, f64) {
    let truth = |yes: bool| (f64::from(u8::from(yes)), 0.0);
    match combine {
        Combine::Add => (a + b, da + db),
        Combine::Sub => (a - b, da - db),
        Combine::Mul => (a * b, da * b + a * db),
        Combine::Div => (a / b, (da - a / b * db) / b),
        Combine::Pow => {
            let base = if da == 0.0 || b == 0.0 { 0.0 } else { b * a.powf(b - 1.0) * da };
            let exponent = if db == 0.0 { 0.0 } else { a.powf(b) * a.ln() * db };
            (a.powf(b), base + exponent)
        }
        Combine::Min => {
            if b < a {
                (b, db)
            } else {
                (a, da)
            }
        }
        Combine::Max => {
            if b > a {
                (b, db)
            } else {
                (a, da)
            }
        }
        Combine::PRelu => {
            if a > 0.0 {
                (a, da)
            } else {
                (a * b, da * b + a * db)
            }
        }
        Combine::IntegerDiv => ((a / b).trunc(), 0.0),
        Combine::Mod => (a - b * (a / b).floor(), 0.0),
        Combine::Rem => (a % b, 0.0),
        Combine::Equal => truth(a == b),
        Combine::Less => truth(a < b),
        Combine::LessOrEqual => truth(a <= b),
        Combine::And => truth(a != 0.0 && b != 0.0),
        Combine::Or => truth(a != 0.0 || b != 0.0),
        Combine::Xor => truth((a != 0.0) != (b != 0.0)),
    }
}
