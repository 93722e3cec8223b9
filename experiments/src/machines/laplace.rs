//! Posteriors of ResNets on CIFAR-10.

use crate::experiment::{Experiment, Needs};
use crate::explain::cifar::{crops, network, part};
use crate::options::Options;
use crate::report::{Cell, Drawing, Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::job::UncertaintyJob;
use mercer::job::uncertainty::{PosteriorDraws, PosteriorMethod, PriorChoice};
use mercer::learn::laplace::entropies;
use mercer::report::{Figure, Panel};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "laplace-cifar10",
    group: "Machines",
    title: "Posteriors of residual networks",
    paper: "Deng et al. 2022, NeuralEF, arXiv 2205.00165",
    claim: "The linearised Laplace approximation through ten eigenfunctions of the tangent kernel is better calibrated than the network and \
        than Kronecker-factored, diagonal and last-layer posteriors, with a likelihood like the best of these (table 2); its entropies \
        tell house numbers from CIFAR-10 (figure 6).",
    published: "in the table; figure 6 is of a ResNet-110.",
    setting: "A ResNet-20 of 91.7 %, because the paper's networks are not public; `--nets DIR` adds a ResNet-56 from that folder. They \
        differ in more than training: MAP's likelihood is another. The curvature is of `--samples` training images, scaled to 50,000 where \
        it is of fewer. 2,000 test images choose the temperature and, where the prior is *validation*, its precision; the other 8,000 are \
        scored; the paper scores all 10,000. ECE in fifteen bins. Weight decay 1e-4, as in the paper, is a precision δ of 5. The paper \
        learns its functions with NeuralEF, in half a day; ours are Nyström's, from `--landmarks` training images. It averages 256 draws and \
        multiplies their noise by 20, an adjustment that has no place in the posterior: the row *256 draws, noise × 20* does the same, \
        all others use probit's closed form and the posterior's own variance. *With the rest* adds the prior's variance in the \
        directions that the functions miss. The paper does not print the prior of its baselines; ours are \
        under both priors. `--more-data DIR` names a folder with `svhn`, an npz file of crops, for the last two columns; ours has 288, the paper all \
        of SVHN's test set, and AUPR depends on that number. Peak memory is that of the process during the job. A search for the \
        prior predicts the validation images once for every candidate.",
    cost: 40_000,
    needs: &[Needs::Cifar10],
    options: &["samples", "validation", "test", "landmarks", "functions", "sketch", "nets", "more-data", "only"],
    threads: 0,
    run,
};

/// The training set that samples stand for.
const ALL: usize = 50_000;

/// The weight decay of the paper.
const DECAY: f64 = 1e-4;

/// NLL and ECE of a ResNet-20 and a ResNet-56 in the paper.
type Published = [Option<[f64; 2]>; 2];

const MAP: Published = [Some([0.357, 0.049]), Some([0.336, 0.050])];

/// A row of the table.
struct Posterior {
    name: String,
    method: PosteriorMethod,
    prior: PriorChoice,
    draws: Option<PosteriorDraws>,
    published: Published,
}

impl Posterior {
    /// With the prior of the paper.
    fn new(name: impl Into<String>, method: PosteriorMethod) -> Self {
        Self { name: name.into(), method, prior: PriorChoice::WeightDecay(DECAY), draws: None, published: [None; 2] }
    }

    fn published(self, first: [f64; 2], second: [f64; 2]) -> Self {
        Self { published: [Some(first), Some(second)], ..self }
    }

    /// The same with a prior that predicts the validation images best.
    fn validated(&self) -> Self {
        let (name, method) = (self.name.clone(), self.method.clone());
        Self { prior: PriorChoice::Validation, ..Self::new(name, method) }
    }

    fn prior(&self) -> &'static str {
        self.prior.name()
    }
}

/// All rows.
fn posteriors(options: &Options) -> Fallible<Vec<Posterior>> {
    let (landmarks, sketch) = (options.number("landmarks", 64, 4)?, options.number("sketch", 1024, 16)?);
    let numbers = options.list("functions", &[10, 64], &[3])?;
    let mut found = Vec::new();
    let layers = [
        Posterior::new("last layer, full", PosteriorMethod::LastLayerFull).published([0.264, 0.026], [0.231, 0.024]),
        Posterior::new("last layer, Kronecker", PosteriorMethod::LastLayerKron),
        Posterior::new("diagonal", PosteriorMethod::Diag).published([0.934, 0.480], [1.606, 0.712]),
        Posterior::new("Kronecker", PosteriorMethod::Kron).published([0.906, 0.468], [1.576, 0.707]),
        Posterior::new(
            format!("sketch, K = {sketch}"),
            PosteriorMethod::Sketch { sketch: format!("sjlt:{sketch}"), residual: false },
        ),
    ];
    for own in layers {
        let validated = own.validated();
        found.extend([own, validated]);
    }
    for (at, components) in numbers.into_iter().enumerate() {
        let method = |residual| PosteriorMethod::Eigen { components, landmarks, residual };
        let name = format!("eigenfunctions, k = {components}");
        if at == 0 {
            let draws = Some(PosteriorDraws { count: 256, noise_scale: 20.0 });
            let own = Posterior::new(format!("{name}, 256 draws, noise × 20"), method(false));
            found.push(Posterior { draws, ..own.published([0.277, 0.016], [0.234, 0.012]) });
        }
        found.push(Posterior::new(name.clone(), method(false)));
        found.push(Posterior::new(format!("{name}, with the rest"), method(true)).validated());
    }
    Ok(found)
}

