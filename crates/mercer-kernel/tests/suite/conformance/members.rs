//! The table of kernels. To test another one, add it here: it inherits all checks of `suite.rs`.

use super::jacobian::Tangents;
use super::networks::Case;
use mercer_kernel::empirical::layer_names;
use mercer_kernel::infinite::{Limit, LimitKind, Rule};
use mercer_kernel::montecarlo::Ensemble;
use mercer_kernel::sketch::{Spec, parse};
use mercer_kernel::{
    Activations, Classic, Conjugate, Directions, Features, Kernel, KernelError, MonteCarlo, Normalised, Ntk, NtkForm,
    NtkKind, Product, RandomNetworks, Real, Scaled, Selection, Sketch, Sum,
};
use mercer_net::arch::Initialisation;
use mercer_net::graph::Origin;
use mercer_net::network::find;
use std::sync::Arc;

/// A kernel of a network, and what is known of it.
pub(crate) struct Member<T> {
    pub(crate) name: String,
    pub(crate) kernel: Arc<dyn Kernel<T>>,
    /// The tangent kernel that it is.
    pub(crate) tangents: Option<Tangents>,
    /// By how much two ways to the same value may differ, relative to the largest that it can be.
    pub(crate) close: f64,
    /// By how much single precision may differ from double, in relative Frobenius norm.
    pub(crate) single: f64,
}

/// Two ways differ by the order of some ten thousand terms: `√10⁴ ε ≈ 2·10⁻¹⁴`, more where terms cancel. This leaves a factor
/// of a hundred.
pub(crate) const CLOSE: f64 = 2e-12;

/// Rounding of some ten thousand terms, twice.
const SINGLE: f64 = 2e-5;

/// All kernels of a network.
pub(crate) fn members<T: Real>(case: &Case) -> Vec<Member<T>> {
    let mut table = tangent_kernels(case);
    table.extend(feature_maps(case));
    table.extend(combinations(case));
    table.extend(classic_kernels(case));
    table.extend(of_distributions(case));
    table
}

fn member<T: Real>(name: &str, kernel: impl Kernel<T> + 'static, tangents: Option<Tangents>) -> Member<T> {
    Member { name: name.to_owned(), kernel: Arc::new(kernel), tangents, close: CLOSE, single: SINGLE }
}

fn ntk<T: Real>(case: &Case, kind: NtkKind) -> Ntk<T> {
    Ntk::new(&case.network, &case.shapes(), kind).expect("a kernel")
}

fn tangent_kernels<T: Real>(case: &Case) -> Vec<Member<T>> {
    let c = case.n_outputs();
    let unit = |at: usize| Tangents::all(c, false).rows[at].clone();
    let (full, trace) = (Tangents::all(c, true), Tangents::all(c, false));
    let scalar = |row: Vec<f64>| Tangents { rows: vec![row], ..Tangents::all(c, false) };
    let of = |kind, selection: &Selection| {
        Ntk::with_selection(&case.network, &case.shapes(), kind, selection).expect("a kernel")
    };
    let mut table = vec![
        member("full", ntk(case, NtkKind::Full), Some(full.clone())),
        member("trace", ntk(case, NtkKind::Trace), Some(trace.clone())),
        member("pseudo", ntk(case, NtkKind::Pseudo), Some(scalar(vec![1.0 / (c as f64).sqrt(); c]))),
        member("logit", ntk(case, NtkKind::Logit(c - 1)), Some(scalar(unit(c - 1)))),
        member("trace by layer", ntk(case, NtkKind::Trace).by_layer(), Some(trace.clone())),
        member("full by layer", ntk(case, NtkKind::Full).by_layer(), Some(full.clone())),
    ];
    // All pairs of hundreds of positions take minutes and show nothing that dozens do not.
    let positions = ntk::<T>(case, NtkKind::Trace).choices().iter().map(|choice| choice.positions).max();
    let forms = if positions > Some(100) { &[NtkForm::Explicit][..] } else { &[NtkForm::Explicit, NtkForm::Factored] };
    for &form in forms {
        table.push(member(&format!("full {form:?}"), ntk(case, NtkKind::Full).with_form(form), Some(full.clone())));
        table.push(member(&format!("trace {form:?}"), ntk(case, NtkKind::Trace).with_form(form), Some(trace.clone())));
        let pseudo = ntk(case, NtkKind::Pseudo).with_form(form).by_layer();
        let tangents = scalar(vec![1.0 / (c as f64).sqrt(); c]);
        table.push(member(&format!("pseudo {form:?} by layer"), pseudo, Some(tangents)));
    }
    let chosen = vec![c - 1, 0];
    let selection = Selection { components: Some(chosen.clone()), ..Selection::default() };
    let rows = vec![unit(c - 1), unit(0)];
    table.push(member("components", of(NtkKind::Full, &selection), Some(Tangents { rows, ..full.clone() })));
    let signs: Vec<f64> = (0..c).map(|at| if at % 2 == 0 { 1.0 } else { -0.5 }).collect();
    let selection = Selection { combine: Some(signs.clone()), ..Selection::default() };
    table.push(member("combine", of(NtkKind::Trace, &selection), Some(scalar(signs))));
    let layers = layer_names(&case.network.graph(&case.shapes()).expect("a graph"));
    for (name, layer) in [("first layer", layers.first()), ("last layer", layers.last())] {
        let layer = layer.expect("a layer").clone();
        let selection = Selection { parameters: vec![layer.clone()], ..Selection::default() };
        table.push(member(
            name,
            of(NtkKind::Trace, &selection),
            Some(Tangents { layer: Some(layer), ..trace.clone() }),
        ));
    }
    table
}

