//! Curves: how cost and memory grow with the work.
//!
//! Each point is measured in a process of its own, this client and the official
//! crate in turns, on the same cluster. The exponent is the slope of the logarithm
//! of the total cost over that of *n*, in the upper half of the curve. Above 1, the
//! cost grows faster than the work.

mod fit;
mod memory;
pub mod point;

use std::error::Error;
use std::process::{Command, Stdio};

use fit::exponent;
use point::Point;
use steadfast_benches::measure::median;
use steadfast_benches::table::Table;

use crate::contenders::Contender;
use crate::server::Server;

/// How often each point is measured.
const ROUNDS: usize = 3;

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// Operations in flight.
    Flight,
    /// Nodes of the cluster, with as many operations in flight to each.
    Nodes,
    /// Collections of the bucket.
    Collections,
    /// Clients in one process, with one operation in flight on each.
    Clients,
    /// Bytes of a document.
    Documents,
}

impl Curve {
    const ALL: [Self; 5] = [
        Self::Flight,
        Self::Nodes,
        Self::Collections,
        Self::Clients,
        Self::Documents,
    ];

    /// The name in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flight => "flight",
            Self::Nodes => "nodes",
            Self::Collections => "collections",
            Self::Clients => "clients",
            Self::Documents => "documents",
        }
    }

    /// The curve of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    fn title(self) -> &'static str {
        match self {
            Self::Flight => "Operations in flight",
            Self::Nodes => "Nodes, 16 operations in flight to each",
            Self::Collections => "Collections, 64 operations in flight",
            Self::Clients => "Clients in one process, one operation in flight on each",
            Self::Documents => "Bytes of a document, one operation in flight",
        }
    }

    /// What *n* counts.
    fn unit(self) -> &'static str {
        match self {
            Self::Flight => "operation",
            Self::Nodes => "node",
            Self::Collections => "collection",
            Self::Clients => "client",
            Self::Documents => "byte",
        }
    }

    /// What the two costs are of.
    fn costs(self) -> [&'static str; 2] {
        match self {
            Self::Flight | Self::Documents => ["get", "upsert"],
            Self::Nodes | Self::Clients => ["connect", "get"],
            Self::Collections => ["first use", "get"],
        }
    }

    fn sizes(self) -> &'static [usize] {
        match self {
            Self::Flight => &[1, 10, 100, 1_000, 10_000, 60_000, 100_000],
            Self::Nodes => &[1, 3, 10, 30, 100],
            Self::Collections => &[1, 10, 100, 1_000, 10_000],
            Self::Clients => &[1, 10, 100, 300, 1_000],
            Self::Documents => &[
                10, 100, 1_000, 10_000, 100_000, 1_000_000, 5_000_000, 20_000_000,
            ],
        }
    }

    fn server(self, n: usize) -> std::io::Result<Server> {
        match self {
            Self::Nodes => Server::start(n, 0),
            Self::Collections => Server::start(1, n),
            Self::Flight | Self::Clients | Self::Documents => Server::start(1, 0),
        }
    }
}

/// Prints the curve of this name, or all.
pub fn report(only: Option<Curve>) -> Result<(), Box<dyn Error>> {
    for curve in Curve::ALL {
        if only.is_none_or(|only| only == curve) {
            println!("**{}**\n", curve.title());
            println!("{}", table(curve)?);
        }
    }
    Ok(())
}

fn table(curve: Curve) -> Result<Table, Box<dyn Error>> {
    let both = [Contender::Steadfast, Contender::Official];
    let mut points: [Vec<Measured>; 2] = [Vec::new(), Vec::new()];
    for n in curve.sizes() {
        let server = curve.server(*n)?;
        let mut samples = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for ((who, samples), points) in both.iter().zip(&mut samples).zip(&points) {
                if !has_failed(points) && !samples.iter().any(Result::is_err) {
                    samples.push(in_child(curve, *who, *n, &server)?);
                }
            }
        }
        for (points, samples) in points.iter_mut().zip(samples) {
            if !samples.is_empty() {
                points.push((*n, middle(samples)));
            }
        }
    }
    let [first, second] = curve.costs();
    let unit = curve.unit();
    let per = |what: &str| format!("{what}: ns per {unit}");
    let mut table = Table::new(&[
        "",
        &format!("{unit}s"),
        &format!("{first}: µs in all"),
        &per(first),
        &format!("{second}: µs in all"),
        &per(second),
        &format!("memory: bytes per {unit}"),
    ]);
    for (who, points) in both.iter().zip(&points) {
        for (n, point) in points {
            table.row(row(who.name(), *n, point));
        }
    }
    for (who, points) in both.iter().zip(&points) {
        let upper = &points[points.len() / 2..];
        let exponents = [0, 1].map(|index| exponent_of(upper, |point| point.costs[index]));
        let [first, second] = exponents;
        let memory = exponent_of(upper, |point| point.memory);
        let blank = String::new;
        let (name, n) = (format!("exponent, {}", who.name()), blank());
        table.row(vec![name, n, first, blank(), second, blank(), memory]);
    }
    Ok(table)
}

/// Whether a smaller size failed. A larger one would take as long to fail as well.
fn has_failed(points: &[Measured]) -> bool {
    points.last().is_some_and(|(_, point)| point.is_err())
}

type Measured = (usize, Result<Point, String>);

fn row(who: &str, n: usize, point: &Result<Point, String>) -> Vec<String> {
    let (who, count) = (who.to_owned(), n.to_string());
    match point {
        Ok(Point { costs, memory }) => {
            let total = |cost: f64| format!("{:.1}", cost / 1e3);
            let each = |value: f64| rounded(value / n as f64);
            let [first, second] = *costs;
            vec![
                who,
                count,
                total(first),
                each(first),
                total(second),
                each(second),
                each(*memory),
            ]
        }
        Err(problem) => vec![who, count, problem.clone()],
    }
}

fn rounded(value: f64) -> String {
    let digits = if value < 100.0 { 1 } else { 0 };
    format!("{value:.digits$}")
}

fn exponent_of(points: &[Measured], part: impl Fn(&Point) -> f64) -> String {
    let points: Vec<(f64, f64)> = points
        .iter()
        .filter_map(|(n, point)| Some((*n as f64, part(point.as_ref().ok()?))))
        .collect();
    exponent(&points).map_or_else(
        || "–".to_owned(),
        |it| format!("{:.2} ± {:.2}", it.value, it.error),
    )
}

/// The medians of the rounds, or the first failure.
fn middle(samples: Vec<Result<Point, String>>) -> Result<Point, String> {
    let samples = samples
        .into_iter()
        .collect::<Result<Vec<Point>, String>>()?;
    let middle = |part: &dyn Fn(&Point) -> f64| median(samples.iter().map(part).collect());
    Ok(Point {
        costs: [middle(&|it| it.costs[0]), middle(&|it| it.costs[1])],
        memory: middle(&|it| it.memory),
    })
}

/// Measures a point in a child. The inner error is what the child said.
fn in_child(
    curve: Curve,
    who: Contender,
    n: usize,
    server: &Server,
) -> Result<Result<Point, String>, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--point", curve.name(), who.name(), &n.to_string()])
        .arg(server.connection_string())
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        let line = String::from_utf8(output.stdout)?;
        return Ok(Ok(point::parse(&line).ok_or("a child printed no point")?));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // A panic has its message in its second line, an error in its only one.
    let said = said.lines().take(2).last().unwrap_or("failed");
    Ok(Err(said.chars().take(80).collect()))
}
