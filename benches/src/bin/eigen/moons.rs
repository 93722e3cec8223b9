//! Two moons and circles through the kernels of random networks (NeuralEF, section 4.2.1 and figure 3).

use crate::tools::{Fallible, linear_probe};
use crate::{Options, Outcome};
use mercer_data::{Dataset, Existing, shuffled, synthetic};
use mercer_kernel::MonteCarlo;
use mercer_kernel::infinite::{Of, Rule};
use mercer_net::arch::{Activation, Mlp};
use mercer_net::progress::Silent;
use mercer_report::{Figure, Panel};
use mercer_spectral::learnt::{Batches, Learn, Learnt, Matrices, Method, Settings, side_by_side};
use mercer_spectral::{Comparison, Eigenfunctions, Solver, Spectrum};
use ndarray::{Array2, s};
use std::time::Instant;

/// Takes `--networks S` and `--samples N`.
pub(crate) fn projections(options: &Options) -> Outcome {
    let (samples, networks) = (options.number("--samples", 1000)?, options.number("--networks", 10_000)?);
    println!("{samples} points, kernels of MLPs 2-16-16-1 by {networks} random networks; 3 of 6 functions, 2000 steps");
    println!(
        "| data | kernel | seconds: kernel, training | linear classifier on x | on 3 ψ | cosines with the exact ones |"
    );
    println!("|---|---|---:|---:|---:|---|");
    let sets = [
        ("two moons", synthetic::two_moons(samples, 0.1, options.seed)?, Activation::Relu),
        ("circles", synthetic::circles(samples, 0.5, 0.05, options.seed)?, Activation::Erf),
    ];
    let mut figure = Figure::new("Projections by the first eigenfunctions of MLP-GP kernels").columns(2);
    for (name, (points, classes), activation) in sets {
        let start = Instant::now();
        let x = points.mapv(|x| x as f32);
        let network = Mlp::new(2, &[16, 16], 1).activation(activation).build(0)?;
        // Weights of variance 2/width, biases of variance 1: appendix B.
        let kernel = MonteCarlo::<f32>::new(
            &network,
            &[vec![2]],
            &Rule::ntk(2f64.sqrt(), 1.0),
            Of::Nngp,
            networks,
            options.seed,
        )?;
        let mut moments = kernel.start(samples);
        kernel.extend(&mut moments, 0..networks, &[x.as_slice().ok_or("layout")?], samples)?;
        let gram = Array2::from_shape_vec((samples, samples), moments.mean().to_vec())?;
        let gram = (&gram + &gram.t()) * 0.5;
        let seconds = start.elapsed().as_secs_f64();
        let truth = Spectrum::of_matrix(gram.mapv(f64::from).view(), 3, Solver::Lanczos)?;
        let start = Instant::now();
        let found = learn(&x, gram, options.seed)?;
        let training = start.elapsed().as_secs_f64();
        let data = [Dataset::from_array(name, x.view().into_dyn())?];
        let psi = found.eval_data(&data, &Silent::default())?;
        let compared = Comparison::new(found.values().view(), psi.mapv(f64::from).view(), &truth)?;
        // Half of the points train, in an order that has nothing to do with their classes.
        let (order, half) = (shuffled(samples, options.seed, 0), samples / 2);
        let labels: Vec<usize> = order.iter().map(|&i| classes.indices()[i]).collect();
        let probe = |features: &Array2<f32>| -> Fallible<f64> {
            let features = features.select(ndarray::Axis(0), &order);
            let (one, two) = (features.slice(s![..half, ..]), features.slice(s![half.., ..]));
            linear_probe((one, &labels[..half]), (two, &labels[half..]))
        };
        println!(
            "| {name} | {activation} | {seconds:.1}, {training:.1} | {:.1} % | {:.1} % | {} |",
            100.0 * probe(&x)?,
            100.0 * probe(&psi)?,
            compared.cosines.iter().map(|c| format!("{c:.4}")).collect::<Vec<_>>().join(" ")
        );
        let of_class = |class: usize| {
            let own = psi.rows().into_iter().zip(classes.indices()).filter(move |(_, own)| **own == class);
            own.map(|(row, _)| [0, 1, 2].map(|j| f64::from(row[j]))).collect::<Vec<_>>()
        };
        let sets = (0..2).map(|class| (format!("class {class}"), of_class(class)));
        figure = figure.panel(Panel::scatter3(format!("{name} ({activation})"), ["ψ₁", "ψ₂", "ψ₃"], sets));
    }
    let path = options.output.join("moons.svg");
    figure.write(&path, Existing::Replace)?;
    println!("\n{}", path.display());
    Ok(())
}

/// The first three of six functions, by NeuralEF and its finish.
fn learn(x: &Array2<f32>, gram: Array2<f32>, seed: u64) -> Fallible<Eigenfunctions<f32>> {
    let data = [Dataset::from_array("points", x.view().into_dyn())?];
    let mlp = |seed: u64| Mlp::new(2, &[32, 32], 1).activation(Activation::SinCos).build(seed);
    let networks = (0..6).map(|index| mlp(1000 * seed + index)).collect::<Result<Vec<_>, _>>()?;
    let mut kernel = Matrices::new(gram, 1)?;
    let mut batches = Batches::new(&data, &mut kernel, 256, seed)?;
    let settings = Settings::new(Method::NeuralEf).components(3);
    let mut learnt: Learnt<f32> = Learn::new(settings).run(side_by_side(&networks)?, &mut batches)?;
    Ok(learnt.after.swap_remove(0))
}
