//! Random Fourier features of shift-invariant kernels.
//!
//! By Bochner's theorem `κ(x - x') = ∫ e^{iω·(x - x')} p(ω) dω` with a probability density `p`, so with draws
//! `ω_1 … ω_D` from it
//!
//! ```text
//! φ(x) = D^{-½} [cos ω_1·x, sin ω_1·x, …, cos ω_D·x, sin ω_D·x],    E φ(x)·φ(x') = κ(x - x')
//! ```
//!
//! Rahimi and Recht, Random features for large-scale kernel machines, 2007. Pairs of sine and cosine have a lower
//! variance than cosines with random phases (Sutherland and Schneider 2015, arXiv 1506.02785), and give
//! `φ(x)·φ(x) = κ(0)` exactly.
//!
//! | kernel | density of `ω` |
//! |---|---|
//! | `exp(-‖x - x'‖²/2ℓ²)` | normal, with deviation `1/ℓ` |
//! | `exp(-‖x - x'‖₁/ℓ)` | Cauchy in each coordinate, with scale `1/ℓ` |
//! | Matérn of order `ν` | Student's t with `2ν` degrees of freedom: a normal vector over `ℓ √(χ²_{2ν}/2ν)` |
//!
//! Orthogonal features (Yu et al. 2016, arXiv 1610.09072) take the directions of each `d` frequencies from a random
//! orthogonal matrix and give each the length of an independent draw, which preserves the distribution of every single
//! frequency.

use crate::basis::Basis;
use crate::error::{Result, SpectralError};
use mercer_data::folder::{Part, PartWriter};
use mercer_data::random;
use mercer_kernel::classic::Formula;
use mercer_kernel::{Effort, FeatureMap, KernelError, Real};
use mercer_linalg::elementary::{cos, sin};
use mercer_linalg::{gemm, thin_qr};
use mercer_run::Context;
use ndarray::{Array1, Array2, Ix2};
use rand::Rng;
use rand_distr::{Cauchy, ChiSquared, Distribution, StandardNormal};
use rayon::prelude::*;
use serde_json::{Value, json};

/// The number of samples that a thread maps at once.
const GRAIN: usize = 128;

/// Which kernel, in units of its lengthscale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Density {
    /// The Gaussian or RBF kernel.
    Gaussian,
    /// The Laplacian kernel, a function of the sum of absolute differences.
    Laplacian,
    /// The Matérn kernel of this order (½, 3/2, 5/2 or any other), a function of the Euclidean distance.
    Matern(f64),
}

/// Random Fourier features, a feature map and a basis.
#[derive(Clone, Debug)]
pub struct Fourier<T> {
    /// `D × d`.
    frequencies: Array2<T>,
    shapes: Vec<Vec<usize>>,
    variance: f64,
}

/// The features to draw.
#[derive(Clone, Debug)]
pub struct FourierSpec {
    /// The kernel.
    pub density: Density,
    /// Its lengthscale: one for all coordinates, or one for each.
    pub lengthscales: Vec<f64>,
    /// `κ(x, x)`.
    pub variance: f64,
    /// The number of features: even, two for each frequency.
    pub n_features: usize,
    /// Whether directions are orthogonal.
    pub orthogonal: bool,
    /// The random seed.
    pub seed: u64,
}

impl FourierSpec {
    /// Independent features of a kernel with unit variance.
    pub fn new(density: Density, lengthscale: f64, n_features: usize) -> Self {
        Self { density, lengthscales: vec![lengthscale], variance: 1.0, n_features, orthogonal: false, seed: 0 }
    }

    /// Features of a classic kernel: `rbf`, `laplacian`, `matern12`, `matern32` or `matern52`, optionally multiplied by
    /// a number.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] for other kernels, and for sums.
    pub fn of_classic(kernel: &Formula, n_features: usize) -> Result<Self> {
        let text = kernel.to_string();
        let refused = || {
            let known = "rbf, laplacian, matern12, matern32 and matern52, also times a number";
            SpectralError::Setting(format!("there are no random Fourier features for {text}, only for {known}"))
        };
        // A single kernel has a single pair of brackets, and a product has no plus.
        if text.matches('(').count() != 1 || text.contains('+') {
            return Err(refused());
        }
        let mut spec = Self { lengthscales: Vec::new(), ..Self::new(Density::Gaussian, 1.0, n_features) };
        for parameter in kernel.parameters() {
            match parameter.name.split_once('.') {
                None => spec.variance *= parameter.value,
                Some((name, setting)) if setting.starts_with("lengthscale") => {
                    spec.density = match name {
                        "rbf" => Density::Gaussian,
                        "laplacian" => Density::Laplacian,
                        "matern12" => Density::Matern(0.5),
                        "matern32" => Density::Matern(1.5),
                        "matern52" => Density::Matern(2.5),
                        _ => return Err(refused()),
                    };
                    spec.lengthscales.push(parameter.value);
                }
                Some(_) => return Err(refused()),
            }
        }
        if spec.lengthscales.is_empty() { Err(refused()) } else { Ok(spec) }
    }

