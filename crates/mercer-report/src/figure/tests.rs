//! Figures as a whole.

use super::*;

fn count(svg: &str, what: &str) -> usize {
    svg.matches(what).count()
}

/// Every element is closed in order, and no attribute contains NaN.
fn well_formed(svg: &str) {
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
    assert!(open.is_empty() && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
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
    assert_eq!(count(&svg, "stroke=\"#bbb\""), 9, "three far sides of a box");
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
