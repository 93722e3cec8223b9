//! What is saved is what is loaded.

use super::nets::{STRUCTURES, diabetes, iris};
use mercer_data::Existing;
use mercer_kernel::sketch::Method;
use mercer_learn::laplace::{Laplace, Structure};
use mercer_run::Context;

#[test]
fn a_saved_machine_predicts_the_same() {
    let case = iris();
    let sketch = Structure::Sketch { method: Method::SparseJl { nonzeros: 1 }, k: 32, seed: 1, residual: true };
    for structure in STRUCTURES.map(|(_, structure)| structure).into_iter().chain([sketch]) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut machine = case.fit(structure);
        machine.set_prior_precision(0.7).expect("a precision");
        machine.save(folder.path(), Existing::Refuse).expect("saves");
        assert!(machine.save(folder.path(), Existing::Refuse).is_err(), "nothing is overwritten");
        let loaded = Laplace::<f64>::load(folder.path(), &case.network).expect("loads");
        assert_eq!(loaded.settings(), machine.settings());
        let predict = |machine: &Laplace<f64>| machine.predict(&case.test, &Context::new()).expect("predicts");
        assert_eq!(predict(&loaded).covariance, predict(&machine).covariance, "{structure}");
        let evidence = |machine: &Laplace<f64>| machine.log_evidence(2.0).expect("an evidence");
        assert_eq!(evidence(&loaded), evidence(&machine));
    }
}

#[test]
fn broken_folders_are_refused() {
    let case = iris();
    let folder = tempfile::tempdir().expect("a folder");
    let load = || Laplace::<f64>::load(folder.path(), &case.network).expect_err("refused").to_string();
    assert!(load().contains("machine.json"));
    case.fit(Structure::Kronecker).save(folder.path(), Existing::Refuse).expect("saves");
    let other = Laplace::<f64>::load(folder.path(), &diabetes().network);
    assert!(other.is_err(), "another network");
    assert!(Laplace::<f32>::load(folder.path(), &case.network).is_err(), "another precision");
    std::fs::remove_file(folder.path().join("left0.npy")).expect("a file");
    assert!(load().contains("left0.npy"));
    std::fs::write(folder.path().join("machine.json"), "{").expect("a file");
    assert!(load().contains("machine.json"));
}
