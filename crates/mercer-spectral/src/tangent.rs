//! A few eigenpairs of a tangent kernel, with its matrix or matrix-free, whichever takes fewer operations.
//!
//! With `N` samples, `R` rows of the matrix, and `m` products until convergence,
//!
//! ```text
//! with the matrix       N·prepare + ½ N(N + 1)·pair + 2 m R²        from the kernel's own cost
//! without it            m·(a reverse and a forward-mode pass over all samples, once per output for the trace kernel)
//! ```
//!
//! `m` is known for the randomised method. For Lanczos it is at least the number of products that fill the basis twice,
//! which is the earliest point at which it can stop. A matrix that does not fit into memory is not computed.

use crate::error::{Result, SpectralError};
use crate::exact::{Solver, extend, gram_matrix};
use crate::functions::Eigenfunctions;
use crate::samples;
use crate::spectrum::Spectrum;
use mercer_data::Dataset;
use mercer_kernel::{Kernel, NtkKind, NtkOperator, Real, Selection};
use mercer_linalg::LinearOperator;
use mercer_net::Network;
use mercer_run::Context;
use serde::Serialize;
use std::sync::Arc;

/// Whether the matrix of the kernel is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TangentMethod {
    /// Computes the matrix and multiplies with it.
    Matrix,
    /// Multiplies through the network instead.
    Products,
}

/// The choice, and the reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TangentChoice {
    /// The choice.
    pub way: TangentMethod,
    /// Operations with the matrix.
    pub matrix_flops: f64,
    /// Operations without it.
    pub products_flops: f64,
    /// The least number of products until convergence.
    pub products: usize,
    /// Bytes of the matrix.
    pub matrix_bytes: usize,
    /// Whether the matrix fits into memory.
    pub fits: bool,
}

impl TangentChoice {
    /// The cheaper way to the `k` largest eigenpairs of a tangent kernel.
    pub fn new<T: Real>(
        kernel: &dyn Kernel<T>,
        operator: &NtkOperator<T>,
        k: usize,
        solver: Solver,
        context: &Context,
    ) -> Self {
        let rows = operator.dim();
        let samples = (rows / operator.per_sample().max(1)) as f64;
        let products = solver.products(k, rows);
        let cost = kernel.cost();
        let made = samples * cost.prepare_flops + 0.5 * samples * (samples + 1.0) * cost.pair_flops;
        let matrix_flops = made + 2.0 * products as f64 * (rows as f64).powi(2);
        let products_flops = products as f64 * operator.flops();
        let matrix_bytes = rows.saturating_mul(rows).saturating_mul(size_of::<T>());
        // If the kernel is split by layers, the parts are added to the first.
        let held = matrix_bytes.saturating_mul(kernel.parts().len().clamp(1, 2));
        let fits = held <= context.memory();
        let way = if fits && matrix_flops <= products_flops { TangentMethod::Matrix } else { TangentMethod::Products };
        Self { way, matrix_flops, products_flops, products, matrix_bytes, fits }
    }

    /// Overrides the choice.
    pub fn forced(self, way: TangentMethod) -> Self {
        Self { way, ..self }
    }

    /// The choice as a sentence.
    pub fn sentence(&self) -> String {
        let Self { way, matrix_flops, products_flops, products, .. } = self;
        let (with, without) = (matrix_flops / 1e9, products_flops / 1e9);
        let costs = format!(
            "the matrix of the kernel takes {with:.3e} Gflop, and at least {products} matrix-free products take {without:.3e} Gflop"
        );
        match (way, self.fits) {
            (TangentMethod::Matrix, true) => format!("{costs}: the matrix is made"),
            (TangentMethod::Matrix, false) => {
                format!("{costs}: the matrix is made, although it may not fit into memory")
            }
            (TangentMethod::Products, true) => format!("{costs}: the matrix is not made"),
            (TangentMethod::Products, false) => {
                format!("{costs}: the matrix is not made, because it does not fit into memory")
            }
        }
    }
}

/// A tangent kernel: its network and selection.
#[derive(Clone, Copy, Debug)]
pub struct TangentKernel<'a> {
    /// The network.
    pub network: &'a Network,
    /// Which kernel of its outputs.
    pub kind: NtkKind,
    /// Which outputs and parameters.
    pub selection: &'a Selection,
}

impl TangentKernel<'_> {
    /// The leading eigenfunctions on data, one data set per input, extended to new data; `kernel` is the same kernel.
    /// The cheaper way is used unless one is given. Both agree to the accuracy of the solver.
    ///
    /// # Errors
    /// As [`exact`](crate::exact) and [`NtkOperator::new`].
    pub fn eigenfunctions<T: Real>(
        &self,
        kernel: Arc<dyn Kernel<T>>,
        data: &[Dataset],
        (k, solver): (usize, Solver),
        way: Option<TangentMethod>,
        told: &dyn Fn(&TangentChoice),
        context: &Context,
    ) -> Result<(Eigenfunctions<T>, Spectrum<T>)> {
        let operator = NtkOperator::<T>::new(self.network, data, self.kind, self.selection, context)?;
        if operator.dim() != samples::count(data) * kernel.per_sample() {
            return Err(SpectralError::Setting("the kernel does not belong to the network".to_owned()));
        }
        let choice = TangentChoice::new(&*kernel, &operator, k, solver, context);
        let choice = way.map_or(choice.clone(), |way| choice.forced(way));
        told(&choice);
        let spectrum = match choice.way {
            TangentMethod::Matrix => {
                Spectrum::of_matrix(gram_matrix(&*kernel, data, context)?.view(), k, solver, context)?
            }
            TangentMethod::Products => {
                Spectrum::of_operator(&operator, k, solver, context).map_err(|error| match operator.failure() {
                    Some(why) => why.into(),
                    None => error,
                })?
            }
        };
        Ok((extend(&spectrum, kernel, data)?.note("method", solver.name()), spectrum))
    }
}
