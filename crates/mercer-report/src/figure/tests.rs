//! Figures as a whole.

use super::*;

fn count(svg: &str, what: &str) -> usize {
    svg.matches(what).count()
}

/// Every element is closed in order, and no attribute contains NaN.
pub(super) fn well_formed(svg: &str) {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        assert_eq!(count(tag, "\"") % 2, 0, "{tag}");
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
    // Images are text in which anything may occur.
    let plain = svg.lines().filter(|line| !line.starts_with("<image"));
    plain.for_each(|line| assert!(!line.contains("NaN") && !line.contains("inf"), "{line}"));
}

#[test]
fn escapes_text_and_rounds_numbers() {
    let svg = Figure::new("a < b & \"c\" \u{1}").panel(Panel::new("<script>")).to_svg();
    well_formed(&svg);
    assert!(svg.contains("a &lt; b &amp; &quot;c&quot; \u{fffd}") && svg.contains("&lt;script&gt;"));
    let numbers = [(0.0, "0"), (-0.001, "0"), (1.5, "1.5"), (-2.345, "-2.35"), (1.005e9, "1000000"), (0.07, "0.07")];
    numbers.into_iter().for_each(|(x, text)| assert_eq!(svg::number(x), text));
}

#[test]
fn lines_have_gaps_where_nothing_can_be_drawn() {
    let points = [(1.0, 1.0), (2.0, f64::NAN), (3.0, 10.0), (4.0, 100.0), (5.0, -1.0), (f64::INFINITY, 1.0)];
    let log = Panel::new("").y(Axis::log("y")).series(Series::line("", points));
    let figure = Figure::new("").panel(log);
    assert_eq!(figure.skipped(), 3);
    let svg = figure.to_svg();
    well_formed(&svg);
    assert_eq!(count(&svg, "<path"), 1, "one run of two points");
    assert_eq!(count(&svg, "<circle"), 1, "and one alone");
    let linear = Figure::new("").panel(Panel::new("").series(Series::line("", points)));
    assert_eq!(linear.skipped(), 2);
}

#[test]
fn positions_are_where_they_should_be() {
    // An area from 0 to 10 both ways: the middle of the range is the middle of the area.
    let axis = || Axis::linear("").range(0.0, 10.0);
    let middle = [(0.0, 0.0), (5.0, 5.0), (10.0, 10.0)];
    let svg = Figure::new("").panel(Panel::new("").x(axis()).y(axis()).series(Series::line("", middle))).to_svg();
    let area = svg.lines().find(|line| line.starts_with("<svg x=")).unwrap();
    let attribute = |name: &str| {
        let at = area.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
        area[at..].split('"').next().unwrap().parse::<f64>().unwrap()
    };
    let (wide, high) = (attribute("width"), attribute("height"));
    let path = format!(
        "d=\"M0 {}L{} {}L{} 0\"",
        svg::number(high),
        svg::number(wide / 2.0),
        svg::number(high / 2.0),
        svg::number(wide)
    );
    assert!(svg.contains(&path), "{path} in {svg}");
}

#[test]
fn errors_and_bands_are_drawn() {
    let points = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)];
    let panel = Panel::new("")
        .y(Axis::log("y"))
        .series(Series::marked_line("e", points).errors([0.5, 3.0, f64::NAN]))
        .series(Series::line("b", points).band([(0.5, 2.0), (0.0, 3.0), (f64::NAN, 4.0)]).dashed());
    let svg = Figure::new("").panel(panel).to_svg();
    well_formed(&svg);
    assert_eq!(count(&svg, "stroke-width=\"1.2\""), 6, "two error bars of three lines");
    assert_eq!(count(&svg, "fill-opacity=\"0.18\""), 1);
    assert!(svg.contains("stroke-dasharray"));
}

