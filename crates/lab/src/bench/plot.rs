//! Figures as SVG: lines over an axis, with the spread of each point.

use std::fmt::Write as _;
use std::path::Path;

use super::row::Row;
use crate::failure::Failure;

/// Size of the picture and the margins around the axes, in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 60.0;
/// Marks on the vertical axis.
const MARKS: u32 = 5;
/// Colours that people with any sight tell apart (Okabe and Ito).
const COLOURS: [&str; 8] = ["#000000", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#999933"];
/// How lines are broken once all colours are taken.
const DASHES: [&str; 3] = ["", "6 3", "2 3"];
/// Name of the statistic that says where on the horizontal axis a row stands.
const X: &str = "x";
/// Name of the statistic with half of a confidence interval around the mean.
const CONFIDENCE: &str = "confidence_99";

/// What a figure shows.
#[derive(Clone, Copy, Debug)]
pub struct Figure<'a> {
    /// The name of its file, where a stroke stands for a slash.
    pub name: &'a str,
    /// What its rows begin with: they are called `rows/x/line`.
    pub rows: &'a str,
    /// What stands above it.
    pub title: &'a str,
    /// What the horizontal axis is.
    pub x: &'a str,
    /// What the vertical axis is.
    pub y: &'a str,
    /// Whether the horizontal axis is logarithmic.
    pub is_logarithmic: bool,
    /// Whether the vertical axis is.
    pub is_logarithmic_up: bool,
}

/// A point of a line with what it scatters.
struct Point {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
}

/// A line of a figure.
struct Line {
    name: String,
    points: Vec<Point>,
}

/// Draws `figures` of what is in `rows` into `directory`; returns the names of the files.
///
/// # Errors
/// The directory or a file cannot be written.
pub fn draw(figures: &[Figure<'_>], rows: &[Row], directory: &Path) -> Result<Vec<String>, Failure> {
    std::fs::create_dir_all(directory).map_err(Failure::file("making", directory))?;
    let mut names = Vec::new();
    for figure in figures {
        let lines = lines(figure.rows, rows);
        if lines.is_empty() {
            continue;
        }
        let path = directory.join(format!("{}.svg", figure.name.replace('/', "-")));
        std::fs::write(&path, svg(figure, &lines)).map_err(Failure::file("writing", &path))?;
        names.push(path.display().to_string());
    }
    Ok(names)
}

/// The lines of a figure: the rows `name/x/line`; those without a last part are the scrubber's.
fn lines(name: &str, rows: &[Row]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let Some(rest) = row.row.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')) else { continue };
        let name = rest.split_once('/').map_or("scrubber", |(_, line)| line);
        let Some(point) = point(row) else { continue };
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name: name.to_owned(), points: vec![point] }),
        }
    }
    lines
}

/// Mean and confidence interval where there is one, otherwise median and quartiles.
fn point(row: &Row) -> Option<Point> {
    let stat = |name: &str| row.stats.get(name).and_then(serde_json::Value::as_f64);
    let x = stat(X)?;
    Some(match stat(CONFIDENCE).zip(stat("mean")) {
        Some((half, mean)) => Point { x, y: mean, low: mean - half, high: mean + half },
        None => Point { x, y: row.median, low: row.q1, high: row.q3 },
    })
}

/// Where values stand in the picture.
struct Axes {
    is_logarithmic: bool,
    is_logarithmic_up: bool,
    left: f64,
    right: f64,
    top: f64,
    /// Zero, but on a logarithmic axis a power of ten.
    bottom: f64,
}

impl Axes {
    fn of(figure: &Figure<'_>, lines: &[Line]) -> Axes {
        let scaled = |x: f64| if figure.is_logarithmic { x.max(f64::MIN_POSITIVE).log2() } else { x };
        let points = || lines.iter().flat_map(|line| &line.points);
        let lowest = points().map(|point| point.y).filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
        let decade = |value: f64| if value.is_finite() { 10f64.powf(value.log10().floor()) } else { 1.0 };
        Axes {
            is_logarithmic: figure.is_logarithmic,
            is_logarithmic_up: figure.is_logarithmic_up,
            bottom: if figure.is_logarithmic_up { decade(lowest) } else { 0.0 },
            left: points().map(|point| scaled(point.x)).fold(f64::INFINITY, f64::min),
            right: points().map(|point| scaled(point.x)).fold(f64::NEG_INFINITY, f64::max),
            top: round_up(points().map(|point| point.y.max(point.high)).fold(0.0, f64::max)),
        }
    }

