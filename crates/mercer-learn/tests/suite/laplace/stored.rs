//! What is saved is what is loaded.

use super::nets::{all_structures, iris};
use mercer_data::Existing;
use mercer_data::faults::forge;
use mercer_data::folder::Folder;
use mercer_kernel::sketch::SketchMethod;
use mercer_kernel::{NtkKind, Recipe, SavedKernel};
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, Posterior, Structure};
use mercer_net::network::SavedNetwork;
use mercer_run::Context;
use mercer_spectral::{Landmarks, Nystrom};
use std::sync::Arc;

/// A folder that is moved predicts the same, with nothing beside it.
#[test]
fn a_saved_posterior_predicts_the_same() {
    let case = iris();
    let network = SavedNetwork::new(case.network.to_onnx_bytes().expect("exports"));
    let sketch = Structure::Sketch { method: SketchMethod::SparseJl { nonzeros: 1 }, k: 32, seed: 1, residual: true };
    for structure in all_structures().chain([sketch]) {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, moved) = (folder.path().join("first"), folder.path().join("moved"));
        let mut machine = case.fit(structure);
        machine.set_prior_precision(0.7).expect("a precision");
        let trained_on = mercer_net::network::TrainedOn { classes: Some(vec!["a".to_owned()]), ..Default::default() };
        let saved = Posterior { laplace: machine, network: network.clone(), functions: Vec::new(), trained_on };
        saved.save(&first, Existing::Refuse).expect("saves");
        assert!(saved.save(&first, Existing::Refuse).is_err(), "nothing is overwritten");
        std::fs::rename(&first, &moved).expect("moves");
        let loaded = Posterior::<f64>::load(&moved).expect("loads");
        assert_eq!(loaded.laplace.settings(), saved.laplace.settings());
        assert_eq!(loaded.trained_on, saved.trained_on);
        let predict = |saved: &Posterior<f64>| saved.predict(&case.test, &Context::new()).expect("predicts");
        assert_eq!(predict(&loaded).covariance, predict(&saved).covariance, "{structure}");
        assert_eq!(predict(&loaded).mean, predict(&saved).mean, "{structure}");
        let evidence = |saved: &Posterior<f64>| saved.laplace.log_evidence(2.0).expect("an evidence");
        assert_eq!(evidence(&loaded), evidence(&saved));
    }
}

/// The eigenfunctions that a posterior was fitted through are part of it, and share its network.
#[test]
fn functions_are_part_of_a_posterior() {
    let case = iris();
    let settings = LaplaceSettings::new(Structure::Features { residual: true }, Likelihood::Categorical);
    let shapes: Vec<Vec<usize>> = case.train.iter().map(|input| input.sample_shape().to_vec()).collect();
    let graph = case.network.graph(&shapes).expect("a graph");
    let selection = settings.selection(&graph).expect("a selection");
    let recipe = Recipe::Tangent { kind: NtkKind::Full, selection, by_layer: false };
    let network = SavedNetwork::new(case.network.to_onnx_bytes().expect("exports"));
    let kernel = recipe.build::<f64>(Some(&case.network), &shapes).expect("builds").kernel;
    let functions = Nystrom::new(Landmarks::Uniform(20)).fit(kernel, &case.train, 5, &Context::new()).expect("fits");
    let functions = functions.functions.with_kernel(Some(SavedKernel::new(recipe, Some(network.clone()))));
    let map = Arc::new(functions.clone());
    let context = Context::new();
    let laplace =
        Laplace::fit_features(&case.network, map, &case.train, &case.labels, &settings, &context).expect("fits");
    let saved = Posterior { laplace, network, functions: vec![functions], trained_on: Default::default() };
    let folder = tempfile::tempdir().expect("a folder");
    saved.save(folder.path(), Existing::Refuse).expect("saves");
    let loaded = Posterior::<f64>::load(folder.path()).expect("loads");
    let predict = |saved: &Posterior<f64>| saved.predict(&case.test, &Context::new()).expect("predicts").covariance;
    assert_eq!(predict(&loaded), predict(&saved));
    let open = Folder::open(folder.path(), None).expect("opens");
    let digest = |name: &str| open.object_entries().find(|(own, _)| *own == name).expect(name).1.clone();
    assert_eq!(digest("network"), digest("functions.kernel.network"), "the network is there once");
}

#[test]
fn broken_folders_are_refused() {
    let case = iris();
    let folder = tempfile::tempdir().expect("a folder");
    let load = || Posterior::<f64>::load(folder.path()).expect_err("refused").to_string();
    assert!(load().contains("folder.json"));
    let other = mercer_net::arch::Mlp::new(4, &[3], 3).build(1).expect("builds");
    for (network, fits) in [(&case.network, true), (&other, false)] {
        let network = SavedNetwork::new(network.to_onnx_bytes().expect("exports"));
        let laplace = case.fit(Structure::Kronecker);
        let saved = Posterior { laplace, network, functions: Vec::new(), trained_on: Default::default() };
        saved.save(folder.path(), Existing::Replace).expect("saves");
        assert_eq!(Posterior::<f64>::load(folder.path()).is_ok(), fits, "another network");
        assert!(Posterior::<f32>::load(folder.path()).is_err(), "another precision");
    }
    forge(folder.path(), "\"left0\"", "\"left9\"");
    assert!(load().contains("folder.json"));
    std::fs::write(folder.path().join("folder.json"), "{").expect("a file");
    assert!(load().contains("folder.json"));
}