#[test]
fn histograms_are_densities() {
    let sets = [("few", vec![0.0, 1.0, 1.0, 4.0, f64::NAN]), ("many", vec![2.0; 100])];
    let panel = Panel::histogram("h", "x", 4, sets);
    for (series, heights) in panel.series.iter().zip([[0.25, 0.5, 0.0, 0.25], [0.0, 0.0, 1.0, 0.0]]) {
        let found: Vec<f64> = series.points.iter().map(|point| point.1).collect();
        assert_eq!(found, heights);
    }
    let figure = Figure::new("").panel(panel);
    assert_eq!(figure.skipped(), 1);
    well_formed(&figure.to_svg());
    for hard in [vec![], vec![3.0], vec![f64::NAN], vec![1e300, -1e300], vec![0.0, 0.0]] {
        well_formed(&Figure::new("").panel(Panel::histogram("h", "x", 10, [("s", hard)])).to_svg());
    }
}

#[test]
fn bars_reliability_and_space() {
    let bars = Panel::bars(
        "b",
        ["a", "a rather long name", "another long name"],
        Axis::linear("y"),
        [("one", vec![1.0, -2.0, 3.0]), ("two", vec![f64::NAN, 1.0, 2.0])],
    );
    let bins =
        [0.0, 0.5].map(|from| Bin { from, to: from + 0.5, confidence: from + 0.3, accuracy: from + 0.2, count: 377 });
    let empty = Bin { count: 0, accuracy: f64::NAN, confidence: f64::NAN, ..bins[0] };
    let reliability = Panel::reliability("r", &[bins[0], bins[1], empty]);
    let points = |shift: f64| (0..5).map(move |at| [f64::from(at), shift, -f64::from(at)]);
    let space = Panel::scatter3("s", ["u", "v", "w"], [("a", points(0.0)), ("b", points(1.0))]);
    let figure = Figure::new("all").panel(bars).panel(reliability).panel(space).columns(2);
    assert_eq!(figure.skipped(), 1);
    let svg = figure.to_svg();
    well_formed(&svg);
    assert!(svg.contains("width=\"880\" height=\"674\""), "two rows under a title");
    assert_eq!(count(&svg, "stroke-opacity=\"0.3\""), 9, "three far sides of a box");
    assert_eq!(count(&svg, ">377<"), 2, "the counts of bins that are not empty");

    assert_eq!(svg, figure.to_svg());
}

/// Cells from the smallest to the largest number, a colour bar with ticks, a tick per class on both sides.
#[test]
fn heat_maps_have_a_bar_and_classes() {
    let values = (0..16).map(|at| if at == 5 { f64::NAN } else { f64::from(at) / 15.0 });
    let panel = Panel::heat_map("k", 4, values, [("cats", 2), ("dogs", 2)]);
    let figure = Figure::new("").panel(panel);
    assert_eq!(figure.skipped(), 1);
    let svg = figure.to_svg();
    well_formed(&svg);
    assert!(svg.contains("fill=\"#ffffff\"") && svg.contains("fill=\"#08306b\""), "both ends");
    assert_eq!(count(&svg, "fill=\"#bbbbbb\""), 1, "what is no number");
    assert_eq!((count(&svg, ">cats<"), count(&svg, ">dogs<")), (2, 2));
    for tick in [">0<", ">0.2<", ">1<"] {
        assert_eq!(count(&svg, tick), 1, "{tick}");
    }
    for hard in [vec![], vec![1.0; 9], vec![f64::NAN; 4], vec![1e300, -1e300]] {
        well_formed(&Figure::new("").panel(Panel::heat_map("", 3, hard, [("", 0)])).to_svg());
    }
}

