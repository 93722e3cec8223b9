//! Every optimiser against `torch.optim`; see `fixtures/optimisers.py`.

use mercer_net::train::{Optimiser, OptimiserState};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Fixture {
    start: Vec<Vec<f64>>,
    rates: Vec<f64>,
    gradients: Vec<Vec<Vec<f64>>>,
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    optimiser: Optimiser,
    after: Vec<Vec<Vec<f64>>>,
}

#[test]
fn steps_are_those_of_torch() {
    let fixture: Fixture = serde_json::from_str(include_str!("../../fixtures/optimisers.json")).unwrap();
    assert_eq!(fixture.cases.len(), 10);
    for (name, case) in &fixture.cases {
        case.optimiser.check().unwrap();
        let mut parameters = fixture.start.clone();
        let mut state = OptimiserState::new(&case.optimiser, 5);
        for (step, (gradients, after)) in fixture.gradients.iter().zip(&case.after).enumerate() {
            let flat = gradients.concat();
            case.optimiser.update(&mut state, &mut parameters, &flat, fixture.rates[step]);
            for (ours, torch) in parameters.concat().iter().zip(after.concat()) {
                let error = (ours - torch).abs() / torch.abs().max(1.0);
                assert!(error < 1e-12, "{name}, step {step}: {ours} against {torch}");
            }
        }
    }
}

#[test]
fn bad_settings_are_refused_by_name() {
    let text = |optimiser: Optimiser| optimiser.check().unwrap_err().to_string();
    assert!(text(Optimiser::Sgd { momentum: 1.5, nesterov: false, weight_decay: 0.0 }).starts_with("momentum"));
    assert!(text(Optimiser::Sgd { momentum: 0.0, nesterov: true, weight_decay: 0.0 }).contains("nesterov"));
    assert!(text(Optimiser::Adam { betas: [0.9, 1.0], epsilon: 1e-8, weight_decay: 0.0 }).starts_with("betas"));
    assert!(text(Optimiser::Gd { weight_decay: -1.0 }).starts_with("weight_decay"));
    let unknown = toml::from_str::<Optimiser>("name = \"adam\"\nbeta = 0.9").unwrap_err().to_string();
    assert!(unknown.contains("beta") && unknown.contains("betas"), "{unknown}");
    let unknown = toml::from_str::<Optimiser>("name = \"adamm\"").unwrap_err().to_string();
    assert!(unknown.contains("adamm") && unknown.contains("adagrad"), "{unknown}");
}
