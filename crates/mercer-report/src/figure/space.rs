//! Points in three dimensions, in a fixed isometric projection.
//!
//! Every axis is scaled to `[-½, ½]` and seen from (1, 1, 1): `u = (y − x) cos 30°`, `v = z − (x + y) sin 30°`, so that
//! units are equally long along all three axes. The far sides of the box are drawn behind the points, and the points of
//! a class from far to near.

use super::axis::{Axis, linear_ticks};
use super::panel::{Helper, Hold, Panel, Space};
use super::series::Series;

const COSINE: f64 = 0.866_025_403_784_438_6;

impl Panel {
    /// Points in three dimensions in classes, one colour per class, with labels for the three axes. Points that are not
    /// finite are left out and count as [skipped](super::Figure::skipped).
    pub fn scatter3<N: Into<String>, P: IntoIterator<Item = [f64; 3]>>(
        title: impl Into<String>,
        labels: [&str; 3],
        classes: impl IntoIterator<Item = (N, P)>,
    ) -> Self {
        let mut panel = Self::new(title).x(Axis::linear("").range(-1.2, 1.2)).y(Axis::linear("").range(-1.2, 1.05));
        panel.bare = true;
        let axis = Axis::linear("");
        let mut classes: Vec<(String, Vec<[f64; 3]>)> =
            classes.into_iter().map(|(name, points)| (name.into(), points.into_iter().collect())).collect();
        for (_, points) in &mut classes {
            let all = points.len();
            points.retain(|point| point.iter().all(|&x| axis.drawable(x)));
            panel.left_out += all - points.len();
        }
        let rulers =
            [0, 1, 2].map(|k| axis.fit(classes.iter().flat_map(|(_, points)| points).map(|point| point[k]), false));
        let inside = |point: &[f64; 3]| [0, 1, 2].map(|k| rulers[k].place(point[k]) - 0.5);
        let mut space = Vec::with_capacity(classes.len());
        for (name, points) in classes {
            let mut points: Vec<[f64; 3]> = points.iter().map(inside).collect();
            points.sort_by(|a, b| (a[0] + a[1] + a[2]).total_cmp(&(b[0] + b[1] + b[2])));
            panel.series.push(Series::points(name, points.iter().copied().map(project)));
            space.push(points);
        }
        panel.space =
            Some(Space { labels: labels.map(str::to_owned), ends: [0, 1, 2].map(|k| rulers[k].ends()), points: space });
        panel.helpers.extend(box_edges());
        for (k, ruler) in rulers.iter().enumerate() {
            let (low, high) = ruler.ends();
            panel.helpers.extend(marks(k, labels[k], linear_ticks(low, high, 3), |tick| ruler.fraction(tick) - 0.5));
        }
        panel
    }
}

fn project([x, y, z]: [f64; 3]) -> (f64, f64) {
    ((y - x) * COSINE, z - (x + y) * 0.5)
}

/// The nine edges of the three far sides.
fn box_edges() -> Vec<Helper> {
    let corner = |bits: usize| [0, 1, 2].map(|k| if bits >> k & 1 == 1 { 0.5 } else { -0.5 });
    let edges = (0..8_usize).flat_map(|from| (0..3).map(move |k| (from, from | 1 << k)));
    let far = edges.filter(|&(from, to)| from != to && to != 7);
    far.map(|(from, to)| Helper::Edge([corner(from), corner(to)].map(project))).collect()
}

/// Ticks and the name of an axis, along the outer edge of the far sides.
fn marks(k: usize, label: &str, ticks: Vec<(f64, String)>, place: impl Fn(f64) -> f64) -> Vec<Helper> {
    // The x axis is at the bottom right, y at the bottom left, z at the left.
    let (base, out, hold) = match k {
        0 => ([0.0, 0.5, -0.5], (0.06, -0.09), Hold::Left),
        1 => ([0.5, 0.0, -0.5], (-0.06, -0.09), Hold::Right),
        _ => ([0.5, -0.5, 0.0], (-0.06, -0.02), Hold::Right),
    };
    let at = |along: f64, far: f64| {
        let mut point = base;
        point[k] = along;
        let (u, v) = project(point);
        (u + far * out.0, v + far * out.1)
    };
    let text = |(value, name): (f64, String)| Helper::Text(at(place(value), 1.0), name, hold);
    let mut marks: Vec<Helper> = ticks.into_iter().map(text).collect();
    let away = if k == 2 { 6.0 } else { 3.2 };
    let (place, hold) = if k == 2 { (at(0.62, 0.0), Hold::Middle) } else { (at(0.0, away), hold) };
    marks.push(Helper::Text(place, label.to_owned(), hold));
    marks
}
