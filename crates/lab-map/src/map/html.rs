//! A map as one HTML file that needs no network and no script, in the colours of the reports.

use std::fmt::Write as _;

use stdx::ByteSize;

use lab_report::record::map::{Map, TreeSum};
use lab_report::report::CSS;
use lab_report::report::svg::{escape, map as svg};

/// The map as an HTML page.
#[must_use]
pub fn page(map: &Map) -> String {
    let title = escape(&format!("{} {}", map.kind, map.path));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'\">\n<meta name=\"generator\" content=\"romanesco lab {}\">\n\
         <title>{title}</title>\n<style>{CSS}\nmain{{max-width:1100px;margin:0 auto;padding:0 1rem \
         3rem}}</style>\n</head>\n<body>\n<main>\n\
         <p class=\"eyebrow\">storage map &middot; {}</p>\n\
         <h1>{}</h1>\n",
        env!("CARGO_PKG_VERSION"),
        escape(&map.kind),
        escape(&map.path)
    );
    facts(map, &mut out);
    if !map.notes.is_empty() {
        out.push_str("<ul class=\"warnings\">");
        for note in &map.notes {
            let _ = write!(out, "<li>{}</li>", escape(note));
        }
        out.push_str("</ul>\n");
    }
    if !map.trees.is_empty() {
        trees(&map.trees, &mut out);
    }
    for panel in &map.panels {
        let shared = match panel.pages_per_cell {
            1 => String::new(),
            n => format!("; {n} of them share a cell"),
        };
        let _ = write!(
            out,
            "<figure class=\"plot wide mp\"><figcaption><b>{}</b> <span class=\"note\">{}{shared}\
             </span></figcaption><div class=\"static\">{}</div></figure>\n<br>\n",
            escape(&panel.title),
            escape(&panel.about),
            svg::panel(panel)
        );
    }
    if !map.extents.is_empty() {
        let _ = writeln!(
            out,
            "<figure class=\"plot wide mp\"><figcaption><b>Files on the device</b> <span \
             class=\"note\">a line a file; where the tone changes, the file continues \
             elsewhere</span></figcaption><div class=\"static\">{}</div></figure>",
            svg::extents(&map.extents)
        );
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn facts(map: &Map, out: &mut String) {
    let sums = &map.sums;
    let mut all = vec![
        ("in files".to_owned(), ByteSize(sums.file_bytes).to_string()),
        ("free".to_owned(), ByteSize(sums.free_bytes).to_string()),
    ];
    if let Some(fill) = sums.leaf_fill {
        all.push(("leaves full".to_owned(), format!("{:.1} %", 100.0 * fill)));
    }
    if let Some(extents) = sums.extents {
        all.push(("extents on the device".to_owned(), extents.to_string()));
    }
    all.extend(map.facts.iter().cloned());
    out.push_str("<dl class=\"facts\">");
    for (name, fact) in all {
        let _ = write!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            escape(&name),
            escape(&fact)
        );
    }
    out.push_str("</dl>\n");
}

fn trees(trees: &[TreeSum], out: &mut String) {
    out.push_str(
        "<div class=\"tablebox\"><div class=\"scroll\"><table><caption>Trees</caption>\
                  <thead><tr><th scope=\"col\">tree</th>",
    );
    for name in [
        "leaves",
        "inner",
        "overflow",
        "depth",
        "leaf fill %",
        "garbage %",
        "bytes",
    ] {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{name}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    let share =
        |value: Option<f64>| value.map_or("n/a".to_owned(), |v| format!("{:.1}", 100.0 * v));
    for tree in trees {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&tree.name));
        let depth = tree.depth.map_or("n/a".to_owned(), |d| d.to_string());
        for value in [
            tree.leaves.to_string(),
            tree.inner.to_string(),
            tree.overflow.to_string(),
            depth,
            share(tree.leaf_fill),
            share(tree.garbage),
            ByteSize(tree.bytes).to_string(),
        ] {
            let _ = write!(out, "<td class=\"n\">{value}</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></div>\n");
}
