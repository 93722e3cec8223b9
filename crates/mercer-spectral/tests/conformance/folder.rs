//! Folders that are damaged, or belong to something else.

use crate::problems::{POLYNOMIAL, Problem, RBF, points};
use mercer_data::{Dataset, Existing};
use mercer_kernel::{NtkKind, Recipe, SavedKernel, Selection};
use mercer_net::Network;
use mercer_net::network::{Batching, SavedNetwork};
use mercer_run::Context;
use mercer_spectral::{Eigenfunctions, Mapped, Solver, SpectralError, exact, of_features};
use std::path::Path;
use std::sync::Arc;

fn saved(problem: &Problem, folder: &Path) {
    let (functions, _) =
        exact(Arc::clone(&problem.kernel), &problem.data, 2, Solver::Full, &Context::new()).expect("solves");
    functions.save(folder, Existing::Refuse).expect("saves");
    assert!(functions.save(folder, Existing::Refuse).is_err(), "nothing is replaced unasked");
    functions.save(folder, Existing::Replace).expect("saves");
}

#[test]
fn another_kernel_or_none_is_refused() {
    let problem = Problem::new("rbf", RBF, points(10, 2, 1.0), 2);
    let folder = tempfile::tempdir().expect("a folder");
    saved(&problem, folder.path());
    let other = Eigenfunctions::<f64>::load(folder.path(), Some(Arc::new(POLYNOMIAL)));
    assert!(matches!(other, Err(SpectralError::OtherKernel { .. })), "{other:?}");
    let none = Eigenfunctions::<f64>::load(folder.path(), None);
    assert!(matches!(none, Err(SpectralError::OtherKernel { .. })), "{none:?}");
}

/// A network's kernel comes back from the folder alone.
#[test]
fn the_kernel_of_a_network_is_saved_with_its_functions() {
    let network = mercer_net::arch::Mlp::new(2, &[6], 3).build(4).expect("builds");
    let bytes = network.to_onnx_bytes().expect("exports");
    let network = Network::from_onnx_bytes(&bytes, Batching::Samples).expect("reads");
    let data = vec![Dataset::from_array("x", points(30, 2, 1.0).into_dyn().view()).expect("data")];
    let shapes = [vec![2]];
    let tangent = Recipe::Tangent { kind: NtkKind::Trace, selection: Selection::default(), by_layer: false };
    for recipe in [tangent, Recipe::Conjugate { output: None, bias: true }] {
        let built = recipe.build::<f64>(Some(&network), &shapes).expect("builds");
        let solved = match built.map {
            Some(map) => of_features(Arc::new(Mapped::new(map, &shapes)), &data, 3, Solver::Full, &Context::new()),
            None => exact(built.kernel, &data, 3, Solver::Full, &Context::new()),
        };
        let saved = |bytes: &[u8]| Some(SavedKernel::new(recipe.clone(), Some(SavedNetwork::new(bytes.to_vec()))));
        let functions = solved.expect("solves").0.with_kernel(saved(&bytes));
        let folder = tempfile::tempdir().expect("a folder");
        functions.save(folder.path(), Existing::Refuse).expect("saves");
        let loaded = Eigenfunctions::<f64>::load(folder.path(), None).expect("loads");
        let eval = |functions: &Eigenfunctions<f64>| functions.eval_data(&data, &Context::new()).expect("evaluates");
        assert_eq!(eval(&loaded), eval(&functions), "{recipe:?}");

        let other = mercer_net::arch::Mlp::new(2, &[6], 3).build(5).expect("builds").to_onnx_bytes().expect("exports");
        let functions = functions.with_kernel(saved(&other));
        functions.save(folder.path(), Existing::Replace).expect("saves");
        let wrong = Eigenfunctions::<f64>::load(folder.path(), None);
        assert!(matches!(wrong, Err(SpectralError::OtherKernel { .. })), "{wrong:?}");
        let functions = functions.with_kernel(saved(b"no model"));
        functions.save(folder.path(), Existing::Replace).expect("saves");
        assert!(Eigenfunctions::<f64>::load(folder.path(), None).is_err());
    }
}

#[test]
fn damaged_files_are_errors() {
    let problem = Problem::new("rbf", RBF, points(10, 2, 1.0), 2);
    let load = |folder: &Path| Eigenfunctions::<f64>::load(folder, Some(Arc::clone(&problem.kernel)));
    let edits: [(&str, &str, &str); 6] = [
        ("\"kind_version\": 1", "\"kind_version\": 2", "version is 2"),
        ("\"kind\": \"eigenfunctions", "\"kind\": \"machine", "holds a machine"),
        ("\"components\": 2", "\"components\": 3", "does not fit"),
        ("\"functions\": 10", "\"functions\": 1", "sizes"),
        ("\"type\": \"sections\"", "\"type\": \"../../etc\"", "no basis of type"),
        ("{", "[", "not a valid mercer folder"),
    ];
    for (from, to, reason) in edits {
        let folder = tempfile::tempdir().expect("a folder");
        saved(&problem, folder.path());
        mercer_data::faults::forge(folder.path(), from, to);
        let error = load(folder.path()).expect_err(to).to_string();
        assert!(error.contains(reason), "{to}: {error}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    saved(&problem, folder.path());
    let mut paths: Vec<_> = std::fs::read_dir(folder.path().join("objects")).expect("objects").flatten().collect();
    paths.sort_by_key(|entry| entry.file_name());
    let paths: Vec<_> = paths.iter().map(|entry| entry.path()).chain([folder.path().join("folder.json")]).collect();
    assert_eq!(paths.len(), 4, "values, weights, landmarks and the manifest");
    for path in paths {
        let bytes = std::fs::read(&path).expect("reads");
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        for damaged in [&bytes[..bytes.len() - 5], &flipped] {
            std::fs::write(&path, damaged).expect("writes");
            let error = load(folder.path()).expect_err("damaged").to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
        std::fs::remove_file(&path).expect("removes");
        assert!(load(folder.path()).is_err(), "{} missing", path.display());
        std::fs::write(&path, bytes).expect("writes");
    }
    load(folder.path()).expect("whole again");
}