fn run(options: &Options) -> Fallible<Report> {
    let work = Work::new(options)?;
    let samples = options.number("samples", ALL, 40)?;
    let (validation, test) = (options.number("validation", 2000, 20)?, options.number("test", 8000, 20)?);
    let folder = options.set(Needs::Cifar10)?;
    let train = part(&work, &folder, true, 0..samples)?;
    let chosen = part(&work, &folder, false, 0..validation)?;
    let scored = part(&work, &folder, false, validation..validation + test)?;
    let unusual = options.more("svhn").map(|folder| crops(&work, &folder)).transpose()?;
    let mut networks = vec![("ResNet-20", network())];
    networks.extend(options.path("nets").map(|nets| ("ResNet-56", nets.join("cifar10_resnet56.onnx"))));
    let (mut tables, mut notes, mut holds, mut figure) = (Vec::new(), Vec::new(), None, Figure::new("").columns(3));
    if unusual.is_none() {
        notes.push("There was no folder svhn, so nothing is said about house numbers.".to_owned());
    }
    let rows = posteriors(options)?;
    for (at, (name, net)) in networks.into_iter().enumerate() {
        let wanted = |own: &&Posterior| options.wants(&format!("{name}, {}, {}", own.name, own.prior()));
        let (mut table, mut ours, mut map) = (table(name), None, None);
        for own in rows.iter().filter(wanted) {
            let job = UncertaintyJob {
                method: own.method.clone(),
                prior: own.prior,
                draws: own.draws,
                seed: options.seed,
                train_size: (samples < ALL).then_some(ALL),
                test_labels: scored.labels.clone(),
                ood: unusual.iter().cloned().collect(),
                validation: chosen.data.clone(),
                validation_labels: chosen.labels.clone(),
                ..UncertaintyJob::new(&net, train.clone(), scored.data.clone())
            };
            let done = work.run(&format!("{}-{}", name.to_lowercase(), own.method.name()), &job)?;
            if map.is_none() {
                table.push(line(("MAP", ""), &done, "map", MAP[at])?);
                let temperature = done.number("/chosen/temperature")?;
                table.push(line((&format!("MAP, temperature {temperature:.2}"), "validation"), &done, "scaled", None)?);
                figure = histogram(figure, &format!("{name}, MAP"), &done, "map_")?;
                map = Some(done.number("/map/ece")?);
            }
            table.push(line((&own.name, own.prior()), &done, "laplace", own.published[at])?);
            let is_papers = matches!(own.method, PosteriorMethod::Eigen { .. }) && own.draws.is_some();
            if is_papers || matches!(own.method, PosteriorMethod::LastLayerFull) {
                figure = histogram(figure, &format!("{name}, {}, {}", own.name, own.prior()), &done, "laplace_")?;
            }
            if is_papers {
                ours = Some(done.number("/laplace/ece")?);
            }
        }
        if let (Some(ours), Some(map)) = (ours, map) {
            holds = Some(holds.unwrap_or(true) && ours < map);
        }
        if map.is_some() {
            tables.push(table);
        }
    }
    let figures = match options.quick || unusual.is_none() {
        true => Vec::new(),
        false => vec![Drawing {
            file: "laplace-entropies.svg",
            caption: "Entropies of predictions on test images of CIFAR-10 and on house numbers, as in figure 6",
            figure,
        }],
    };
    Ok(Report { tables, figures, notes, holds, earlier: work.earlier() })
}

fn table(name: &str) -> Table {
    let mut table = Table::new(format!("{name}:")).column("posterior", Format::Plain).column("prior", Format::Plain);
    table = table.column("δ", Format::Scientific(1)).column("NLL", Format::Fixed(3));
    table = table.published("NLL", Format::Fixed(3)).column("ECE", Format::Fixed(3));
    table = table.published("ECE", Format::Fixed(3)).column("accuracy", Format::Percent(2));
    for name in ["AUROC", "AUPR"] {
        table = table.column(name, Format::Fixed(3));
    }
    table.column("s", Format::Fixed(0)).column("peak GiB", Format::Fixed(2))
}

/// A row from the scores of the network alone, of the network at its temperature, or of the posterior.
fn line((name, prior): (&str, &str), done: &Done, scores: &str, published: Option<[f64; 2]>) -> Fallible<Vec<Cell>> {
    let number = |key: &str| done.number(&format!("/{scores}/{key}"));
    let is_posterior = scores == "laplace";
    let own = |value: f64| is_posterior.then_some(value);
    let mut cells = row![name, prior, own(done.number("/prior_precision")?)];
    for (at, key) in ["nll", "ece"].into_iter().enumerate() {
        cells.extend([Some(number(key)?), published.map(|both| both[at])].map(Cell::from));
    }
    cells.push(number("accuracy")?.into());
    cells.extend(["auroc", "aupr"].map(|key| Cell::from(number(key).ok())));
    cells.extend([own(done.seconds), own(done.peak() / (1 << 30) as f64)].map(Cell::from));
    Ok(cells)
}

/// Figure 6: how certain predictions are, on both kinds of images.
fn histogram(figure: Figure, title: &str, done: &Done, prefix: &str) -> Fallible<Figure> {
    const BINS: usize = 40;
    if done.number("/map/auroc").is_err() {
        return Ok(figure);
    }
    let own = |name: &str| -> Fallible<Vec<f64>> { Ok(entropies(done.matrix(name)?.view()).to_vec()) };
    let sets = [
        ("CIFAR-10", own(&format!("{prefix}probabilities.npy"))?),
        ("SVHN", own(&format!("ood_{prefix}probabilities.npy"))?),
    ];
    Ok(figure.panel(Panel::histogram(title, "entropy", BINS, sets)))
}
