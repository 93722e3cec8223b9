//! Sketches against exact kernels: unbiased, as accurate as they should be, and the same wherever they are computed.

use mercer_data::Source;
use mercer_kernel::sketch::{Sketch, SketchMethod, Spec};
use mercer_kernel::{FeatureMap, Ntk, NtkKind, Real, Selection};
use mercer_net::Network;
use std::path::PathBuf;

const ALL: [SketchMethod; 7] = [
    SketchMethod::Gaussian,
    SketchMethod::Rademacher,
    SketchMethod::SparseJl { nonzeros: 1 },
    SketchMethod::SparseJl { nonzeros: 3 },
    SketchMethod::Hadamard,
    SketchMethod::KhatriRao,
    SketchMethod::Kronecker,
];

/// Samples of a fixture.
const N: usize = 6;

struct Fixture<T> {
    network: Network,
    shape: Vec<Vec<usize>>,
    x: Vec<T>,
}

fn fixture<T: Real>(name: &str) -> Fixture<T> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/nets");
    let network = Network::from_onnx(folder.join(format!("{name}.onnx"))).expect("a fixture");
    let x = Source::new(folder.join(format!("{name}.npz")), Some("x")).open().expect("a fixture");
    let shape = vec![x.sample_shape().to_vec()];
    Fixture { network, shape, x: x.read::<T>().expect("a fixture").into_iter().collect() }
}

impl<T: Real> Fixture<T> {
    fn sketch(&self, spec: &Spec) -> Sketch<T> {
        Sketch::from_spec(&self.network, &self.shape, spec).expect("a sketch")
    }

    fn features(&self, spec: &Spec) -> Vec<T> {
        let sketch = self.sketch(spec);
        let mut features = vec![T::nan(); N * sketch.n_features()];
        sketch.features(&[&self.x], N, &mut features).expect("runs");
        features
    }

    fn gram(&self, spec: &Spec) -> Vec<f64> {
        let features = self.features(spec);
        let rows: Vec<&[T]> = features.chunks_exact(features.len() / N).collect();
        let product = |a: &[T], b: &[T]| a.iter().zip(b).map(|(a, b)| a.wide() * b.wide()).sum();
        rows.iter().flat_map(|a| rows.iter().map(move |b| product(a, b))).collect()
    }

    fn exact(&self, kind: NtkKind, selection: &Selection) -> Vec<f64> {
        let kernel = Ntk::<T>::with_selection(&self.network, &self.shape, kind, selection).expect("a kernel");
        kernel.gram(&[&self.x], N).expect("runs").iter().map(|x| x.wide()).collect()
    }

    /// The root of the mean squared relative error over some seeds.
    fn error(&self, spec: &Spec, seeds: u64) -> f64 {
        let exact = self.exact(spec.kind, &spec.selection);
        let errors = (0..seeds).map(|seed| relative(&self.gram(&Spec { seed, ..spec.clone() }), &exact).powi(2));
        (errors.sum::<f64>() / seeds as f64).sqrt()
    }
}

