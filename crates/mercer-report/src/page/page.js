"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const make = (name, properties = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key === "text") element.textContent = value;
      else if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  };
  const draw = (name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const brief = (x) => {
    if (x === null || x === undefined) return "–";
    if (typeof x !== "number") return String(x);
    return x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e6) ? x.toExponential(3) : String(+x.toPrecision(5));
  };
  const colour = (at) => {
    const own = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#332288", "#882255", "#999933", "#4D4D4D"];
    return `var(--mercer-colour-${at % 10}, ${own[at % 10]})`;
  };

  // Light and dark: the system's choice, until the reader chooses.
  const themes = ["system", "light", "dark"];
  const theme = make("button", { type: "button", class: "theme" });
  const show = (name) => {
    if (name === "system") delete root.dataset.theme;
    else root.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
    theme.value = name;
  };
  const stored = () => { try { return localStorage.getItem("mercer-theme"); } catch { return null; } };
  show(themes.includes(stored()) ? stored() : "system");
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(theme.value) + 1) % themes.length];
    show(next);
    try { localStorage.setItem("mercer-theme", next); } catch { /* a page from a file may have no storage */ }
  });
  const list = document.querySelector("nav ul");
  if (list) list.append(make("li", {}, theme));
  all(".browser .all").forEach((details) => details.removeAttribute("open"));
  // On paper nothing can be unfolded: findings and samples are there in full.
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = all("#findings details, .browser .all").filter((details) => !details.open);
    unfolded.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => {
    unfolded.forEach((details) => { details.open = false; });
    unfolded = [];
  });

  // Saving.
  const save = (name, type, text) => {
    const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const quoted = (cell) => {
    const text = cell === null || cell === undefined ? "" : String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (rows) => rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  const standalone = (svg) => {
    const copy = svg.cloneNode(true);
    all(".ring", copy).forEach((ring) => ring.remove());
    const [x, y, width, height] = svg.getAttribute("viewBox").split(" ");
    for (const [name, value] of [["xmlns", SVG], ["color", "#222"], ["height", height],
      ["font-family", "system-ui, Helvetica, Arial, sans-serif"]]) copy.setAttribute(name, value);
    copy.prepend(draw("rect", { x, y, width, height, fill: "#fff" }));
    for (const element of [copy, ...all("*", copy)]) {
      element.classList.remove("fade", "turn", "wide");
      if (!element.classList.length) element.removeAttribute("class");
      for (const name of ["fill", "stroke"]) {
        const found = /^var\(--mercer-colour-\d+, (#[0-9A-Fa-f]{6})\)$/.exec(element.getAttribute(name) || "");
        if (found) element.setAttribute(name, found[1]);
      }
    }
    return new XMLSerializer().serializeToString(copy);
  };
  const naming = (axis, x) => Array.isArray(axis.scale) ? axis.scale[Math.round(x)] ?? x : x;
  const rows = (data) => {
    if (data.kind === "heat") {
      const found = [["row", "column", "value"]];
      data.values.forEach((value, at) => {
        const [row, column] = [Math.floor(at / data.n_columns), at % data.n_columns];
        found.push([data.rows[row] ?? row, data.columns[column] ?? column, value]);
      });
      return found;
    }
    const extra = data.kind === "space" ? ["z"] : ["low", "high", "q1", "q3", "mean"].filter((key) => data.series.some((s) => s[key]));
    const labels = data.kind === "space" ? data.labels : [data.x.label || "x", data.y.label || "y"];
    const found = [["series", ...labels, ...(data.kind === "space" ? [] : extra)]];
    for (const series of data.series) {
      series.x.forEach((x, at) => {
        const point = data.kind === "space"
          ? ["x", "y", "z"].map((key, k) => data.ends[k][0] + (series[key][at] + 0.5) * (data.ends[k][1] - data.ends[k][0]))
          : [naming(data.x, x), series.y[at], ...extra.map((key) => series[key] ? series[key][at] : "")];
        found.push([series.name, ...point]);
      });
    }
    return found;
  };

  // Tables: sorted by a click on a heading, filtered by a text.
  const number = (text) => parseFloat(text.replaceAll(",", "").replaceAll("−", "-"));
  const upgrade = (box) => {
    const table = box.querySelector("table");
    const body = table.tBodies[0];
    const original = [...body.rows];
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", table.caption.textContent);
    all("th", table.tHead).forEach((head, column) => {
      const name = head.textContent;
      head.replaceChildren(make("button", { type: "button", text: name, on: { click: () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        all("th", table.tHead).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const numeric = head.classList.contains("n");
        const key = (row) => row.cells[column] ? row.cells[column].textContent : "";
        const order = (a, b) => {
          if (!numeric) return key(a).localeCompare(key(b), undefined, { numeric: true });
          const [x, y] = [number(key(a)), number(key(b))];
          return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : x - y;
        };
        const sorted = [...original].sort(order);
        body.append(...(down ? sorted.reverse() : sorted));
      } } }));
    });
    if (original.length < 6) return;
    const input = make("input", { type: "search", on: { input: () => {
      const wanted = input.value.toLowerCase();
      original.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
    } } });
    box.before(make("label", { class: "filter", text: "Filter " }, input));
  };
  all(".table").forEach(upgrade);

  // Figures: values under the pointer, series that belong together, saving, turning.
  const tip = make("div", { class: "tip", role: "status", hidden: "" });
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  const tell = (text, event) => {
    tip.textContent = text;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };
  const local = (svg, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const place = (axis, value) => {
    const x = axis.scale === "log" ? Math.log10(value) : value;
    return (x - axis.ends[0]) / (axis.ends[1] - axis.ends[0]);
  };
  const pixel = (data, x, y) => {
    const [left, top, width, height] = data.area;
    return [left + place(data.x, x) * width, top + (1 - place(data.y, y)) * height];
  };
  const nearest = (data, x, y) => {
    let best = null;
    for (const series of data.series) {
      series.x.forEach((own, at) => {
        const [px, py] = data.kind === "space" ? series.at[at] : pixel(data, own, series.y[at]);
        const far = Math.hypot(px - x, py - y);
        if (!best || far < best.far) best = { far, series, at, px, py };
      });
    }
    return best;
  };
  const said = (data, found) => {
    const { series, at } = found;
    const name = series.name ? `${series.name}\n` : "";
    if (data.kind === "space") {
      const value = (key, k) => data.ends[k][0] + (series[key][at] + 0.5) * (data.ends[k][1] - data.ends[k][0]);
      return name + data.labels.map((label, k) => `${label}: ${brief(value(["x", "y", "z"][k], k))}`).join("\n");
    }
    let text = `${name}${data.x.label || "x"}: ${brief(naming(data.x, series.x[at]))}\n${data.y.label || "y"}: ${brief(series.y[at])}`;
    if (series.low) text += `\n${series.q1 ? "whiskers" : "range"}: ${brief(series.low[at])} to ${brief(series.high[at])}`;
    return text;
  };
  const figures = new Map();
  let chosen = null;
  const choosers = [];
  const only = (name) => {
    chosen = name;
    choosers.forEach((select) => {
      const own = [...select.options].findIndex((option, at) => at > 0 && option.textContent === chosen);
      select.selectedIndex = Math.max(0, own);
    });
    for (const { svg, data } of figures.values()) {
      if (!data || !data.series) continue;
      const linked = chosen !== null && data.series.some((series) => series.name === chosen);
      all("[data-series]", svg).forEach((group) => {
        const own = data.series[+group.dataset.series];
        group.classList.toggle("fade", linked && own !== undefined && own.name !== chosen);
      });
    }
  };
  const choose = (name) => only(chosen === name ? null : name);
  const picked = [];

  const turnable = (svg, data) => {
    const area = all("svg", svg)[0];
    if (!area) return null;
    let [round, up] = [Math.PI / 4, Math.asin(1 / Math.sqrt(3))];
    const [, , width, height] = data.area;
    const unit = Math.min(width / 2.4, height / 2.25);
    const project = ([x, y, z]) => {
      const across = -x * Math.sin(round) + y * Math.cos(round);
      const deep = x * Math.cos(round) + y * Math.sin(round);
      return [width / 2 + across * unit * 1.22, height / 2 - (z * Math.cos(up) - deep * Math.sin(up)) * unit * 1.22, deep * Math.cos(up) + z * Math.sin(up)];
    };
    const paint = () => {
      area.replaceChildren();
      const corner = (bits) => [0, 1, 2].map((k) => (bits >> k & 1 ? 0.5 : -0.5));
      for (let from = 0; from < 8; from++) {
        for (let k = 0; k < 3; k++) {
          if (from >> k & 1) continue;
          const [a, b] = [project(corner(from)), project(corner(from | 1 << k))];
          area.append(draw("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: "currentColor", "stroke-opacity": 0.22 }));
        }
      }
      data.labels.forEach((label, k) => {
        const end = [-0.5, -0.5, -0.5];
        end[k] = 0.62;
        const [x, y] = project(end);
        area.append(draw("text", { x, y, "font-size": 11, "text-anchor": "middle" }, label));
      });
      const points = [];
      data.series.forEach((series, s) => {
        series.at = series.x.map((x, at) => {
          const [px, py, depth] = project([x, series.y[at], series.z[at]]);
          points.push([depth, px, py, s]);
          return [px + data.area[0], py + data.area[1]];
        });
      });
      points.sort((a, b) => a[0] - b[0]);
      const few = points.length > 1500 ? 1.6 : 2.6;
      for (const [, cx, cy, s] of points) {
        const own = data.series[s];
        const dot = draw("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: few, fill: colour(own.colour), "fill-opacity": 0.75, "data-series": s });
        if (chosen !== null && own.name !== chosen && data.series.some((other) => other.name === chosen)) dot.classList.add("fade");
        area.append(dot);
      }
      if (data.mark) {
        const inside = data.mark.map((value, k) => (value - data.ends[k][0]) / (data.ends[k][1] - data.ends[k][0]) - 0.5);
        const [cx, cy] = project(inside);
        area.append(draw("circle", { class: "ring", cx, cy, r: 8 }));
      }
    };
    svg.classList.add("turn");
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-roledescription", "points in space; arrow keys turn them");
    let held = null;
    svg.addEventListener("pointerdown", (event) => { held = event; svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointerup", () => { held = null; });
    svg.addEventListener("pointermove", (event) => {
      if (!held) return;
      round -= (event.clientX - held.clientX) / 120;
      up = Math.max(-1.5, Math.min(1.5, up + (event.clientY - held.clientY) / 120));
      held = event;
      hide();
      paint();
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [0.15, 0], ArrowRight: [-0.15, 0], ArrowUp: [0, 0.15], ArrowDown: [0, -0.15] }[event.key];
      if (!step) return;
      event.preventDefault();
      round += step[0];
      up = Math.max(-1.5, Math.min(1.5, up + step[1]));
      paint();
    });
    paint();
    return paint;
  };

  const prepare = (svg, panel, name, at) => {
    const metadata = svg.querySelector("metadata");
    const data = metadata ? JSON.parse(metadata.textContent) : null;
    const own = { svg, data, figure: name };
    figures.set(`${name}-${at}`, own);
    const [, , width] = svg.getAttribute("viewBox").split(" ").map(Number);
    if (width > 560) svg.classList.add("wide");
    const file = at ? `${name}-${at + 1}` : name;
    const tools = make("div", { class: "tools" });
    tools.append(make("button", { type: "button", text: "SVG", "aria-label": `Save ${file} as SVG`,
      on: { click: () => save(`${file}.svg`, "image/svg+xml", standalone(svg)) } }));
    if (data) tools.append(make("button", { type: "button", text: "CSV", "aria-label": `Save the data of ${file} as CSV`,
      on: { click: () => save(`${file}.csv`, "text/csv", csv(rows(data))) } }));
    panel.append(tools);
    if (!data) return;
    // For readers without a pointer: the names of the legend as a list, and the values as a table.
    const names = [...new Set((data.series || []).map((series) => series.name).filter(Boolean))];
    if (names.length > 1) {
      const select = make("select", { "aria-label": `Show one of the series of ${file} alone`, on: { change: () => only(select.selectedIndex ? select.value : null) } },
        make("option", { value: "", text: "all" }), ...names.map((own) => make("option", { value: own, text: own })));
      choosers.push(select);
      tools.prepend(select);
    }
    const listing = make("button", { type: "button", text: "Table", "aria-expanded": "false", "aria-label": `The data of ${file} as a table`,
      on: { click: () => {
        const open = panel.querySelector(".values");
        listing.setAttribute("aria-expanded", String(!open));
        if (open) return open.remove();
        const [head, ...all] = rows(data);
        const table = make("table", {},
          make("caption", { text: all.length > 500 ? `The first 500 of ${all.length} values; the CSV has all` : "The values" }),
          make("thead", {}, make("tr", {}, ...head.map((name, at) => make("th", { scope: "col", class: at ? "n" : "", text: name })))),
          make("tbody", {}, ...all.slice(0, 500).map((row) => make("tr", {}, ...row.map((cell, at) => make("td", { class: at ? "n" : "", text: brief(cell) }))))));
        const box = make("div", { class: "values" }, make("div", { class: "table" }, table));
        panel.append(box);
        upgrade(box.firstElementChild);
      } } });
    tools.append(listing);
    if (data.kind === "space") own.paint = turnable(svg, data);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("pointermove", (event) => {
      if (event.buttons) return;
      const point = local(svg, event);
      const [left, top, wide, high] = data.area;
      const inside = point.x >= left - 6 && point.x <= left + wide + 6 && point.y >= top - 6 && point.y <= top + high + 6;
      if (!inside) return hide();
      if (data.kind === "heat") {
        const n = Math.max(1, data.values.length / data.n_columns);
        const column = Math.min(data.n_columns - 1, Math.max(0, Math.floor((point.x - left) / wide * data.n_columns)));
        const row = Math.min(n - 1, Math.max(0, Math.floor((point.y - top) / high * n)));
        return tell(`${data.rows[row] ?? row} × ${data.columns[column] ?? column}\n${brief(data.values[row * data.n_columns + column])}`, event);
      }
      const found = nearest(data, point.x, point.y);
      if (found && found.far < 40) tell(said(data, found), event);
      else hide();
    });
    svg.addEventListener("click", (event) => {
      if (!data.series) return;
      const point = local(svg, event);
      const found = nearest(data, point.x, point.y);
      // A name in the legend is above the data.
      const text = event.target.tagName === "text" ? event.target.textContent : "";
      const starts = (name) => text.length > 1 && text.endsWith("…") && name.startsWith(text.slice(0, -1));
      const label = text && data.series.find((series) => series.name && (series.name === text || starts(series.name)));
      if (label) return choose(label.name);
      if (!found || found.far > 12) return;
      if (picked.some((pick) => pick(name, found.series.x[found.at], found.series.y[found.at]))) return;
      if (found.series.name) choose(found.series.name);
    });
  };
  for (const figure of all("figure")) {
    all(".panels", figure).forEach((panels, step) => {
      all(".panel", panels).forEach((panel, at) => {
        const svg = panel.querySelector("svg");
        const name = step && panels.classList.contains("later") ? `${figure.id}-step${step}` : figure.id;
        if (svg) prepare(svg, panel, name, at);
      });
    });
    const slider = figure.querySelector(".slider input");
    if (!slider) continue;
    const names = JSON.parse(slider.dataset.names);
    const output = figure.querySelector(".slider output");
    slider.addEventListener("input", () => {
      all(".panels", figure).forEach((panels, at) => panels.classList.toggle("later", at !== +slider.value));
      output.textContent = names[+slider.value];
      slider.setAttribute("aria-valuetext", names[+slider.value]);
    });
  }

  // Samples: one is picked, and shown with everything that is known about it.
  const boxes = (distribution) => {
    const numbers = distribution.flatMap(([, values]) => values).filter((x) => x !== null);
    let [low, high] = [Math.min(0, ...numbers), Math.max(0, ...numbers)];
    if (!(high > low)) high = low + 1;
    const [left, wide, step] = [110, 330, 18];
    const at = (x) => left + (x - low) / (high - low) * wide;
    const svg = draw("svg", { viewBox: `0 0 460 ${distribution.length * step + 24}`, role: "img", fill: "currentColor",
      "aria-label": "The distribution of attributions by group: " + distribution.map(([name, values]) => `${name} median ${brief(values[2])}`).join(", ") });
    svg.append(draw("line", { x1: at(0), x2: at(0), y1: 0, y2: distribution.length * step, stroke: "currentColor", "stroke-opacity": 0.35 }));
    distribution.forEach(([name, [bottom, q1, median, q3, top, mean]], row) => {
      const y = row * step + step / 2;
      svg.append(draw("text", { x: left - 8, y: y + 4, "font-size": 11, "text-anchor": "end" }, name.length > 16 ? `${name.slice(0, 15)}…` : name));
      if (q1 === null) return;
      svg.append(draw("line", { x1: at(bottom), x2: at(top), y1: y, y2: y, stroke: colour(0) }));
      svg.append(draw("rect", { x: at(q1), width: Math.max(1, at(q3) - at(q1)), y: y - 5, height: 10, fill: colour(0), "fill-opacity": 0.35, stroke: colour(0) }));
      svg.append(draw("line", { x1: at(median), x2: at(median), y1: y - 5, y2: y + 5, stroke: colour(0), "stroke-width": 2 }));
      svg.append(draw("circle", { cx: at(mean), cy: y, r: 2.4, fill: colour(1) }));
    });
    for (const [x, anchor] of [[low, "start"], [high, "end"]]) svg.append(draw("text", { x: at(x), y: distribution.length * step + 16, "font-size": 10.5, "text-anchor": anchor }, brief(x)));
    return svg;
  };
  const bars = (probabilities) => {
    const two = probabilities.some(([, , other]) => other !== null);
    const [left, wide, step] = [110, 280, two ? 24 : 16];
    const svg = draw("svg", { viewBox: `0 0 460 ${probabilities.length * step + 4}`, role: "img", fill: "currentColor",
      "aria-label": "Probabilities: " + probabilities.map(([name, own, other]) => `${name} ${brief(own)}${other === null ? "" : `, with uncertainty ${brief(other)}`}`).join("; ") });
    probabilities.forEach(([name, own, other], row) => {
      const y = row * step + 2;
      svg.append(draw("text", { x: left - 8, y: y + step / 2 + 3, "font-size": 11, "text-anchor": "end" }, name.length > 16 ? `${name.slice(0, 15)}…` : name));
      [own, other].forEach((value, at) => {
        if (value === null) return;
        svg.append(draw("rect", { x: left, y: y + at * 10, width: Math.max(0.5, value * wide), height: 8, fill: colour(at), "fill-opacity": 0.8 }));
        svg.append(draw("text", { x: left + value * wide + 5, y: y + at * 10 + 8, "font-size": 10 }, value.toFixed(3)));
      });
    });
    return svg;
  };
  for (const section of all(".browser")) {
    const { samples, pictures } = JSON.parse(section.querySelector("script").textContent);
    if (!samples.length) continue;
    const image = (at, label) => at === null || at === undefined ? "" : make("img", { src: `data:image/png;base64,${pictures[at]}`, alt: label });
    const block = (title, ...children) => make("div", {}, make("h3", { text: title }), ...children);
    const detail = make("div", { class: "detail", "aria-live": "polite" });
    const options = make("div", { role: "listbox", "aria-label": section.querySelector("h2").textContent, tabindex: "0" });
    const reasons = [...new Set(samples.flatMap((sample) => sample.why))];
    const select = make("select", { "aria-label": "Which samples" }, make("option", { value: "", text: `all ${samples.length} samples` }),
      ...reasons.map((why) => make("option", { value: why, text: `${why} (${samples.filter((sample) => sample.why.includes(why)).length})` })));
    let current = -1;
    const visible = () => all("[role=option]", options).filter((option) => !option.hidden);
    const showSample = (at) => {
      current = at;
      const sample = samples[at];
      all("[role=option]", options).forEach((option) => {
        const own = +option.dataset.at === at;
        option.setAttribute("aria-selected", own);
        if (own) {
          options.setAttribute("aria-activedescendant", option.id);
          if (option.offsetTop < options.scrollTop + options.offsetTop || option.offsetTop + option.offsetHeight > options.scrollTop + options.offsetTop + options.offsetHeight) {
            options.scrollTop = option.offsetTop - options.offsetTop - 60;
          }
        }
      });
      const facts = make("dl", {}, ...sample.facts.map(([name, text]) => make("div", {}, make("dt", { text: name }), make("dd", { text }))));
      const parts = [make("div", { class: "whole" }, image(sample.picture, `sample ${sample.name}`), make("div", {}, make("h3", { text: `Sample ${sample.name}`, title: sample.whole || "" }), facts))];
      if (sample.text) parts.push(make("blockquote", { text: sample.text }));
      if (sample.warning) parts.push(make("p", { class: "warning", text: sample.warning }));
      if (sample.examples.length) {
        parts.push(block("Training samples that matter most", make("ul", { class: sample.examples.some((one) => one[4]) ? "strip read" : sample.examples.some((one) => one[3] !== null) ? "strip" : "strip plain" },
          ...sample.examples.map(([name, label, value, picture, text]) => make("li", {}, image(picture, ""), text ? make("q", { text }) : "",
            make("span", { text: `${label} (${name}) ${value > 0 ? "+" : ""}${brief(value)}` }))))));
      }
      if (sample.distribution.length) parts.push(block("Attribution by class of training samples", boxes(sample.distribution)));
      if (sample.probabilities.length) parts.push(block(sample.probabilities.some((one) => one[2] !== null) ? "Probability: network, and with uncertainty" : "Probability", bars(sample.probabilities)));
      if (sample.coordinates.length) parts.push(block("Eigenfunctions", make("dl", {}, ...sample.coordinates.map(([name, x]) => make("div", {}, make("dt", { text: name }), make("dd", { text: brief(x) }))))));
      detail.replaceChildren(...parts);
      all(".ring").forEach((ring) => ring.remove());
      for (const own of figures.values()) {
        const mark = own.data && sample.marks.find(([figure]) => figure === own.figure);
        if (own.data) own.data.mark = mark ? mark[1] : null;
        if (own.data && own.data.kind === "space" && own.paint) own.paint();
        if (!mark || own.data.kind !== "plot" || mark[1].length !== 2) continue;
        const [cx, cy] = pixel(own.data, ...mark[1]);
        own.svg.append(draw("circle", { class: "ring", cx, cy, r: 8 }));
      }
    };
    samples.forEach((sample, at) => {
      const option = make("div", { role: "option", id: `${section.id}-${at}`, "data-at": at, "aria-selected": "false",
        on: { click: () => showSample(at) } }, image(sample.picture, ""), make("span", { text: sample.name }),
      ...(sample.text && sample.picture === null ? [make("span", { class: "start", text: sample.text.slice(0, 60) })] : []));
      options.append(option);
    });
    options.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const shown = visible().map((option) => +option.dataset.at);
      const next = shown[Math.max(0, Math.min(shown.length - 1, shown.indexOf(current) + step))];
      if (next !== undefined) showSample(next);
    });
    select.addEventListener("change", () => {
      all("[role=option]", options).forEach((option) => { option.hidden = select.value !== "" && !samples[+option.dataset.at].why.includes(select.value); });
      const shown = visible();
      if (shown.length && !shown.some((option) => +option.dataset.at === current)) showSample(+shown[0].dataset.at);
    });
    picked.push((figure, x, y) => {
      const close = (a, b) => Math.abs(a - b) <= 1e-4 * Math.max(1, Math.abs(a));
      const at = samples.findIndex((sample) => sample.marks.some(([own, [u, v]]) => own === figure && u !== null && v !== null && close(u, x) && close(v, y)));
      if (at < 0) return false;
      showSample(at);
      section.scrollIntoView({ block: "nearest" });
      return true;
    });
    section.querySelector(".pick").append(make("div", { class: "picker" }, make("div", { class: "choose" }, select, options), detail));
    showSample(0);
  }
})();
