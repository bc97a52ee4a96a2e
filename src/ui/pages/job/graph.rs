//! The dependency graph: each job is to the right of its dependencies.

use leptos::prelude::*;

use crate::ui::components::state::{color, state_label};
use crate::ui::components::styles::CARD_PADDED;
use crate::ui::components::tables;
use crate::ui::model::state::EffectiveState;
use crate::ui::pages::job::model::{Graph, Node};
use crate::ui::urls;

/// Minimum number of jobs for a graph. For fewer jobs, the lists are sufficient.
const DRAWN_MIN: usize = 3;

/// The size of a job, and the gaps between jobs, in pixels.
const WIDTH: usize = 172;

const HEIGHT: usize = 44;

const GAP_X: usize = 48;

const GAP_Y: usize = 12;

/// Padding for lines at the edge of the drawing, in pixels.
const EDGE: usize = 2;

/// Maximum number of characters in a job.
const LABEL_CHARS: usize = 20;

/// The graph and its data table; `None` if there are too few jobs.
pub fn graph(graph: &Graph) -> Option<AnyView> {
    if graph.nodes.len() < DRAWN_MIN {
        return None;
    }
    let n = graph.nodes.len();
    let more = graph
        .is_truncated
        .then(|| view! { <p class="text-muted wrap-anywhere">{format!("Showing {n} jobs. There are more.")}</p> });
    let view = view! {
        <section class=CARD_PADDED aria-labelledby="graph">
            <h2 id="graph">"Dependencies"</h2>
            {more}
            <div class="max-h-[70vh] overflow-auto rounded-md" role="region" tabindex="0" aria-label="Dependency graph">{drawing(graph)}</div>
            <details>
                <summary>"Show data table"</summary>
                {table(graph)}
            </details>
        </section>
    };
    Some(view.into_any())
}

/// The upper left corner of each job.
fn positions(nodes: &[Node]) -> Vec<(usize, usize)> {
    let mut rows: Vec<usize> = Vec::new();
    nodes
        .iter()
        .map(|node| {
            if rows.len() <= node.layer {
                rows.resize(node.layer + 1, 0);
            }
            let row = rows.get_mut(node.layer).map_or(0, |next| {
                *next += 1;
                *next - 1
            });
            (
                EDGE + node.layer * (WIDTH + GAP_X),
                EDGE + row * (HEIGHT + GAP_Y),
            )
        })
        .collect()
}

fn drawing(graph: &Graph) -> AnyView {
    let positions = positions(&graph.nodes);
    let right = positions.iter().map(|(x, _)| x + WIDTH + EDGE).max();
    let bottom = positions.iter().map(|(_, y)| y + HEIGHT + EDGE).max();
    let (width, height) = (right.unwrap_or_default(), bottom.unwrap_or_default());
    let edges = graph.nodes.iter().zip(&positions).flat_map(|(node, to)| {
        let from = node
            .dependencies
            .iter()
            .filter_map(|index| positions.get(*index));
        from.map(|from| edge(*from, *to))
    });
    let edges = edges.map(|path| view! { <path class="edge" d=path /> });
    let nodes = graph.nodes.iter().zip(&positions).enumerate();
    let nodes = nodes.map(|(i, (node, corner))| job(node, *corner, i == 0));
    view! {
        <svg
            class="graph m-1 block"
            width=width.to_string()
            height=height.to_string()
            viewBox=format!("0 0 {width} {height}")
            role="group"
            aria-label="Each job is to the right of its dependencies"
        >
            {edges.collect_view()}
            {nodes.collect_view()}
        </svg>
    }
    .into_any()
}

/// A line from the right side of one job to the left side of another.
fn edge(from: (usize, usize), to: (usize, usize)) -> String {
    let (x, y) = (from.0 + WIDTH, from.1 + HEIGHT / 2);
    let (end_x, end_y) = (to.0, to.1 + HEIGHT / 2);
    let middle = x.midpoint(end_x);
    format!("M{x} {y}C{middle} {y} {middle} {end_y} {end_x} {end_y}")
}

fn state_view(state: Option<EffectiveState>) -> (&'static str, &'static str) {
    match state {
        Some(state) => (state_label(state), color(state)),
        None => ("not found", ""),
    }
}

fn job(node: &Node, (x, y): (usize, usize), is_here: bool) -> AnyView {
    let (state, class) = state_view(node.state);
    let name = node.klass.as_ref().unwrap_or(&node.id);
    let text = |dy: usize| (y + dy).to_string();
    let here = if is_here { ", this job" } else { "" };
    // The class alone does not tell jobs apart.
    let second = match node.klass {
        Some(_) => short(&format!("{state} · {}", node.id)),
        None => state.to_owned(),
    };
    view! {
        <a
            href=urls::qless_job(&node.id)
            class=class
            aria-current=is_here.then_some("true")
            // The visible text, and the ID.
            aria-label=format!("{} {state}, {}{here}", short(name), node.id)
        >
            <rect x=x.to_string() y=y.to_string() width=WIDTH.to_string() height=HEIGHT.to_string() rx="6" />
            <text x=(x + 12).to_string() y=text(18)>{short(name)}</text>
            // Separates the two texts for screen readers.
            " "
            <text class="state" x=(x + 12).to_string() y=text(35)>{second}</text>
        </a>
    }
    .into_any()
}

fn short(name: &str) -> String {
    if name.chars().count() <= LABEL_CHARS {
        return name.to_owned();
    }
    let mut short: String = name.chars().take(LABEL_CHARS - 1).collect();
    short.push('…');
    short
}

fn table(graph: &Graph) -> AnyView {
    let rows = graph.nodes.iter().map(|node| {
        let dependencies = node.dependencies.iter().filter_map(|index| graph.nodes.get(*index));
        let dependencies: Vec<_> = dependencies.map(link).collect();
        view! {
            <tr>
                <th scope="row">{link(node)}</th>
                <td>{state_view(node.state).0}</td>
                <td>{if dependencies.is_empty() { "none".into_any() } else { dependencies.into_any() }}</td>
            </tr>
        }
    });
    let columns = [("Job", ""), ("State", ""), ("Depends on", "")];
    tables::table(
        "Dependencies by job",
        tables::head(&columns),
        rows.collect_view().into_any(),
    )
}

fn link(node: &Node) -> AnyView {
    view! { <a class="id" href=urls::qless_job(&node.id)>{node.id.clone()}</a> " " }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::pages::job::model::Node;

    fn node(layer: usize, dependencies: &[usize]) -> Node {
        Node {
            id: String::new(),
            klass: None,
            state: None,
            layer,
            dependencies: dependencies.to_vec(),
        }
    }

    #[test]
    fn no_two_jobs_have_the_same_position() {
        let nodes = [node(1, &[1, 2]), node(0, &[]), node(0, &[]), node(2, &[0])];
        let positions = positions(&nodes);
        let step = (WIDTH + GAP_X, HEIGHT + GAP_Y);
        let at = |layer: usize, row: usize| (EDGE + layer * step.0, EDGE + row * step.1);
        assert_eq!(positions, [at(1, 0), at(0, 0), at(0, 1), at(2, 0)]);
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(short("a"), "a");
        assert_eq!(short(&"ä".repeat(30)).chars().count(), LABEL_CHARS);
    }
}