    fn x(&self, x: f64) -> f64 {
        let x = if self.is_logarithmic { x.max(f64::MIN_POSITIVE).log2() } else { x };
        let width = (self.right - self.left).max(f64::MIN_POSITIVE);
        LEFT + (x - self.left) / width * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: f64) -> f64 {
        let y = y.max(self.bottom);
        let share = if self.is_logarithmic_up {
            (y / self.bottom).log10() / (self.top / self.bottom).log10().max(f64::MIN_POSITIVE)
        } else {
            y / self.top
        };
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    /// Where the vertical axis has its marks: at equal distances, or at the powers of ten.
    fn marks(&self) -> Vec<f64> {
        if self.is_logarithmic_up {
            let decades = (self.top / self.bottom).log10().ceil() as i32;
            return (0..=decades)
                .map(|decade| self.bottom * 10f64.powi(decade))
                .filter(|mark| *mark <= self.top)
                .collect();
        }
        (0..=MARKS).map(|mark| self.top * f64::from(mark) / f64::from(MARKS)).collect()
    }
}

/// The next number of one digit and zeros, so that the marks are readable.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let scale = 10f64.powf(value.log10().floor());
    (value / scale).ceil() * scale
}

fn svg(figure: &Figure<'_>, lines: &[Line]) -> String {
    let axes = Axes::of(figure, lines);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(&mut out, ((LEFT + WIDTH - RIGHT) / 2.0, TOP - 16.0), "middle", figure.title);
    text(&mut out, ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16.0), "middle", figure.x);
    text(&mut out, (4.0, TOP - 16.0), "start", figure.y);
    draw_axes(&mut out, &axes, lines);
    for (place, line) in lines.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let dashes = DASHES[place / COLOURS.len() % DASHES.len()];
        draw_line(&mut out, &axes, line, (colour, dashes));
        let (x, y) = (WIDTH - RIGHT + 16.0, TOP + 10.0 + 20.0 * place as f64);
        dashed(&mut out, &format!("M {x} {y} h 20"), (colour, dashes));
        text(&mut out, (x + 26.0, y + 4.0), "start", &line.name);
    }
    out.push_str("</svg>\n");
    out
}

fn draw_axes(out: &mut String, axes: &Axes, lines: &[Line]) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    stroke(out, &format!("M {LEFT} {TOP} V {bottom} H {right}"), "#666666");
    for value in axes.marks() {
        let y = axes.y(value);
        stroke(out, &format!("M {LEFT} {y:.1} H {right}"), "#dddddd");
        text(out, (LEFT - 6.0, y + 4.0), "end", &short(value));
    }
    for point in lines.first().iter().flat_map(|line| &line.points) {
        text(out, (axes.x(point.x), bottom + 18.0), "middle", &short(point.x));
    }
}

fn draw_line(out: &mut String, axes: &Axes, line: &Line, (colour, dashes): (&str, &str)) {
    let mut path = String::new();
    for point in &line.points {
        let (x, y) = (axes.x(point.x), axes.y(point.y));
        // Writing to a string does not fail.
        let _ = write!(path, "{} {x:.1} {y:.1} ", if path.is_empty() { "M" } else { "L" });
        stroke(out, &format!("M {x:.1} {:.1} V {:.1}", axes.y(point.low), axes.y(point.high)), colour);
    }
    dashed(out, path.trim_end(), (colour, dashes));
}

fn stroke(out: &mut String, path: &str, colour: &str) {
    dashed(out, path, (colour, ""));
}

fn dashed(out: &mut String, path: &str, (colour, dashes): (&str, &str)) {
    let broken = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
    let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"{broken}/>");
}

fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

/// Few letters for a large number.
fn short(value: f64) -> String {
    match value {
        value if value >= 1_048_576.0 && value % 1_048_576.0 == 0.0 => format!("{} Mi", value / 1_048_576.0),
        value if value >= 1024.0 && value % 1024.0 == 0.0 => format!("{} Ki", value / 1024.0),
        value if value == value.round() => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURE: Figure<'static> = Figure {
        name: "figure5",
        rows: "figure5",
        title: "t",
        x: "bytes",
        y: "Mbit/s",
        is_logarithmic: true,
        is_logarithmic_up: false,
    };

    fn row(name: &str, x: f64, y: f64) -> Row {
        Row::new("scrub", name, "Mbit/s", &vec![Some(y)]).unwrap().with_stat(X, Some(x))
    }

    #[test]
    fn rows_become_lines_by_their_names() {
        let rows = [
            row("figure5/1024", 1024.0, 10.0),
            row("figure5/1024/bridge", 1024.0, 20.0),
            row("figure5/4096", 4096.0, 30.0),
            row("figure55/4096", 4096.0, 30.0),
        ];
        let lines = lines("figure5", &rows);
        let named: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.points.len())).collect();
        assert_eq!(named, [("scrubber", 2), ("bridge", 1)]);
    }

    #[test]
    fn the_largest_value_stands_at_the_top_and_the_ends_at_the_ends() {
        let rows = [row("figure5/1024", 1024.0, 10.0), row("figure5/4096", 4096.0, 30.0)];
        let axes = Axes::of(&FIGURE, &lines("figure5", &rows));
        assert_eq!((axes.x(1024.0), axes.x(4096.0)), (LEFT, WIDTH - RIGHT));
        assert_eq!(axes.x(2048.0), (LEFT + WIDTH - RIGHT) / 2.0);
        assert_eq!((axes.y(30.0), axes.y(0.0)), (TOP, HEIGHT - BOTTOM));
    }

    #[test]
    fn a_picture_has_a_path_for_every_line_and_spread() {
        let rows = [row("figure5/1024", 1024.0, 10.0), row("figure5/1024/bridge", 1024.0, 20.0)];
        let picture = svg(&FIGURE, &lines("figure5", &rows));
        // The axes, a mark at each sixth, and of both lines the spread, the line, and its place in the list.
        assert_eq!(picture.matches("<path").count(), 1 + 6 + 2 * 3);
        assert!(picture.contains(">bridge<") && picture.ends_with("</svg>\n"));
    }

    #[test]
    fn a_decade_is_as_high_as_the_next_on_a_logarithmic_axis() {
        let rows = [row("figure5/1024", 1024.0, 20.0), row("figure5/4096", 4096.0, 1000.0)];
        let figure = Figure { is_logarithmic_up: true, ..FIGURE };
        let axes = Axes::of(&figure, &lines("figure5", &rows));
        assert_eq!(axes.marks(), [10.0, 100.0, 1000.0]);
        assert_eq!((axes.y(1000.0), axes.y(10.0)), (TOP, HEIGHT - BOTTOM));
        assert!((axes.y(100.0) - (TOP + HEIGHT - BOTTOM) / 2.0).abs() < 1e-9);
    }

    /// Broke it by leaving the dashes out: the ninth line looked like the first.
    #[test]
    fn no_two_lines_look_alike() {
        let rows: Vec<Row> = (0..15).map(|line| row(&format!("figure5/1024/{line}"), 1024.0, 10.0)).collect();
        let picture = svg(&FIGURE, &lines("figure5", &rows));
        let mut looks: Vec<&str> = picture
            .lines()
            .filter(|line| line.contains(" h 20"))
            .filter_map(|line| line.split("stroke=").nth(1))
            .collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 15);
    }

    #[test]
    fn the_top_is_a_number_for_people() {
        assert_eq!((round_up(7312.0), round_up(0.0), round_up(10.0)), (8000.0, 1.0, 10.0));
    }
}