/// Names of two values on the way to the output.
pub(crate) fn two_nodes(case: &Case) -> Vec<String> {
    let graph = case.network.graph(&case.shapes()).expect("a graph");
    let named = |value: &&mercer_net::graph::Value| {
        let found = find(&graph, &value.name).is_ok_and(|id| std::ptr::eq(graph.value(id), *value));
        found && value.meta.is_batched() && matches!(value.origin, Origin::Node(_))
    };
    let names: Vec<&str> = graph.values().iter().filter(named).map(|value| value.name.as_str()).collect();
    vec![names[names.len() / 3].to_owned(), names[names.len() * 2 / 3].to_owned()]
}

fn activations<T: Real>(case: &Case) -> Features<Activations<T>> {
    let nodes = two_nodes(case);
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    Features(Activations::new(&case.network, &case.shapes(), &nodes).expect("features"))
}

fn feature_maps<T: Real>(case: &Case) -> Vec<Member<T>> {
    let directions = |kind, selection: &Selection| {
        Directions::new(&case.network, &case.shapes(), kind, selection, 5, 7).expect("directions")
    };
    let all = Selection::default();
    let combine = Selection { combine: Some(vec![0.5; case.n_outputs()]), ..Selection::default() };
    // A difference of two values loses half of the digits, and the order of sums shows in the others.
    let step = T::epsilon().wide().sqrt();
    let differences = directions(NtkKind::Trace, &all).by_differences(step).expect("a step");
    let mut table = vec![
        member("activations", activations(case), None),
        member("directions, trace", Features(directions(NtkKind::Trace, &all)), None),
        member("directions, signs", Features(directions(NtkKind::Pseudo, &all).signs()), None),
        member("directions, full", Features(directions(NtkKind::Full, &all)), None),
        member("directions, combine", Features(directions(NtkKind::Full, &combine)), None),
        Member { close: 1e-6, single: 0.05, ..member("differences", Features(differences), None) },
    ];
    for (at, method) in
        ["gaussian:6", "rademacher:6", "sjlt:6", "srht:6", "khatri-rao:6", "kronecker:6"].iter().enumerate()
    {
        let (sketch, k) = parse(method).expect("a method");
        let kind = if at % 2 == 0 { NtkKind::Trace } else { NtkKind::Pseudo };
        let spec = Spec { total: at == 4, seed: 3, ..Spec::new(sketch, k, kind) };
        let map = Sketch::from_spec(&case.network, &case.shapes(), &spec).expect("a sketch");
        table.push(member(method, Features(map), None));
    }
    if let Ok(conjugate) = Conjugate::new(&case.network, &case.shapes(), None) {
        table.push(member("conjugate", Features(conjugate), None));
    }
    table
}

/// Kernels of the data alone; lengthscales fit their size, so that the matrix is not the identity.
fn classic_kernels<T: Real>(case: &Case) -> Vec<Member<T>> {
    let size = (case.size() as f64).sqrt();
    let each = (0..case.size()).map(|at| (size * (1.0 + at as f64 / 1e3)).to_string()).collect::<Vec<_>>().join(",");
    [
        "linear()".to_owned(),
        "polynomial(degree=2, scale=0.1)".to_owned(),
        format!("rbf(lengthscale=[{each}])"),
        format!("laplacian(lengthscale={})", case.size()),
        format!("matern12(lengthscale={size})"),
        format!("matern32(lengthscale={size})"),
        format!("matern52(lengthscale={size})"),
        format!("rational_quadratic(lengthscale={size}, alpha=2)"),
        format!("periodic(lengthscale={size}, period=7)"),
        "cosine()".to_owned(),
        "arccosine(order=0)".to_owned(),
        "arccosine(order=1)".to_owned(),
        "arccosine(order=2)".to_owned(),
        format!("(0.5 + 2*rbf(lengthscale={size}))*cosine() + 0.1*linear()"),
    ]
    .iter()
    .map(|text| {
        let expression = text.parse().expect("an expression");
        let name: String = text.chars().take(40).collect();
        member(&name, Classic::new(&expression, case.size()).expect("a kernel"), None)
    })
    .collect()
}