    /// With orthogonal directions.
    pub fn orthogonal(self) -> Self {
        Self { orthogonal: true, ..self }
    }

    /// With another seed.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    fn check(&self, width: usize) -> Result<()> {
        let wrong = |text: String| Err(SpectralError::Setting(text));
        if self.n_features == 0 || self.n_features % 2 == 1 {
            return wrong(format!(
                "{} random Fourier features were requested; the number must be even and positive, two per frequency",
                self.n_features
            ));
        }
        let positive = |x: f64| x.is_finite() && x > 0.0;
        if !self.lengthscales.iter().all(|&l| positive(l)) || !positive(self.variance) {
            return wrong("the lengthscales and the variance of a kernel must be positive".to_owned());
        }
        if self.lengthscales.len() != 1 && self.lengthscales.len() != width {
            return wrong(format!("{} lengthscales for {width} coordinates", self.lengthscales.len()));
        }
        match self.density {
            Density::Matern(order) if !positive(order) => wrong(format!("the order of a Matérn kernel must be positive, not {order}")),
            Density::Laplacian if self.orthogonal => wrong(
                "the Laplacian kernel depends on the axes, which orthogonal directions would mix; leave out orthogonal, or use a Matérn kernel".to_owned(),
            ),
            _ if width == 0 => wrong("the samples have no coordinates".to_owned()),
            _ => Ok(()),
        }
    }
}

impl<T: Real> Fourier<T> {
    /// Draws features for samples of this shape.
    pub fn new(spec: &FourierSpec, shape: &[usize]) -> Result<Self> {
        let width = shape.iter().product();
        spec.check(width)?;
        let mut stream = random::stream(spec.seed, "fourier");
        let count = spec.n_features / 2;
        let mut frequencies = match spec.density {
            Density::Laplacian => {
                let cauchy = Cauchy::new(0.0, 1.0).map_err(|error| SpectralError::Setting(error.to_string()))?;
                Array2::from_shape_simple_fn((count, width), || cauchy.sample(&mut stream))
            }
            _ => normal(count, width, &mut stream),
        };
        if spec.orthogonal {
            orthogonalise(&mut frequencies, &mut stream)?;
        }
        if let Density::Matern(order) = spec.density {
            let freedom = 2.0 * order;
            let chi = ChiSquared::new(freedom).map_err(|error| SpectralError::Setting(error.to_string()))?;
            for mut row in frequencies.outer_iter_mut() {
                let stretch = (freedom / chi.sample(&mut stream)).sqrt();
                row.mapv_inplace(|w| w * stretch);
            }
        }
        frequencies /= &Array1::from_vec(spec.lengthscales.clone());
        Ok(Self { frequencies: frequencies.mapv(T::narrow), shapes: vec![shape.to_vec()], variance: spec.variance })
    }

    fn count(&self) -> usize {
        self.frequencies.nrows()
    }

    /// The features of a few samples.
    fn map(&self, x: &[T], samples: usize, out: &mut [T]) {
        let (count, width) = self.frequencies.dim();
        let frequencies = self.frequencies.as_slice().unwrap_or(&[]);
        let scale = T::narrow((self.variance / count as f64).sqrt());
        let mut phases = vec![T::zero(); samples * count];
        gemm([samples, count, width], (x, width, 1), (frequencies, 1, width), false, &mut phases);
        let mut waves = vec![T::zero(); phases.len()];
        for (half, function) in [cos::<T> as fn(&[T], &mut [T]), sin::<T>].into_iter().enumerate() {
            function(&phases, &mut waves);
            for (row, values) in out.chunks_exact_mut(2 * count).zip(waves.chunks_exact(count)) {
                row[half * count..][..count].iter_mut().zip(values).for_each(|(to, &x)| *to = scale * x);
            }
        }
    }