/// Without titles nothing is above the data but a small margin.
#[test]
fn figures_without_titles_have_no_head() {
    let panel = |title: &str| Panel::new(title).series(Series::line("", [(0.0, 0.0), (1.0, 1.0)]));
    let top = |figure: Figure| {
        let svg = figure.to_svg();
        let inner = svg.split("<svg x=").nth(1).unwrap();
        inner.split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(top(Figure::new("").panel(panel(""))) <= 12.0);
    assert!(top(Figure::new("").panel(panel("p"))) <= 30.0);
    assert!(top(Figure::new("t").panel(panel("p"))) > 60.0);
}

#[test]
fn legends_wrap_and_end() {
    let many = (0..60).map(|at| Series::line(format!("series {at}"), [(0.0, f64::from(at)), (1.0, 1.0)]));
    let svg = Figure::new("").panel(Panel::lines("", Axis::linear("x"), Axis::linear("y"), many)).to_svg();
    well_formed(&svg);
    assert!(svg.contains("series 0<") && svg.contains(" more<") && !svg.contains("series 59<"));
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figure.svg");
    let figure = Figure::new("t").panel(Panel::new("p"));
    figure.write(&path, Existing::Refuse).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), figure.to_svg());
    let again = Figure::new("u");
    assert!(again.write(&path, Existing::Refuse).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), figure.to_svg());
    again.write(&path, Existing::Replace).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), again.to_svg());
}

/// Screen readers find a title and a description, and nothing collides with another figure in the same page.
#[test]
fn figures_are_accessible() {
    let line = || Series::line("<train>", [(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)]);
    let panel = || Panel::new("Loss & more").x(Axis::linear("step")).y(Axis::linear("loss")).series(line());
    let figure = Figure::new("").panel(panel());
    for svg in [figure.to_svg(), figure.to_inline_svg()] {
        well_formed(&svg);
        assert!(svg.starts_with("<svg ") && svg.contains(" role=\"img\" "));
        assert_eq!(svg.lines().nth(1), Some("<title>Loss &amp; more</title>"));
        let description = "<desc>Loss &amp; more: loss over step, for &lt;train&gt;. 1 values cannot be drawn.</desc>";
        assert_eq!(svg.lines().nth(2), Some(description));
        assert!(!svg.contains(" id=") && svg.contains("sans-serif"));
    }
    assert!(Figure::new("").to_svg().contains("<title>Figure</title>"));
    let told = Figure::new("t").panel(Panel::new("")).describe("It goes < down");
    assert!(told.to_svg().contains("<desc>It goes &lt; down</desc>"));
}

/// A file is dark on white; in a page, nothing but series and data has a colour of its own.
#[test]
fn inline_figures_inherit_their_colours() {
    let panel =
        Panel::boxes("b", ["a"], Axis::linear("y"), [("g", [BoxSummary::of(&[1.0, 2.0, 9.0])])]).horizontal(1.0);
    let figure = Figure::new("t").panel(panel.series(Series::points("p", [(0.0, 1.0)])));
    let (file, inline) = (figure.to_svg(), figure.to_inline_svg());
    assert!(file.contains("color=\"#222\"") && file.contains("fill=\"#fff\"/>") && !file.contains("var("));
    assert!(!inline.contains("#222") && inline.contains("var(--mercer-colour-0, #0072B2)"));
    assert_eq!(count(&inline, "<rect"), count(&file, "<rect") - 1, "no background");
    assert!(inline.lines().filter(|line| line.contains("<text")).all(|line| !line.contains("fill=\"#")));
    assert!(Figure::dark_style().contains("--mercer-colour-6:#"));
}

/// 300,000 points make a figure of a few hundred kilobytes, which says what it leaves out; overlays are complete.
#[test]
fn large_scatter_plots_stay_small() {
    let points = |count: u32| (0..count).map(|at| (f64::from(at), f64::from(at.wrapping_mul(2_654_435_761) >> 8)));
    let panel = |count: u32| {
        Panel::scatter("log-odds", Axis::linear("network"), Axis::linear("kernel"), [("a", points(count))])
            .diagonal()
            .series(Series::fitted_line("fit", points(count)))
            .series(Series::stairs("monotone", [(0.0, 0.0), (1e5, 1e7), (3e5, 1.5e7)]))
    };
    let svg = Figure::new("").panel(panel(300_000)).to_svg();
    well_formed(&svg);
    assert!(svg.len() < 300_000, "{}", svg.len());
    assert!(svg.contains(">5,000 of 300,000 points shown<"));
    assert_eq!(count(&svg, "<circle"), 5000 + 1, "and one in the legend");
    let few = Figure::new("").panel(panel(5000)).to_svg();
    assert!(!few.contains("points shown") && count(&few, "<circle") == 5001);
    let line = Panel::new("").series(Series::line("l", points(300_000)));
    assert!(Figure::new("").panel(line).to_svg().len() < 80_000);
}