fn combinations<T: Real>(case: &Case) -> Vec<Member<T>> {
    let c = case.n_outputs();
    let trace = || Arc::new(ntk(case, NtkKind::Trace)) as Arc<dyn Kernel<T>>;
    let full = || Arc::new(ntk(case, NtkKind::Full)) as Arc<dyn Kernel<T>>;
    let layers = Arc::new(ntk(case, NtkKind::Trace).by_layer());
    let normalised = |full| Some(Tangents { normalised: true, ..Tangents::all(c, full) });
    let embedding = || Arc::new(activations(case)) as Arc<dyn Kernel<T>>;
    // Half of the kernel twice.
    let half = |kernel| Arc::new(Scaled::new(kernel, T::narrow(0.5)).expect("a factor")) as Arc<dyn Kernel<T>>;
    let twice = Sum::new(vec![half(full()), half(full())]).expect("a sum");
    let both = Sum::new(vec![trace(), embedding()]).expect("a sum");
    let nested = Product::new(vec![Arc::new(both.clone()), Arc::new(Normalised::new(trace()))]).expect("a product");
    vec![
        member("sum", twice, Some(Tangents::all(c, true))),
        member("sum of two", both, None),
        member("product", Product::new(vec![trace(), embedding()]).expect("a product"), None),
        member("product of a sum", nested, None),
        member("scaled by layer", Scaled::new(layers.clone(), T::narrow(3.0)).expect("a factor"), None),
        member("normalised trace", Normalised::new(trace()), normalised(false)),
        Member {
            single: SINGLE * spread(&*full(), case),
            ..member("normalised full", Normalised::new(full()), normalised(true))
        },
        member("normalised by layer", Normalised::new(layers), None),
        member("normalised embedding", Normalised::new(embedding()), None),
    ]
}

/// Kernels of the distribution of weights: limits, where there are any, and means over a few random networks.
fn of_distributions<T: Real>(case: &Case) -> Vec<Member<T>> {
    let rules = [Rule::initialisation(Initialisation::Standard), Rule::ntk(1.2, 0.3)];
    let mean = |rule: &Rule, of| {
        MonteCarlo::<T>::new(&case.network, &case.shapes(), rule, of, 3, 5)
            .expect("a mean")
            .with_errors()
            .expect("errors")
    };
    let ensemble = Ensemble::new(&case.network, &case.shapes(), &rules[0], 5).expect("networks");
    let networks = RandomNetworks::new(Arc::new(ensemble), 3).expect("networks");
    let normalised = Normalised::new(Arc::new(mean(&rules[1], LimitKind::Nngp)));
    let mut table = vec![
        member("random networks", Features(networks), None),
        member("mean of nngp", mean(&rules[1], LimitKind::Nngp), None),
        member("mean of nngp, streaming", mean(&rules[0], LimitKind::Nngp).streaming(), None),
        member("mean of ntk", mean(&rules[1], LimitKind::Ntk), None),
        member("mean of ntk, streaming", mean(&rules[0], LimitKind::Ntk).streaming(), None),
        member("normalised mean", normalised, None),
    ];
    for (rule, of) in rules.iter().zip([LimitKind::Nngp, LimitKind::Ntk]) {
        match Limit::of_network(&case.network, &case.shapes(), rule, of) {
            Ok(limit) => table.push(member(&format!("limit {of:?}"), limit, None)),
            Err(KernelError::NoLimit { .. }) => {}
            Err(error) => panic!("{}: {error}", case.name),
        }
    }
    table
}

/// How much longer the longest gradient is than the shortest: rounding is relative to the former, normalisation to the latter.
fn spread<T: Real>(kernel: &dyn Kernel<T>, case: &Case) -> f64 {
    let block = kernel.prepare(&[&case.rows::<T>(0..case.samples)], case.samples).expect("prepares");
    let diagonal = kernel.diagonal(&block);
    let (most, least) = diagonal
        .iter()
        .fold((0.0, f64::INFINITY), |(most, least): (f64, f64), x| (most.max(x.wide()), least.min(x.wide())));
    (most / least).sqrt()
}