    /// Features that were saved.
    pub(crate) fn read(part: &Part<'_>, description: &Value, inputs: &[Vec<usize>]) -> Result<Self> {
        let wrong = |reason: &str| SpectralError::from(part.malformed(reason));
        let frequencies = part.read::<T>(FREQUENCIES, &[None, None])?;
        let frequencies =
            frequencies.into_dimensionality::<Ix2>().map_err(|_| wrong("its frequencies are not a matrix"))?;
        let frequencies = frequencies.as_standard_layout().into_owned();
        let [shape] = inputs else { return Err(wrong("it must have one input")) };
        if frequencies.ncols() != shape.iter().product::<usize>() || frequencies.nrows() == 0 {
            return Err(wrong("the width of its frequencies differs from that of its samples"));
        }
        let variance = description["variance"].as_f64().filter(|v| v.is_finite() && *v > 0.0);
        let variance = variance.ok_or_else(|| wrong("the variance is missing"))?;
        Ok(Self { frequencies, shapes: inputs.to_vec(), variance })
    }
}

/// The type in descriptions.
pub(crate) const TYPE: &str = "fourier";

const FREQUENCIES: &str = "frequencies";

fn normal(rows: usize, columns: usize, stream: &mut impl Rng) -> Array2<f64> {
    Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(stream))
}

/// Orthogonalises the rows, `d` at a time, and keeps their lengths.
fn orthogonalise(frequencies: &mut Array2<f64>, stream: &mut impl Rng) -> Result<()> {
    let width = frequencies.ncols();
    for mut rows in frequencies.axis_chunks_iter_mut(ndarray::Axis(0), width) {
        // The Q of a Gaussian matrix, with a positive diagonal of R, is uniform over rotations and reflections.
        let directions = thin_qr(normal(width, width, stream).view())?.q;
        for (mut row, direction) in rows.outer_iter_mut().zip(directions.outer_iter()) {
            let length = row.dot(&row).sqrt();
            row.assign(&direction.mapv(|v| v * length));
        }
    }
    Ok(())
}

impl<T: Real> FeatureMap<T> for Fourier<T> {
    fn n_features(&self) -> usize {
        2 * self.count()
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> mercer_kernel::Result<()> {
        let (width, n_features) = (self.frequencies.ncols(), self.n_features());
        let [x] = inputs else {
            return Err(KernelError::Setting(format!(
                "{} inputs were given, but random Fourier features take one",
                inputs.len()
            )));
        };
        if x.len() != samples * width {
            let text = format!("{} numbers for {samples} samples of {width}", x.len());
            return Err(KernelError::Setting(text));
        }
        let pieces = x.par_chunks(GRAIN * width).zip(out.par_chunks_mut(GRAIN * n_features));
        pieces.for_each(|(x, out)| self.map(x, x.len() / width, out));
        match out.iter().position(|v| !v.is_finite()) {
            None => Ok(()),
            Some(at) => Err(KernelError::NotFinite { place: "a random feature".to_owned(), sample: at / n_features }),
        }
    }

    fn effort(&self) -> Effort {
        let (count, width) = self.frequencies.dim();
        Effort {
            bytes: 2 * GRAIN * count * size_of::<T>(),
            flops: (2 * width + 40) as f64 * count as f64,
            ..Effort::default()
        }
    }

    fn identity(&self) -> Value {
        let mut numbers = mercer_data::Fingerprint::new();
        self.frequencies.iter().for_each(|w| numbers.update(&w.wide().to_le_bytes()));
        json!({ "features": TYPE, "frequencies": numbers.finish(), "variance": self.variance })
    }
}

impl<T: Real> Basis<T> for Fourier<T> {
    fn input_shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    fn n_functions(&self) -> usize {
        self.n_features()
    }

    fn eval(&self, inputs: &[&[T]], samples: usize, out: &mut [T], _: &Context) -> Result<()> {
        Ok(self.features(inputs, samples, out)?)
    }

    fn write(&self, part: &PartWriter<'_>) -> Result<Value> {
        part.array(FREQUENCIES, &self.frequencies)?;
        Ok(json!({ "type": TYPE, "variance": self.variance }))
    }
}
