//! Linearised Laplace approximations: the uncertainty of a trained network.
//!
//! A network `f(x, θ)` trained to the mode `θ*` of a posterior with prior `N(0, I/δ)` is linear around it to first
//! order, so the posterior over its outputs is Gaussian (MacKay 1992; Khan et al. 2019, arXiv 1906.01930; Immer et al.
//! 2021, arXiv 2008.08400; Deng et al. 2022, arXiv 2205.00165, equation 21):
//!
//! ```text
//! f(x) ~ N( f(x, θ*), J(x) (H + δI)⁻¹ J(x)ᵀ ),     H = Σᵢ J(xᵢ)ᵀ Λᵢ J(xᵢ)
//! ```
//!
//! with the curvature `Λ` of the log likelihood at the outputs ([`Likelihood`]). [`Structure`] defines the form of `H`:
//!
//! | structure | memory | takes |
//! |---|---|---|
//! | [`Full`](Structure::Full) | P² | the Jacobian; networks of some thousand parameters |
//! | [`Diagonal`](Structure::Diagonal), [`Kronecker`](Structure::Kronecker) | P, `Σ in² + out²` | one pass with C gradients per sample, in factors |
//! | [`LastLayerFull`](Structure::LastLayerFull) | (C·F)² | a forward pass |
//! | [`LastLayerKronecker`](Structure::LastLayerKronecker) | F² + C² | a forward pass |
//! | [`LastLayerDiagonal`](Structure::LastLayerDiagonal) | C·F | a forward pass |
//! | [`Sketch`](Structure::Sketch) | K² | one pass with C gradients per sample |
//! | [`Features`](Structure::Features) | K² | the cost of the features, such as eigenfunctions |
//!
//! The evidence `ln p(y) ≈ ln p(y|θ*) − ½ ln det(H/δ + I) − ½ δ‖θ*‖²` chooses `δ` without further data; its derivative
//! is `½(γ/δ − ‖θ*‖²)` with the effective number of parameters `γ = tr H(H + δI)⁻¹`, and it has exactly one maximum.
//! The evidence can also choose the observation noise of a regression, alone or together with `δ`.
//!
//! Where `K` features `Ψ(x) = J(x)V` replace the parameters, only the directions `V` are uncertain, so `γ ≤ K`. The
//! evidence is that of their weights `w`, with the part of `θ*` that they span: `−½ δ‖w*‖²` in place of `−½ δ‖θ*‖²`.
//! Only the values of the features are known, so `w*` are the weights that give the function of `θ*` at the training
//! samples,
//!
//! ```text
//! w* = argmin_w Σᵢ ‖J(xᵢ) θ* − Ψ(xᵢ) w‖²          (the shortest of them)
//! ```
//!
//! which is `Vᵀθ*` where the columns of `V` are eigenvectors of `Σ JᵀJ`, as for eigenfunctions of the tangent kernel,
//! and `θ*` itself where the features are the columns of the Jacobian: the evidence is then that of the full posterior.
//!
//! Reference values: laplace-torch 0.3, whose conventions these are (observation noise 1, no damping of the prior).
//!
//! ```
//! use mercer_data::{Dataset, Labels};
//! use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, Structure};
//! use mercer_net::arch::Mlp;
//! use mercer_run::Context;
//! use ndarray::array;
//!
//! let x = array![[-1.0], [0.0], [1.0]];
//! let (data, labels) = ([Dataset::from_array("x", x.view().into_dyn())?], Labels::Targets(x.clone()));
//! let network = Mlp::new(1, &[4], 1).build(0)?;
//! let settings = LaplaceSettings::new(Structure::LastLayerFull, Likelihood::Gaussian { noise: 0.1 });
//! let laplace = Laplace::<f64>::fit(&network, &data, &labels, &settings, &Context::new())?;
//! let found = laplace.predict(&data, &Context::new())?;
//! assert_eq!((found.mean.dim(), found.covariance.dim()), ((3, 1), (3, 1, 1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(clippy::result_large_err, reason = "closures called by passes return the error type of the kernel crate")]

mod algebra;
mod blocks;
mod dense;
mod head;
mod jacobian;
mod kept;
mod last_layer;
mod last_sides;
mod likelihood;
mod machine;
mod marginals;
mod needs;
mod noise;
mod pace;
mod posterior;
mod predict;
mod predictive;
mod prior;
mod scores;
mod settings;
mod source;
mod spanned;
mod stored;
mod tangent;
mod target;
mod temperature;

pub use likelihood::Likelihood;
pub use machine::Laplace;
pub use marginals::Marginals;
pub use needs::PosteriorNeeds;
pub use posterior::{KIND, Posterior};
pub use predictive::{Functional, PredictiveDraws};
pub use prior::Validation;
pub use scores::{ClassScores, Detection, RegressionScores, entropies, worse};
pub use settings::{LaplaceSettings, Structure};
pub use spanned::features_of;
