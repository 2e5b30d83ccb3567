// What the page adds for those who point, press or type: sorting, tooltips, and stepping through the figures. Text only ever
// enters the page as text (textContent), so that names from the data cannot become markup.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const said = document.getElementById("said");

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  // title, then rows of [name, value, colour number]; at a place in the window
  function showTip(title, rows, x, y) {
    const lines = rows.map(([name, value, colour]) => {
      const line = element("div");
      const left = element("span", name);
      if (colour !== undefined) left.prepend(element("i", "", "c" + colour));
      line.append(left, element("span", value));
      return line;
    });
    tip.replaceChildren(element("strong", title), ...lines);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const right = x + 16 + width < document.documentElement.clientWidth - 4;
    tip.style.left = Math.max(4, right ? x + 16 : x - 16 - width) + "px";
    tip.style.top = Math.max(4, Math.min(y - height / 2, window.innerHeight - height - 4)) + "px";
  }

  // A figure that answers to the pointer and to arrow keys: `find` turns a pointer into a number, `step` a key into the next one.
  function explore(target, find, step, show, hide) {
    let at = null, byKey = false;
    const leave = () => { at = null; tip.hidden = true; hide(); };
    const tell = () => {
      const { title, rows, x, y } = show(at);
      showTip(title, rows, x, y);
      if (byKey) said.textContent = title + ": " + rows.map(([name, value]) => name + " " + value).join(", ");
    };
    const point = (event) => {
      at = find(event);
      byKey = false;
      if (at === null) leave(); else tell();
    };
    target.addEventListener("pointermove", point);
    target.addEventListener("pointerdown", point);
    target.addEventListener("pointerleave", leave);
    target.addEventListener("blur", leave);
    target.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return leave();
      const next = step(event.key, at);
      if (next === null) return;
      event.preventDefault();
      at = next;
      byKey = true;
      tell();
    });
    // the figure moves away under a resting pointer, but a reader at the keyboard stays where they are
    window.addEventListener("scroll", () => { if (at !== null) (byKey ? tell : leave)(); }, { passive: true });
  }

  for (const [id, chart] of Object.entries(data.charts)) {
    const figure = document.getElementById(id);
    const area = figure.querySelector(".area");
    const heads = [...figure.querySelectorAll("thead th")].map((head) => head.textContent);
    const table = figure.querySelector("tbody");
    const cross = element("div", "", "cross");
    const dots = chart.colours.map((colour) => element("i", "", "dot c" + colour));
    for (const mark of [cross, ...dots]) { mark.hidden = true; area.append(mark); }
    const last = chart.x.length - 1;
    const find = (event) => {
      const box = area.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * 1000;
      let best = 0;
      chart.x.forEach((value, index) => { if (Math.abs(value - x) < Math.abs(chart.x[best] - x)) best = index; });
      return best;
    };
    const step = (key, at) => ({
      ArrowRight: at === null ? 0 : Math.min(last, at + 1), ArrowLeft: at === null ? last : Math.max(0, at - 1), Home: 0, End: last,
    })[key] ?? null;
    const show = (at) => {
      const box = area.getBoundingClientRect();
      cross.hidden = false;
      cross.style.left = chart.x[at] / 10 + "%";
      dots.forEach((dot, index) => {
        const y = chart.y[index][at];
        dot.hidden = y === null;
        dot.style.left = chart.x[at] / 10 + "%";
        dot.style.top = y / 10 + "%";
      });
      const cells = [...table.rows[at].cells].map((cell) => cell.textContent);
      const rows = chart.colours.map((colour, index) => [heads[index + 1], cells[index + 1], colour]);
      return { title: heads[0] + " " + cells[0], rows, x: box.left + chart.x[at] / 1000 * box.width, y: box.top + box.height / 2 };
    };
    explore(figure.querySelector(".plot"), find, step, show, () => { for (const mark of [cross, ...dots]) mark.hidden = true; });
  }

  if (data.map) {
    const map = data.map;
    const field = document.querySelector(".field");
    const view = field.querySelector("svg").viewBox.baseVal;
    const here = element("i", "", "here");
    here.hidden = true;
    field.append(here);
    const name = (number) => map.classes[number];
    const only = new Set();
    const shown = (at) => !only.size || only.has(String(map.predicted[at]));
    const nearest = (cost) => {
      let best = null, least = Infinity;
      for (let at = 0; at < map.x.length; at += 1) {
        const value = shown(at) ? cost(at) : Infinity;
        if (value < least) { least = value; best = at; }
      }
      return [best, least];
    };
    const find = (event) => {
      const box = field.getBoundingClientRect();
      const unit = view.width / box.width;
      const x = (event.clientX - box.left) * unit, y = (event.clientY - box.top) * unit;
      const [at, distance] = nearest((i) => Math.hypot(map.x[i] - x, map.y[i] - y));
      return distance < 28 * unit ? at : null;
    };
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const step = (key, at) => {
      if (!(key in ways)) return null;
      if (at === null) return nearest((i) => Math.hypot(map.x[i] - view.width / 2, map.y[i] - view.height / 2))[0];
      const [wx, wy] = ways[key];
      const [next] = nearest((i) => {
        const dx = map.x[i] - map.x[at], dy = map.y[i] - map.y[at];
        const along = dx * wx + dy * wy, across = Math.abs(dx * wy - dy * wx);
        return along > 0 && across <= along ? along + across : Infinity;
      });
      return next ?? at;
    };
    const show = (at) => {
      const box = field.getBoundingClientRect();
      here.hidden = false;
      here.style.left = map.x[at] / view.width * 100 + "%";
      here.style.top = map.y[at] / view.height * 100 + "%";
      const rows = [["predicted", name(map.predicted[at]), map.predicted[at] % 10]];
      if (map.probability && map.probability[at] !== null) rows.push(["probability", (map.probability[at] * 100).toFixed(1) + " %"]);
      if (map.labels.length) rows.push(["labelled", map.labels[at].map((label) => "not " + name(label)).join(", ") || "no label"]);
      if (map.truth) rows.push(["truth", name(map.truth[at])]);
      const x = box.left + map.x[at] / view.width * box.width, y = box.top + map.y[at] / view.height * box.height;
      return { title: "Item " + map.names[at], rows, x, y };
    };
    explore(field, find, step, show, () => { here.hidden = true; });
    for (const button of document.querySelectorAll(".map .legend button")) {
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", on);
        only[on ? "add" : "delete"](button.dataset.class);
        for (const line of field.querySelectorAll(".points")) line.classList.toggle("faded", only.size > 0 && !only.has(line.dataset.class));
        field.querySelector(".rings")?.classList.toggle("faded", only.size > 0);
      });
    }
  }

  for (const table of document.querySelectorAll("table.heat:not(.strip)")) {
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    table.addEventListener("pointerover", (event) => {
      const cell = event.target.closest("tbody td");
      if (!cell) { tip.hidden = true; return; }
      const { right, top, height } = cell.getBoundingClientRect();
      showTip(cell.textContent + " %", [[heads[0], cell.parentNode.cells[0].textContent], ["not", heads[cell.cellIndex]]], right, top + height / 2);
    });
    table.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  for (const track of document.querySelectorAll("[data-tip]")) {
    const [title, ...lines] = track.dataset.tip.split("\n");
    const rows = lines.map((line) => line.split("\t"));
    track.addEventListener("pointermove", (event) => showTip(title, rows, event.clientX, event.clientY));
    track.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    table.addEventListener("click", (event) => {
      const button = event.target.closest("thead button");
      if (!button) return;
      const head = button.closest("th");
      const way = head.getAttribute("aria-sort");
      const down = way === "none" ? button.dataset.first === "descending" : way === "ascending";
      for (const other of table.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const column = Number(button.dataset.column);
      const numeric = head.classList.contains("num");
      const key = (row) => row.cells[column].dataset.sort;
      const rows = [...table.tBodies[0].rows].sort((first, second) => {
        const a = key(first), b = key(second);
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = numeric ? a - b : a.localeCompare(b, undefined, { numeric: true });
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  }
})();
