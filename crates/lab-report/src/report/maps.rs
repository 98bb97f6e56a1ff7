//! The maps of the files, as drawn after steps.

use serde::Serialize;

use crate::record::{StepRecord, map};

use super::model::View;
use super::plots::Figure;
use super::svg;
use crate::format;

/// Cells of a map in a report: many maps share a page.
const CELLS_MAX: usize = 1024;

/// The section.
#[derive(Debug, Serialize)]
pub(crate) struct MapsPart {
    pub(crate) groups: Vec<Group>,
}

/// The maps of one target.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    pub(crate) target: String,
    pub(crate) color: usize,
    pub(crate) notes: Vec<String>,
    pub(crate) figures: Vec<Figure>,
}

/// The section; `None` if no map was drawn. The first repeat of each target is shown, because maps
/// of repeats look alike.
pub(crate) fn part(view: &View<'_>) -> Option<MapsPart> {
    let groups: Vec<Group> = view
        .targets
        .iter()
        .map(|target| {
            let steps = &view.run.steps;
            let own = |s: &&StepRecord| {
                let summary = s.summary.as_ref();
                summary.is_some_and(|s| s.target == target.name && s.repeat == 1)
            };
            let mut group = Group {
                target: target.name.to_owned(),
                color: target.color,
                notes: Vec::new(),
                figures: Vec::new(),
            };
            for step in steps.iter().filter(own) {
                let figure = figure(step);
                group.figures.extend(figure);
                let notes = step.map.iter().flat_map(|m| &m.notes);
                for note in notes {
                    // The process that had the store open was the laboratory's own worker.
                    if !note.starts_with("in use") && !group.notes.contains(note) {
                        group.notes.push(note.clone());
                    }
                }
            }
            group
        })
        .filter(|group| !group.figures.is_empty())
        .collect();
    (!groups.is_empty()).then_some(MapsPart { groups })
}

/// The largest panel of a map.
fn figure(step: &StepRecord) -> Option<Figure> {
    let map = step.map.as_ref()?;
    let size = |panel: &&map::Panel| panel.cells.len() as u64 * panel.pages_per_cell;
    let panel = map.panels.iter().max_by_key(size)?;
    let panel = panel.coarser(CELLS_MAX);
    let shared = match panel.pages_per_cell {
        1 => String::new(),
        n => format!("; {n} of them share a cell"),
    };
    let fill = map.sums.leaf_fill.map(|fill| 100.0 * fill);
    let free = 100.0 * map.sums.free_bytes as f64 / (map.sums.file_bytes as f64).max(1.0);
    let name = step.summary.as_ref().map_or("", |s| s.step.as_str());
    Some(Figure {
        id: format!("map-{}", super::model::anchor(&step.directory)),
        title: format!("after {name}: {}", panel.title),
        note: format!(
            "{} MB in files, {} % free, leaves {} % full. {}{shared}",
            format::number(map.sums.file_bytes as f64 / 1e6),
            format::number(free),
            format::maybe(fill),
            panel.about
        ),
        kind: String::new(),
        panel: String::new(),
        drawing: svg::map::panel(&panel),
        wide: false,
    })
}
