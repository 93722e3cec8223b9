//! The front door: the examples run, and what they are made of says the same as the crates below.

use mercer::door::InputArrays;
use mercer::prelude::*;
use ndarray::{Array2, Array4, array};

/// The programs of the examples folder, as they are.
macro_rules! examples {
    ($($name:ident: $path:literal),* $(,)?) => {$(
        #[path = $path]
        mod $name;

        #[test]
        fn $name() {
            $name::main().expect(stringify!($name));
        }
    )*};
}

examples! {
    ntk: "../../examples/ntk.rs",
    infinite_width: "../../examples/infinite_width.rs",
    surrogate: "../../examples/surrogate.rs",
    eigenfunctions: "../../examples/eigenfunctions.rs",
    posterior: "../../examples/posterior.rs",
    gram_store: "../../examples/gram_store.rs",
}

/// Short enough to be read at once.
#[test]
fn examples_are_short() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    for name in ["ntk", "infinite_width", "surrogate", "eigenfunctions", "posterior", "gram_store"] {
        let text = std::fs::read_to_string(format!("{folder}/{name}.rs")).expect("an example");
        let lines = text.lines().filter(|line| !line.starts_with("//!") && !line.is_empty()).count();
        assert!(lines <= 25, "{name} has {lines} lines");
    }
}

fn points(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, 2), |(i, j)| ((3 * i + 5 * j) as f64 * 0.7).sin())
}

#[test]
fn a_kernel_is_the_same_in_both_directions_and_precisions() {
    let network = Mlp::new(2, &[6], 3).build(0).unwrap();
    let (x, y) = (points(5), points(3));
    for text in ["trace", "pseudo", "ck", "full", "normalised(trace)", "ntk-limit", "rbf(lengthscale=2)"] {
        let kernel = KernelFn::new(text, &network).unwrap();
        let gram = kernel.gram(&x).unwrap();
        let narrow = kernel.gram(&x.mapv(|v| v as f32)).unwrap().mapv(f64::from);
        assert!((&gram - &narrow).iter().all(|d| d.abs() < 1e-4), "{text}");
        let cross = kernel.between(&x, y.view()).unwrap();
        assert_eq!(cross.t().dim(), kernel.between(&y, &x).unwrap().dim(), "{text}");
        assert!((&cross.t() - &kernel.between(&y, &x).unwrap()).iter().all(|d| d.abs() < 1e-12), "{text}");
        let rows = if text == "full" { 3 } else { 1 };
        assert_eq!((gram.dim(), cross.dim()), ((5 * rows, 5 * rows), (5 * rows, 3 * rows)), "{text}");
    }
    let features = KernelFn::new("ck", &network).unwrap().features(&x).unwrap();
    let gram = KernelFn::new("ck", &network).unwrap().gram(&x).unwrap();
    assert!((features.dot(&features.t()) - gram).iter().all(|d| d.abs() < 1e-12));
}

#[test]
fn views_in_any_order_are_the_same_samples() {
    let network = Mlp::new(2, &[6], 3).build(0).unwrap();
    let kernel = KernelFn::new("trace", &network).unwrap();
    let x = points(4);
    let turned = x.t().to_owned();
    assert_eq!(kernel.gram(&x).unwrap(), kernel.gram(turned.t()).unwrap());
}

#[test]
fn a_machine_says_the_same_after_it_was_saved() {
    let network = Mlp::new(2, &[6], 3).build(0).unwrap();
    let (x, new) = (points(12), points(5));
    let folder = tempfile::tempdir().unwrap();
    let kernel = KernelFn::new("trace", &network).unwrap();
    let machine = kernel.fit(&ProcessRegression::new(0.1).unwrap(), &x, &x.column(0).to_owned()).unwrap();
    let means = machine.predict(&new).unwrap();
    let posterior = machine.posterior(&new).unwrap();
    assert_eq!(posterior.means, means);
    assert!(posterior.variances.iter().all(|v| *v >= 0.0));
    assert!(machine.classify(&new).is_err());

    machine.save(folder.path().join("machine")).unwrap();
    let loaded = KernelMachine::load(&folder.path().join("machine")).unwrap();
    let again = loaded.predict(&(&new).into_datasets().unwrap(), &Context::new()).unwrap();
    assert!((&again - &means).iter().all(|d| d.abs() < 1e-6), "{again} {means}");
}

#[test]
fn a_store_is_completed_and_not_mistaken() {
    let network = Mlp::new(2, &[6], 3).build(0).unwrap();
    let x = points(7);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.zarr");
    let kernel = KernelFn::new("trace", &network).unwrap();
    let store = kernel.store(&x, &path).unwrap();
    assert_eq!(store.read_all::<f64>("kernel").unwrap(), kernel.gram(&x).unwrap().into_dyn());
    assert!(kernel.store(&x, &path).is_ok(), "nothing is left to do");
    let other = kernel.store(&points(6), &path).unwrap_err();
    assert_eq!(other.code(), "other-run", "{other}");
    assert!(kernel.store(&x, folder.path().join("g.txt")).is_err());
}

#[test]
fn what_cannot_be_done_is_refused() {
    let network = Mlp::new(2, &[6], 3).build(0).unwrap();
    assert!(KernelFn::new("trace", None).is_err());
    assert!(KernelFn::new("no-such-kernel", &network).is_err());
    let kernel = KernelFn::new("trace", &network).unwrap();
    assert!(kernel.gram(&array![[1.0, 2.0, 3.0]]).is_err());
    assert!(kernel.gram(&array![[1.0, f64::NAN]]).is_err());
    assert!(kernel.gram(&ndarray::arr0(1.0)).is_err());
    assert!(kernel.between(&points(2), &array![[1.0]]).is_err());
    assert!(kernel.features(&points(2)).is_err());
    assert!(kernel.eigen(&points(2), 0).is_err());
    let ridge = mercer::learn::regression::Ridge::new(0.1).unwrap();
    assert!(kernel.fit(&ridge, &points(4), &array![1.0, 2.0]).is_err());
    assert!(KernelFn::new("full", &network).unwrap().fit(&ridge, &points(2), &array![1.0, 2.0]).is_err());
    assert!(kernel.fit(&Svm::new(1.0).unwrap(), &points(2), &[usize::MAX, 0][..]).is_err());
    assert!(kernel.gram((&points(2), &points(3))).is_err());
    assert!(mercer::predict(&network, &Array4::<f32>::zeros((2, 1, 1, 3))).is_err());
    assert!(mercer::posterior(&network, &points(4), &[0, 1][..], Structure::Full).is_err());
}
