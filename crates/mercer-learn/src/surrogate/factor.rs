//! `G = (K + λI)⁻¹` as a factorisation.
//!
//! ```text
//! Gram: K + λI = LLᵀ                       G·y = L⁻ᵀL⁻¹y                 G_ii = ‖L⁻¹eᵢ‖²
//! features: Φᵀ·Φ + λI = LLᵀ (D × D)        G·y = (y − ΦL⁻ᵀL⁻¹Φᵀy)/λ      G_ii = (1 − ‖L⁻¹φᵢ‖²)/λ
//! ```

use super::rows::DualRows;
use crate::error::Result;
use crate::repair::{self, Repair};
use mercer_linalg::{Cholesky, cholesky_shifted};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Samples whose leverage is computed at once.
const STRIP: usize = 1024;

pub(super) struct Factor<'a> {
    pub(super) rows: DualRows<'a>,
    lower: Cholesky<f64>,
    /// With the jitter, if there was any.
    pub(super) penalty: f64,
}

impl<'a> Factor<'a> {
    /// `normal` is `ΦᵀΦ` if it is known.
    pub(super) fn new(rows: DualRows<'a>, normal: Option<&Array2<f64>>, penalty: f64) -> Result<Self> {
        let lower = match (&rows, normal) {
            (DualRows::Gram(gram), _) => cholesky_shifted(*gram, penalty)?,
            (_, Some(normal)) => cholesky_shifted(normal.view(), penalty)?,
            (_, None) => cholesky_shifted(rows.normal().view(), penalty)?,
        };
        Ok(Self { rows, penalty: penalty + lower.jitter, lower })
    }

    pub(super) fn repairs(&self) -> Vec<Repair> {
        repair::jitter(&self.lower).into_iter().collect()
    }

    /// `G·y`.
    pub(super) fn solve(&self, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        if let DualRows::Gram(_) = self.rows {
            return Ok(self.lower.solve(y)?);
        }
        let primal = self.lower.solve(self.rows.backward(y).view())?;
        Ok((&y - &self.rows.forward(primal.view())) / self.penalty)
    }

    /// `K(x, X)·G`, a row per query; with features `φ(x)·(ΦᵀΦ + λI)⁻¹·Φᵀ`.
    pub(super) fn explain(&self, queries: &DualRows<'_>) -> Result<Array2<f64>> {
        let turned = match queries {
            DualRows::Gram(rows) | DualRows::Features(rows) => self.lower.solve(rows.t())?,
            DualRows::Features32(rows) => self.lower.solve(rows.t().mapv(f64::from).view())?,
        };
        let explained = if let DualRows::Gram(_) = self.rows { turned } else { self.rows.forward(turned.view()) };
        Ok(explained.reversed_axes().as_standard_layout().into_owned())
    }

    /// `G_ii`.
    pub(super) fn diagonal(&self, context: &Context) -> Result<Array1<f64>> {
        let n = self.rows.n_samples();
        let mut diagonal = Vec::with_capacity(n);
        for start in (0..n).step_by(STRIP) {
            context.check()?;
            let range: Vec<usize> = (start..(start + STRIP).min(n)).collect();
            if let DualRows::Gram(_) = self.rows {
                let half = self.lower.solve_lower(unit(n, &range).view())?;
                diagonal.extend(half.mapv(|v| v * v).sum_axis(Axis(0)));
                continue;
            }
            let columns = match self.rows.select(&range, &[]) {
                super::rows::Owned::Features32(rows) => rows.t().mapv(f64::from),
                super::rows::Owned::Gram(rows) | super::rows::Owned::Features(rows) => rows.reversed_axes(),
            };
            let leverage = self.lower.solve_lower(columns.view())?.mapv(|v| v * v).sum_axis(Axis(0));
            // Rounding may make a leverage one where λ is far below the smallest eigenvalue.
            diagonal.extend(leverage.iter().map(|h| (1.0 - h).max(f64::EPSILON) / self.penalty));
        }
        Ok(diagonal.into())
    }
}

/// Columns of the identity.
pub(super) fn unit(n: usize, columns: &[usize]) -> Array2<f64> {
    let mut unit = Array2::zeros((n, columns.len()));
    columns.iter().enumerate().for_each(|(at, &row)| unit[(row, at)] = 1.0);
    unit
}