#[test]
fn fits_and_stairs_are_where_they_should_be() {
    let fit = Series::fitted_line("f", [(1.0, 3.0), (2.0, 5.0), (4.0, 9.0), (f64::NAN, 0.0), (9.0, f64::INFINITY)]);
    assert!(fit.points.iter().zip([(1.0, 3.0), (4.0, 9.0)]).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-12));
    assert!(Series::fitted_line("f", [(1.0, 3.0), (1.0, 5.0)]).points.is_empty());
    let axis = || Axis::linear("").range(0.0, 2.0);
    let panel = Panel::new("").x(axis()).y(axis()).series(Series::stairs("", [(0.0, 0.0), (1.0, 2.0), (2.0, 2.0)]));
    let svg = Figure::new("").panel(panel).to_svg();
    let path = svg.lines().find(|line| line.starts_with("<path")).unwrap();
    assert_eq!(count(path, "L"), 4, "{path}");
}

/// Numbers of all kinds, the worst ones often, in every panel: nothing panics, and all is well formed.
#[test]
fn no_numbers_panic() {
    let mut state = 7_usize;
    let mut draw = move || {
        state = state.wrapping_add(1);
        thin::scrambled(state)
    };
    const ODD: [f64; 12] =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e300, -1e300, f64::MAX, f64::MIN, 5e-324, 1e-300, 1.0];
    for round in 0..300 {
        let mut number = || match draw() % 3 {
            0 => ODD[draw() % ODD.len()],
            1 => (draw() % 2000) as f64 / 100.0 - 10.0,
            _ => (draw() % 5) as f64,
        };
        let mut list =
            |most: usize| (0..(number().abs() as usize) % (most + 1)).map(|_| number()).collect::<Vec<f64>>();
        let (a, b, c) = (list(40), list(40), list(7));
        let pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
        let scores = || a.iter().map(|&x| (x, x.to_bits() % 3 == 0));
        let axis = || if round % 2 == 0 { Axis::linear("x") } else { Axis::log("x") };
        let of = |at: usize| c.get(at).copied().unwrap_or(1.0);
        let summary = BoxSummary {
            mean: of(0),
            q1: of(1),
            median: of(2),
            q3: of(3),
            low_whisker: of(4),
            high_whisker: of(5),
            fliers: a.clone(),
            n_fliers: b.len(),
            n_skipped: 0,
        };
        let picture = Picture::from_chw(b.clone(), [1, 1, b.len()], (round % 3 == 0).then_some((of(0), of(1))));
        let cells = picture.map(|picture| Cell::picture(picture, "p")).into_iter().chain([Cell::text("t", "c")]);
        let panels = [
            Panel::boxes("", ["a", "b"], axis(), [("g", vec![Some(summary), BoxSummary::of(&a)])]),
            Panel::density("", "", [("a", a.clone()), ("b", b.clone())]),
            Panel::density_map("", axis(), axis(), pairs.clone()),
            Panel::quantiles("", ("", a.clone()), ("", b.clone())),
            Panel::roc("", [("r", RankCurve::roc(scores())), ("p", RankCurve::from_points(pairs.clone(), of(0)))]),
            Panel::precision_recall("", [("r", RankCurve::precision_recall(scores()))]),
            Panel::named_heat_map("", ["a", "b"], ["c", "d", "e"], b.clone()).signed(),
            Panel::heat_map("", round % 5, a.clone(), [("g", 3)]),
            Panel::strips("", [Strip::new("s", cells)]),
            Panel::lines("", axis(), axis(), [Series::stairs("s", pairs.clone()), Series::fitted_line("f", pairs)]),
        ];
        let figure = panels.into_iter().fold(Figure::new(""), Figure::panel);
        well_formed(&figure.to_svg());
        assert!(a.iter().all(|x| x.is_finite()) || figure.skipped() > 0);
    }
}