fn relative(found: &[f64], expected: &[f64]) -> f64 {
    let difference: f64 = found.iter().zip(expected).map(|(a, b)| (a - b).powi(2)).sum();
    (difference / expected.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// The mean over 150 seeds is within five standard errors, entry by entry.
fn unbiased(name: &str, spec: &Spec) {
    const SEEDS: u64 = 150;
    let fixture = fixture::<f64>(name);
    let exact = fixture.exact(spec.kind, &spec.selection);
    let grams: Vec<Vec<f64>> = (0..SEEDS).map(|seed| fixture.gram(&Spec { seed, ..spec.clone() })).collect();
    for (entry, expected) in exact.iter().enumerate() {
        let values = || grams.iter().map(|gram| gram[entry]);
        let mean = values().sum::<f64>() / SEEDS as f64;
        let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / (SEEDS - 1) as f64;
        let bound = 5.0 * (variance / SEEDS as f64).sqrt() + 1e-9 * expected.abs();
        assert!((mean - expected).abs() <= bound, "{name}, {spec:?}: {mean} for {expected}, bound {bound}");
    }
}

#[test]
fn sketches_are_unbiased() {
    for method in ALL {
        unbiased("mlp_erf", &Spec::new(method, 50, NtkKind::Pseudo));
        unbiased("conv_zoo_legacy", &Spec::new(method, 33, NtkKind::Trace));
        unbiased("conv_zoo_legacy", &Spec { total: true, ..Spec::new(method, 33, NtkKind::Trace) });
    }
    unbiased("mlp_erf", &Spec::new(SketchMethod::KhatriRao, 20, NtkKind::Logit(1)));
}

#[test]
fn sketches_of_a_transformer_are_unbiased() {
    for method in [SketchMethod::Hadamard, SketchMethod::KhatriRao, SketchMethod::Kronecker] {
        unbiased("tiny_bert", &Spec { total: true, ..Spec::new(method, 20, NtkKind::Trace) });
    }
}

/// K grows by 16. With 200 seeds and an error that is mostly one number, its root mean square is known to 5 %, a ratio to
/// 7 %; three of these, and what falls faster because a layer's gradients fit into K numbers.
#[test]
fn errors_fall_as_one_over_the_root_of_k() {
    let fixture = fixture::<f64>("mlp_tanh");
    for kind in [NtkKind::Pseudo, NtkKind::Trace] {
        let exact = fixture.error(&Spec::new(SketchMethod::Gaussian, 256, kind), 200);
        for method in ALL.into_iter().filter(|&method| method != SketchMethod::Kronecker) {
            let [few, many] = [16, 256].map(|k| fixture.error(&Spec::new(method, k, kind), 200));
            let ratio = few / many;
            assert!((3.2..6.0).contains(&ratio), "{method}, {kind:?}: {few} to {many}, {ratio}");
            let worst = if method == SketchMethod::KhatriRao { 2.5 } else { 1.2 };
            assert!(many <= worst * exact, "{method}, {kind:?}: {many} against {exact}");
        }
    }
}

/// K grows by 256 and the error falls to a quarter, not to a sixteenth: between 4 and 4.5 for one dense layer, where
/// the variance is `(1 + 2/K₁)(1 + 2/K₂) − 1`.
#[test]
fn the_kronecker_sketch_falls_as_the_fourth_root() {
    let fixture = fixture::<f64>("mlp_tanh");
    let [few, many] = [16, 4096].map(|k| fixture.error(&Spec::new(SketchMethod::Kronecker, k, NtkKind::Pseudo), 200));
    let ratio = few / many;
    assert!((3.2..5.5).contains(&ratio), "{few} to {many}: {ratio}");
}

#[test]
fn threads_make_no_difference_and_blocks_next_to_none() {
    let fixture = fixture::<f32>("tiny_vit");
    for method in ALL {
        let spec = Spec::new(method, 300, NtkKind::Trace);
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
        let [one, three] = [1, 3].map(|threads| pool(threads).install(|| fixture.features(&spec)));
        assert_eq!(one, three, "{method}");
        let sketch = fixture.sketch(&spec);
        let (width, size) = (sketch.n_features(), fixture.x.len() / N);
        let mut apart = vec![0.0; N * width];
        for (sample, features) in apart.chunks_exact_mut(width).enumerate() {
            sketch.features(&[&fixture.x[sample * size..][..size]], 1, features).expect("runs");
        }
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let error = relative(&wide(&apart), &wide(&one));
        // Products of other sizes are added in another order: rounding of single precision.
        assert!(error < 1e-5, "{method}: samples alone differ by {error}");
    }
}

#[test]
fn a_description_gives_the_same_map_again() {
    let fixture = fixture::<f32>("conv_zoo_legacy");
    let selection = Selection { components: Some(vec![2, 0]), ..Selection::default() };
    for method in ALL {
        let spec = Spec { total: true, seed: 9, selection: selection.clone(), ..Spec::new(method, 77, NtkKind::Trace) };
        let text = serde_json::to_string(fixture.sketch(&spec).spec()).expect("JSON");
        let read: Spec = serde_json::from_str(&text).expect("a description");
        assert_eq!(read, spec);
        assert_eq!(fixture.features(&read), fixture.features(&spec), "{method}");
        assert_eq!(fixture.sketch(&read).identity(), fixture.sketch(&spec).identity());
        let other = Spec { seed: 10, ..spec.clone() };
        assert_ne!(fixture.features(&other), fixture.features(&spec), "{method}");
        assert_ne!(fixture.sketch(&other).identity(), fixture.sketch(&spec).identity());
    }
}

#[test]
fn single_and_double_precision_agree() {
    let (single, double) = (fixture::<f32>("tiny_bert"), fixture::<f64>("tiny_bert"));
    for method in ALL {
        let spec = Spec::new(method, 200, NtkKind::Pseudo);
        let wide: Vec<f64> = single.features(&spec).iter().map(|&x| f64::from(x)).collect();
        let error = relative(&wide, &double.features(&spec));
        assert!(error < 2e-5, "{method}: {error}");
    }
}

/// Embeddings, class tokens, norms, weights of both orders: everything that a transformer has. For a kernel of rank one the error
/// has the variance 2/K, 8/K for Khatri–Rao and 4/√K for Kronecker, and no other is worse; bounds are three times its root.
#[test]
fn sketches_of_transformers_are_close() {
    const K: usize = 1024;
    for name in ["tiny_bert", "tiny_vit"] {
        let fixture = fixture::<f64>(name);
        for method in ALL {
            let variance = match method {
                SketchMethod::Kronecker => 4.0 / (K as f64).sqrt(),
                SketchMethod::KhatriRao => 8.0 / K as f64,
                _ => 2.0 / K as f64,
            };
            for total in [false, true] {
                let error = fixture.error(&Spec { total, ..Spec::new(method, K, NtkKind::Trace) }, 1);
                assert!(error < 3.0 * variance.sqrt(), "{name}, {method}, total {total}: {error}");
            }
        }
    }
}

#[test]
fn parameters_without_outer_form_alone() {
    let fixture = fixture::<f64>("conv_zoo_legacy");
    let selection = Selection { parameters: vec!["*bias*".to_owned()], ..Selection::default() };
    for method in ALL {
        let spec = Spec { selection: selection.clone(), ..Spec::new(method, 1000, NtkKind::Trace) };
        let error = fixture.error(&spec, 4);
        assert!(error < 0.15, "{method}: {error}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let fixture = fixture::<f32>("mlp_erf");
    let refuse = |spec: &Spec| Sketch::<f32>::from_spec(&fixture.network, &fixture.shape, spec).expect_err("no sketch");
    assert!(refuse(&Spec::new(SketchMethod::Gaussian, 8, NtkKind::Full)).to_string().contains("trace"));
    refuse(&Spec::new(SketchMethod::Gaussian, 0, NtkKind::Trace));
    refuse(&Spec::new(SketchMethod::SparseJl { nonzeros: 9 }, 8, NtkKind::Trace));
    let sketch = fixture.sketch(&Spec::new(SketchMethod::Hadamard, 8, NtkKind::Trace));
    let mut features = vec![0.0; N * sketch.n_features()];
    let (mut x, third) = (fixture.x.clone(), 3 * fixture.x.len() / N);
    x[third] = f32::NAN;
    let error = sketch.features(&[&x], N, &mut features).expect_err("not finite").to_string();
    assert!(error.contains('3'), "{error}");
}
