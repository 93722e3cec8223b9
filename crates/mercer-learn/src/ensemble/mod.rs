//! Gradient flow on kernels: ensembles of infinitely wide networks, and linearised finite ones.
//!
//! Consider a network whose tangent kernel `Θ` does not change while it is trained by gradient flow, with learning rate
//! `η`, on half the squared error averaged over `N` samples. At time `t` it is
//!
//! ```text
//! f_t(x) = f_0(x) + Θ(x, X) Θ⁻¹ (I − e^{−ηΘt/N}) (Y − f_0(X))
//! ```
//!
//! [`InfiniteEnsemble`]: over random initial networks `f_0 ~ N(0, K)` this is Gaussian, with mean and covariance in closed form
//! (notes on kernel learning, "More magic in least square regression"; Lee et al. 2019, arXiv 1902.06720). The notes
//! print the limit `t → ∞`, with the wrong sign of `d_t` in their (6): the residual decays.
//!
//! [`Linearised`]: from the `f_0` of one network, with its empirical kernel, for all outputs together (Mohamadi, Bae
//! and Sutherland 2022, arXiv 2206.12543, equation 5) or with the pseudo-NTK for each output separately (equation 6).
//! The paper prints both for `t → ∞`.
//!
//! ```
//! use mercer_learn::ensemble::{FlowSettings, InfiniteEnsemble, Prior};
//! use ndarray::array;
//!
//! let (nngp, targets) = (array![[1.0, 0.5], [0.5, 1.0]], array![[1.0], [-1.0]]);
//! let ensemble = InfiniteEnsemble::last_layer(nngp.view(), targets.view(), FlowSettings::default())?;
//! // Trained for ever, networks agree at the samples they were trained on.
//! let prior = Prior { cross: nngp.view(), test: nngp.view() };
//! let found = ensemble.predict(f64::INFINITY, None, prior)?;
//! assert!((found.mean[[0, 0]] - 1.0).abs() < 1e-9 && found.covariance[[0, 0]].abs() < 1e-9);
//! # Ok::<(), mercer_learn::LearnError>(())
//! ```

mod flow;
mod infinite;
mod linearised;

pub use flow::FlowSettings;
pub use infinite::{EnsemblePrediction, InfiniteEnsemble, Prior};
pub use linearised::Linearised;
