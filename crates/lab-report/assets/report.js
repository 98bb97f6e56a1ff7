/* Draws the plots of a report, and makes its tables copyable and its data downloadable.
   Everything shown without this script stays readable: a plot that cannot be drawn keeps its
   static drawing. Nothing is computed here that the report states in words. */
(function () {
"use strict";
var root = document.documentElement;
var selfcheck = /selfcheck/.test(location.hash);
var plots = [];
var doc = null;
var state = [];

function $(selector, from) { return Array.prototype.slice.call((from || document).querySelectorAll(selector)); }
function css(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }
function make(tag, text, parent) {
  var e = document.createElement(tag);
  if (text !== undefined) { e.textContent = text; }
  if (parent) { parent.appendChild(e); }
  return e;
}
function button(text, parent, action, label) {
  var b = make("button", text, parent);
  b.type = "button";
  if (label) { b.setAttribute("aria-label", label); b.title = label; }
  b.addEventListener("click", function () { action(b); });
  return b;
}

/* Data: plain JSON, or gzip in base64. */
function load() {
  var holder = document.getElementById("data");
  if (holder.type === "application/json") { return Promise.resolve(JSON.parse(holder.textContent)); }
  if (typeof DecompressionStream === "undefined") {
    return Promise.reject(new Error("this browser cannot unpack the data (no DecompressionStream)"));
  }
  var raw = atob(holder.textContent.trim());
  var bytes = new Uint8Array(raw.length);
  for (var i = 0; i < raw.length; i++) { bytes[i] = raw.charCodeAt(i); }
  var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text().then(JSON.parse);
}
function words(runs) {
  var out = [];
  runs.forEach(function (r) { for (var i = 0; i < r[1]; i++) { out.push(r[0]); } });
  return out;
}

/* Numbers. */
function num(v) {
  if (v === null || v === undefined) { return "\u2013"; }
  var a = Math.abs(v);
  if (a >= 100) { return Math.round(v).toLocaleString("en-US"); }
  return v.toFixed(a >= 10 ? 1 : a >= 1 || a === 0 ? 2 : 3);
}
function tick(v) {
  if (v === null) { return ""; }
  var a = Math.abs(v);
  var s = a >= 1e9 ? [1e9, "G"] : a >= 1e6 ? [1e6, "M"] : a >= 1e4 ? [1e3, "k"] : [1, ""];
  return String(+(v / s[0]).toPrecision(4)) + s[1];
}
function quantile(x) {
  if (x <= 1) { return "0 %"; }
  var digits = Math.max(0, Math.ceil(Math.log10(x) - 2 - 1e-9));
  return (100 * (1 - 1 / x)).toFixed(digits) + " %";
}

/* The cells shown in a step: of the chosen repeat, without switched-off targets. */
function shown(step, index) {
  var s = state[index];
  return step.cells.filter(function (c) {
    var repeat = s.repeat === "median" ? c.shown : s.repeat === "all" || c.repeat === +s.repeat;
    return repeat && !s.off[c.target];
  }).sort(function (a, b) { return a.target - b.target || a.repeat - b.repeat; });
}
function color(target) { return css("--s" + doc.targets[target].color); }
function label(cell, index, word) {
  var name = doc.targets[cell.target].name;
  if (state[index].repeat === "all") { name += " r" + cell.repeat; }
  if (!cell.valid) { name += " (invalid)"; }
  return word ? name + " " + word : name;
}

/* The cursor's value of a series is the nearest known one: targets have no seconds in common. */
function nearest(u, series, index) {
  var ys = u.data[series], known = function (i) { return ys[i] !== null && ys[i] !== undefined; };
  if (series === 0 || index === null || known(index)) { return index; }
  for (var d = 1; d < 12; d++) {
    if (known(index - d)) { return index - d; }
    if (known(index + d)) { return index + d; }
  }
  return index;
}
function base(host, unit, options) {
  var ink = css("--soft"), line = css("--line");
  var axis = function (extra) {
    extra.filter = extra.filter || function (u, splits) { return splits; };
    return Object.assign({ stroke: ink, grid: { stroke: line, width: 1, filter: extra.filter },
      ticks: { stroke: line, width: 1, size: 4, filter: extra.filter },
      font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif", labelSize: 16 }, extra);
  };
  var wide = host.parentNode.classList.contains("wide");
  return {
    width: Math.max(200, host.clientWidth),
    height: wide ? 250 : 190,
    padding: [8, options.right || 16, 0, 0],
    cursor: { dataIdx: nearest, points: { size: 5 }, drag: { x: true, y: false, setScale: true },
      sync: options.sync ? { key: options.sync, setSeries: false } : undefined },
    legend: { live: true },
    scales: options.scales,
    axes: [
      axis({ values: options.xvalues, splits: options.xsplits, filter: options.xfilter, label: options.xlabel, size: 26, gap: 3, space: 60 }),
      axis({ values: options.yvalues || function (u, vs) { return vs.map(tick); }, size: 50, gap: 3, label: unit, space: 28,
        filter: options.yfilter })
    ],
    hooks: options.hooks || {}
  };
}
function log10Only(u, splits) {
  return splits.map(function (v) {
    var e = Math.log10(v);
    return Math.abs(e - Math.round(e)) < 1e-6 ? v : null;
  });
}

/* A single second makes no line: it is drawn as a point. */
function alone(ys) { return ys.filter(function (v) { return v !== null && v !== undefined; }).length === 1; }

/* On a logarithmic axis of rates a second without any stands at its foot. */
function foot(columns) {
  var least = Infinity;
  columns.forEach(function (ys) { ys.forEach(function (v) { if (v > 0 && v < least) { least = v; } }); });
  return least === Infinity ? 1 : Math.pow(10, Math.floor(Math.log10(least)));
}
function raise(columns) {
  var low = foot(columns);
  return columns.map(function (ys) { return ys.map(function (v) { return v === null || v === undefined || v > low ? v : low; }); });
}
function decades(u, lo, hi) {
  if (lo === null || hi === null) { return [1, 10]; }
  var a = Math.floor(Math.log10(lo) + 1e-9), b = Math.ceil(Math.log10(hi) - 1e-9);
  return [Math.pow(10, a), Math.pow(10, Math.max(b, a + 1))];
}

function timePlot(host, stepIndex, step, panel) {
  var log = panel.main ? state[stepIndex].log : panel.log;
  var cells = shown(step, stepIndex), tables = [], series = [{ label: "second", value: function (u, v) { return v === null ? "\u2013" : String(Math.ceil(v)); } }];
  cells.forEach(function (cell) {
    [[panel.solid, false], [panel.dashed, true]].forEach(function (part) {
      var column = cell.columns[part[0][0]];
      if (!column) { return; }
      var phase = words(cell.columns.phase), back = panel.flow ? doc.group / 2 : 0;
      tables.push([cell.columns.t.map(function (t) { return Math.max(t - back, t / 2); }), column.map(function (v, i) {
        var hidden = v === null || (log && !panel.main && v <= 0) || (panel.load_only && (phase[i] === "settle" || (cell.whole && i >= cell.whole)));
        return hidden ? null : v / panel.div;
      })]);
      series.push({ label: label(cell, stepIndex, panel.dashed[0] ? part[0][1] : ""), stroke: color(cell.target),
        width: part[1] ? 1 : 1.5, dash: part[1] ? [4, 3] : undefined, points: { show: alone(tables[tables.length - 1][1]), size: 6, fill: color(cell.target) },
        value: function (u, v) { return num(v); } });
    });
  });
  if (!tables.length) { return null; }
  var bands = function (u) {
    var ctx = u.ctx, box = u.bbox, lane = 0, seen = {};
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, box.top, box.width, box.height);
    ctx.clip();
    cells.forEach(function (cell) {
      if (seen[cell.target] === undefined) { seen[cell.target] = lane++; }
      ctx.fillStyle = color(cell.target);
      cell.stalls.forEach(function (s) {
        var a = u.valToPos(s[0], "x", true), b = u.valToPos(s[0] + s[1], "x", true);
        ctx.globalAlpha = 0.13;
        ctx.fillRect(a, box.top, Math.max(1, b - a), box.height);
        ctx.globalAlpha = 0.9;
        ctx.fillRect(a, box.top + seen[cell.target] * 4 * devicePixelRatio, Math.max(2, b - a), 3 * devicePixelRatio);
      });
    });
    ctx.restore();
  };
  var limit = function (u) {
    var y = u.valToPos(doc.cap / panel.div, "y", true), ctx = u.ctx, box = u.bbox;
    ctx.save();
    ctx.strokeStyle = css("--alarm");
    ctx.setLineDash([6 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(box.left, y);
    ctx.lineTo(box.left + box.width, y);
    ctx.stroke();
    ctx.restore();
  };
  var hooks = {};
  if (panel.main) { hooks.drawAxes = [bands]; }
  if (panel.cap && doc.cap) { hooks.draw = [limit]; }
  var top = panel.cap && doc.cap ? doc.cap / panel.div : 0;
  if (log && panel.main) {
    var raised = raise(tables.map(function (t) { return t[1]; }));
    tables.forEach(function (t, i) { t[1] = raised[i]; });
  }
  var y = log ? { distr: 3, range: panel.main ? decades : undefined } : { range: function (u, lo, hi) { return [0, Math.max(hi || 1, top) * 1.06]; } };
  var options = base(host, panel.unit, {
    sync: "step" + stepIndex, scales: { x: { time: false }, y: y }, hooks: hooks,
    yfilter: log ? log10Only : undefined
  });
  options.series = series;
  return new uPlot(options, uPlot.join(tables), host);
}

function kneePlot(host, stepIndex, step) {
  var log = state[stepIndex].log, tables = [], series = [{ label: "rows", value: function (u, v) { return v === null ? "\u2013" : tick(v); } }], bands = [];
  step.knee.forEach(function (k) {
    if (state[stepIndex].off[k.target]) { return; }
    var stroke = color(k.target), at = series.length;
    tables.push([k.x, k.high, k.low, k.y]);
    series.push({ label: "", show: true, width: 0, stroke: "transparent", points: { show: false } });
    series.push({ label: "", show: true, width: 0, stroke: "transparent", points: { show: false } });
    series.push({ label: doc.targets[k.target].name, stroke: stroke, width: 1.8, points: { show: false },
      value: function (u, v) { return num(v); } });
    bands.push({ series: [at, at + 1], fill: stroke + "2e" });
  });
  if (!tables.length) { return null; }
  var options = base(host, "rows/s", {
    xvalues: function (u, vs) { return vs.map(tick); },
    yfilter: log ? log10Only : undefined,
    scales: { x: { time: false }, y: log ? { distr: 3, range: decades } : { range: function (u, lo, hi) { return [0, (hi || 1) * 1.06]; } } }
  });
  options.series = series;
  options.bands = bands;
  var plot = new uPlot(options, uPlot.join(tables), host);
  $(".u-series", host).forEach(function (row, i) { if (i && !series[i].label) { row.style.display = "none"; } });
  return plot;
}

function spectrumPlot(host, stepIndex, step, kind) {
  var tables = [], series = [{ label: "quantile", value: function (u, v) { return v === null ? "\u2013" : quantile(v); } }];
  step[kind].forEach(function (s) {
    if (state[stepIndex].off[s.target]) { return; }
    tables.push([s.x, s.y]);
    series.push({ label: doc.targets[s.target].name, stroke: color(s.target), width: 1.6, points: { show: false },
      value: function (u, v) { return num(v); } });
  });
  if (!tables.length) { return null; }
  var options = base(host, "ms", {
    xvalues: function (u, vs) { return vs.map(function (v) { return v === null ? "" : quantile(v); }); },
    xfilter: log10Only, yfilter: log10Only, right: 24,
    scales: { x: { time: false, distr: 3 }, y: { distr: 3 } }
  });
  options.series = series;
  return new uPlot(options, uPlot.join(tables), host);
}

function draw(figure) {
  var entry = plots.find(function (p) { return p.figure === figure; });
  if (entry) { entry.plot.destroy(); plots.splice(plots.indexOf(entry), 1); }
  var host = figure.querySelector(".live"), index = +figure.dataset.step, step = doc.steps[index];
  figure.classList.add("drawn");
  host.textContent = "";
  try {
    var kind = figure.dataset.kind, plot;
    if (kind === "time") {
      var panel = step.panels.find(function (p) { return p.id === figure.dataset.panel; });
      plot = timePlot(host, index, step, panel);
    } else if (kind === "knee") {
      plot = kneePlot(host, index, step);
    } else {
      plot = spectrumPlot(host, index, step, kind);
    }
    if (plot) { plots.push({ figure: figure, host: host, plot: plot }); }
    else { make("p", "No data for this choice.", host).className = "note"; }
  } catch (e) {
    figure.classList.remove("drawn");
    window.reportErrors.push(figure.id + ": " + e.message);
  }
}

/* Figures are drawn when they come near the window: a run of many steps has hundreds. */
var watcher = null;
function schedule(figures) {
  if (selfcheck || typeof IntersectionObserver === "undefined") { figures.forEach(draw); return; }
  watcher = new IntersectionObserver(function (entries) {
    entries.forEach(function (e) {
      if (e.isIntersecting) { watcher.unobserve(e.target); draw(e.target); }
    });
  }, { rootMargin: "800px" });
  figures.forEach(function (f) { watcher.observe(f); });
}
function redraw(index) {
  plots.map(function (p) { return p.figure; }).forEach(function (f) {
    if (index === undefined || +f.dataset.step === index) { draw(f); }
  });
}
function resize() {
  plots.forEach(function (p) {
    var width = Math.max(200, p.host.clientWidth);
    if (width !== p.plot.width) { p.plot.setSize({ width: width, height: p.plot.height }); }
  });
}

function controls() {
  doc.steps.forEach(function (step, index) {
    var box = document.querySelector("[data-controls='" + index + "']");
    if (!box) { return; }
    make("span", "Targets", box);
    doc.targets.forEach(function (target, t) {
      if (!step.cells.some(function (c) { return c.target === t; })) { return; }
      var b = button("", box, function () {
        state[index].off[t] = !state[index].off[t];
        b.setAttribute("aria-pressed", String(!state[index].off[t]));
        redraw(index);
      });
      make("i", "", b).className = "sw b" + target.color;
      b.appendChild(document.createTextNode(target.name));
      b.setAttribute("aria-pressed", "true");
    });
    var repeats = step.cells.map(function (c) { return c.repeat; }).filter(function (r, i, all) { return all.indexOf(r) === i; }).sort();
    if (repeats.length > 1) {
      var holder = make("label", "Repeat ", box), select = make("select", undefined, holder);
      [["median", "the median one"]].concat(repeats.map(function (r) { return [String(r), String(r)]; }), [["all", "all"]])
        .forEach(function (o) { make("option", o[1], select).value = o[0]; });
      select.addEventListener("change", function () { state[index].repeat = select.value; redraw(index); });
    }
    var scale = button("Log rates", box, function () {
      state[index].log = !state[index].log;
      scale.setAttribute("aria-pressed", String(state[index].log));
      redraw(index);
    });
    scale.className = "scale";
    scale.setAttribute("aria-pressed", String(state[index].log));
    make("span", "Drag to zoom, double-click to reset.", box);
  });
}

/* Tables: copy as TSV or Markdown; tabs for tables of one kind. */
function grid(table) {
  return $("tr", table).map(function (row) {
    return $("th,td", row).map(function (cell) {
      var copy = cell.cloneNode(true);
      $("small,[hidden],svg", copy).forEach(function (e) { e.remove(); });
      var parts = $(".abs,.rel", copy).map(function (e) { return e.textContent.trim(); }).filter(Boolean);
      return (parts.length ? parts.join(" ") : copy.textContent).replace(/\s+/g, " ").trim();
    });
  });
}
function markdown(rows) {
  var line = function (r) { return "| " + r.map(function (c) { return c.replace(/\|/g, "\\|"); }).join(" | ") + " |"; };
  return [line(rows[0]), "|" + rows[0].map(function () { return "---|"; }).join("")].concat(rows.slice(1).map(line)).join("\n");
}
function copy(text, b) {
  var done = function () { var old = b.textContent; b.textContent = "copied"; setTimeout(function () { b.textContent = old; }, 1200); };
  var byHand = function () {
    var area = make("textarea", undefined, document.body);
    area.value = text;
    area.select();
    document.execCommand("copy");
    area.remove();
    done();
  };
  if (navigator.clipboard) { navigator.clipboard.writeText(text).then(done, byHand); } else { byHand(); }
}
function tables() {
  $(".tablebox").forEach(function (box) {
    var table = box.querySelector("table"), bar = make("div");
    bar.className = "copy";
    box.insertBefore(bar, box.firstChild);
    button("TSV", bar, function (b) { copy(grid(table).map(function (r) { return r.join("\t"); }).join("\n"), b); }, "Copy as TSV");
    button("Markdown", bar, function (b) { copy(markdown(grid(table)), b); }, "Copy as Markdown");
  });
  $("[data-tabs]").forEach(function (tabs) {
    var boxes = $(".tablebox", tabs);
    if (boxes.length < 2) { return; }
    var list = make("div");
    list.className = "tablist";
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", "Target of the table");
    var pick = function (which) {
      boxes.forEach(function (b, i) { b.hidden = which !== i && which !== -1; });
      $("button", list).forEach(function (b, i) { b.setAttribute("aria-pressed", String(i === which || (which === -1 && i === boxes.length))); });
    };
    boxes.forEach(function (b, i) {
      button(b.querySelector("caption").textContent.split(",")[0], list, function () { pick(i); });
    });
    button("all", list, function () { pick(-1); });
    tabs.insertBefore(list, tabs.firstChild);
    pick(0);
  });
  var choice = document.getElementById("baseline");
  if (choice) {
    choice.addEventListener("change", function () {
      $(".matrix td").forEach(function (td) {
        $(".rel", td).forEach(function (r, i) { r.hidden = i !== +choice.value; });
      });
    });
  }
}

/* Downloads. */
function save(name, type, text) {
  var a = make("a", "", document.body);
  a.href = URL.createObjectURL(new Blob([text], { type: type }));
  a.download = name;
  a.click();
  setTimeout(function () { URL.revokeObjectURL(a.href); a.remove(); }, 1000);
}
function csv(cell) {
  var names = Object.keys(cell.columns), columns = names.map(function (n) {
    return n === "phase" || n === "activity" ? words(cell.columns[n]) : cell.columns[n];
  });
  var quote = function (v) {
    v = v === null ? "" : String(v);
    return /[",\n]/.test(v) ? "\"" + v.replace(/"/g, "\"\"") + "\"" : v;
  };
  var lines = [names.join(",")];
  cell.columns.t.forEach(function (t, i) { lines.push(columns.map(function (c) { return quote(c[i]); }).join(",")); });
  return lines.join("\n") + "\n";
}
function downloads() {
  var box = document.getElementById("downloads");
  [["summary.json", "summary"], ["manifest.json", "manifest"], ["targets.json", "targetRecords"]].forEach(function (f) {
    button(f[0], box, function () { save(f[0], "application/json", JSON.stringify(doc[f[1]], null, 2)); }, "Download " + f[0]);
  });
  var cells = [];
  doc.steps.forEach(function (s) { s.cells.forEach(function (c) { cells.push(c); }); });
  if (cells.length) {
    var select = make("select", undefined, box);
    select.setAttribute("aria-label", "Series of step");
    cells.forEach(function (c, i) { make("option", c.directory, select).value = i; });
    button("series.csv", box, function () {
      var cell = cells[+select.value];
      save(cell.directory.replace(/[^\w.-]+/g, "_") + ".series.csv", "text/csv", csv(cell));
    }, "Download series.csv of the chosen step");
  }
  $(".plot").forEach(function (figure) {
    var b = button("SVG", figure, function () {
      var svg = figure.querySelector(".static svg").cloneNode(true), style = document.createElementNS("http://www.w3.org/2000/svg", "style");
      style.textContent = standaloneStyle();
      svg.insertBefore(style, svg.firstChild);
      svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
      save(figure.id + ".svg", "image/svg+xml", new XMLSerializer().serializeToString(svg));
    }, "Download this plot as SVG");
    b.className = "save";
  });
}
function standaloneStyle() {
  var out = "text{font:11px system-ui,sans-serif;fill:#444}.grid{stroke:#ddd}.ax{stroke:#999}.ln{fill:none;stroke-width:1.5}" +
    ".da{stroke-dasharray:4 3}.ar{opacity:.18}.bd{opacity:.14}.lim{stroke:#b3261e;stroke-dasharray:6 3}.track{fill:#eee}.wk{stroke:#222}.num{fill:#111}.pale{opacity:.3}";
  var light = JSON.parse(document.getElementById("palette").textContent);
  light.forEach(function (c, i) { out += ".k" + i + "{stroke:" + c + "}.f" + i + "{fill:" + c + "}"; });
  ["#31475e", "#5c7a99", "#8aa5c0", "#b4c8db", "#6b5b4b", "#968470", "#bfae9a", "#d9d0c4"].forEach(function (c, i) {
    out += ".q" + i + "{fill:" + c + "}";
  });
  return out;
}

/* Theme and navigation. */
function theme() {
  document.getElementById("theme").addEventListener("click", function () {
    var dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () { redraw(); });
}
function navigation() {
  if (typeof IntersectionObserver === "undefined") { return; }
  var links = {};
  $("nav a").forEach(function (a) { links[a.getAttribute("href").slice(1)] = a; });
  var spy = new IntersectionObserver(function (entries) {
    entries.forEach(function (e) {
      if (!e.isIntersecting || !links[e.target.id]) { return; }
      $("nav a.here").forEach(function (a) { a.classList.remove("here"); });
      links[e.target.id].classList.add("here");
    });
  }, { rootMargin: "-10% 0px -80% 0px" });
  $("main section").forEach(function (s) { spy.observe(s); });
}

/* Counts the canvases that have something on them; the answer is an attribute of the root. */
function check() {
  var canvases = $(".uplot canvas"), drawn = 0;
  canvases.forEach(function (c) {
    try {
      var pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, colours = {}, count = 0;
      for (var i = 0; i < pixels.length && count < 3; i += 4) {
        if (!pixels[i + 3]) { continue; }
        var key = pixels[i] + "," + pixels[i + 1] + "," + pixels[i + 2];
        if (!colours[key]) { colours[key] = true; count++; }
      }
      if (count >= 3) { drawn++; }
    } catch (e) { window.reportErrors.push(e.message); }
  });
  var overflow = root.scrollWidth - root.clientWidth;
  var sideways = $(".scroll").filter(function (box) { return box.clientWidth < box.scrollWidth; }).map(function (box) {
    var table = box.querySelector("table");
    return (table.id || box.getAttribute("aria-label")) + ": " + box.scrollWidth + " > " + box.clientWidth;
  });
  root.dataset.selfcheck = JSON.stringify({
    canvases: canvases.length, drawn: drawn, figures: $("[data-kind]").length, width: root.clientWidth, overflow: overflow, sideways: sideways, errors: window.reportErrors
  });
  if (window.parent !== window) { window.parent.postMessage(root.dataset.selfcheck, "*"); }
}

function start(value) {
  doc = value;
  state = doc.steps.map(function (step) { return { repeat: "median", off: {}, log: step.log }; });
  controls();
  schedule($("[data-kind]"));
  downloads();
  var timer = 0;
  addEventListener("resize", function () { clearTimeout(timer); timer = setTimeout(resize, 80); });
}
theme();
tables();
navigation();
load().then(start).catch(function (e) { window.reportErrors.push(String(e && e.message || e)); }).then(function () {
  if (selfcheck) { setTimeout(check, 300); }
});
})();
