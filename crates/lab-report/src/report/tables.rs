//! Tables as data: the template draws all of them alike, with a caption, headers, a scrollable box
//! and copy buttons.

use serde::Serialize;

use crate::format;

/// One cell.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Cell {
    /// Its text; escaped by the template.
    pub(crate) text: String,
    /// A second, smaller line.
    pub(crate) sub: String,
    /// Style classes.
    pub(crate) class: String,
    /// The colour class of the swatch before the text.
    pub(crate) swatch: Option<usize>,
    /// SVG in place of the text.
    pub(crate) drawing: String,
    /// A page that the text leads to; empty: none.
    pub(crate) href: String,
    /// Shade from 0 to 1, for tables that are heat maps.
    pub(crate) heat: Option<String>,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    pub(crate) fn number(value: f64) -> Cell {
        Cell::num(format::number(value))
    }

    /// A formatted number.
    pub(crate) fn num(text: impl Into<String>) -> Cell {
        let text = text.into();
        let class = if text == format::MISSING { "n na" } else { "n" };
        Cell {
            class: class.to_owned(),
            text,
            ..Cell::default()
        }
    }

    /// A drawing made by [`super::svg`], which escapes its texts.
    pub(crate) fn drawing(drawing: String) -> Cell {
        Cell {
            drawing,
            class: "spark".to_owned(),
            ..Cell::default()
        }
    }

    pub(crate) fn target(name: &str, color: usize) -> Cell {
        Cell {
            text: name.to_owned(),
            swatch: Some(color),
            ..Cell::default()
        }
    }

    pub(crate) fn class(mut self, class: &str) -> Cell {
        if !self.class.is_empty() {
            self.class.push(' ');
        }
        self.class.push_str(class);
        self
    }

    pub(crate) fn sub(mut self, sub: impl Into<String>) -> Cell {
        self.sub = sub.into();
        self
    }

    /// Shades the cell: `share` from 0 to 1.
    pub(crate) fn heat(mut self, share: f64) -> Cell {
        if share > 0.0 {
            self.heat = Some(format!("{:.2}", share.clamp(0.0, 1.0)));
        }
        self
    }
}

/// A column's header.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Column {
    pub(crate) label: String,
    /// Numbers are aligned to the right.
    pub(crate) number: bool,
    /// Shown when pointed at.
    pub(crate) title: String,
    /// The colour class of the swatch before the label.
    pub(crate) swatch: Option<usize>,
}

/// A table. The first column is the header of its rows.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    pub(crate) id: String,
    pub(crate) caption: String,
    pub(crate) class: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(id: impl Into<String>, caption: impl Into<String>) -> Table {
        Table {
            id: id.into(),
            caption: caption.into(),
            ..Table::default()
        }
    }

    /// Adds columns of text.
    pub(crate) fn texts(mut self, labels: &[&str]) -> Table {
        self.columns.extend(labels.iter().map(|l| column(l, false)));
        self
    }

    /// Adds columns of numbers.
    pub(crate) fn numbers(mut self, labels: &[&str]) -> Table {
        self.columns.extend(labels.iter().map(|l| column(l, true)));
        self
    }

    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "table {}", self.id);
        self.rows.push(row);
    }
}

fn column(label: &str, number: bool) -> Column {
    Column {
        label: label.to_owned(),
        number,
        title: String::new(),
        swatch: None,
    }
}
