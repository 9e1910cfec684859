"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const config = { displayModeBar: false, responsive: true };
  const narrow = () => window.innerWidth < 640;

  // On a narrow screen words on an axis are broken into lines, so that the drawing has room.
  const LINE = 17;
  const wide = (text) => [...text].reduce((sum, one) => sum + (one > "\u2e80" ? 2 : 1), 0);
  const broken = (text, most) => {
    const lines = [""];
    for (const part of String(text).match(/[\u2e80-\uffff]|[^\s\u2e80-\uffff]+|\s+/g) ?? []) {
      const line = lines[lines.length - 1];
      if (line && wide((line + part).trimEnd()) > most && !/^[\s，。；：、）]/.test(part)) {
        lines[lines.length - 1] = line.trimEnd();
        lines.push(part);
      } else lines[lines.length - 1] += part;
    }
    return lines.join("<br>");
  };
  const categories = (figure) => [
    ...new Set(figure.layout.yaxis.categoryarray ?? figure.data.flatMap((one) => one.y ?? [])),
  ];
  const layoutOf = (figure) => {
    const layout = structuredClone(figure.layout);
    if (!narrow()) return layout;
    layout.font = { ...layout.font, size: 11 };
    const { xaxis, yaxis } = layout;
    if (xaxis.title?.text) xaxis.title.text = broken(xaxis.title.text, 30);
    if (yaxis.type === "category" && !yaxis.title) {
      const names = categories(figure);
      const told = names.map((name) => broken(name, LINE));
      Object.assign(yaxis, { tickmode: "array", tickvals: names, ticktext: told });
      const lines = Math.max(...told.map((text) => text.split("<br>").length));
      layout.height += names.length * Math.max(0, 15 * lines - 21);
    }
    if (xaxis.tickvals) xaxis.tickangle = 0;
    else xaxis.nticks = 5;
    return layout;
  };
  for (const figure of figures) {
    Plotly.newPlot(`plot-${figure.name}`, figure.data, layoutOf(figure), config);
  }

  // On paper every figure is as wide as its frame is there, and every table of numbers is open.
  const paper = (plot) => (plot.closest(".verdict") ? 290 : plot.closest(".grid") ? 318 : 680);
  const opened = [];
  const unfolded = [];
  window.addEventListener("beforeprint", () => {
    for (const figure of figures) {
      const plot = document.getElementById(`plot-${figure.name}`);
      const height = (plot.closest(".verdict") ? 1 : 0.8) * figure.layout.height;
      Plotly.relayout(plot, { autosize: false, width: paper(plot), height });
    }
    for (const row of document.querySelectorAll("tr[hidden]")) {
      row.hidden = false;
      opened.push(row);
    }
    for (const details of document.querySelectorAll("details:not([open], .told)")) {
      details.open = true;
      unfolded.push(details);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const figure of figures) {
      const { height } = layoutOf(figure);
      Plotly.relayout(`plot-${figure.name}`, { autosize: true, width: null, height });
    }
    for (const row of opened.splice(0)) row.hidden = true;
    for (const details of unfolded.splice(0)) details.open = false;
  });

  // Tables that sort by a click on a heading, and that a word narrows down.
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.value;
    return number === undefined ? cell.textContent.trim().toLowerCase() : Number(number);
  };
  const sortBy = (table, heading) => {
    const up = heading.getAttribute("aria-sort") === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const column = heading.cellIndex;
    const rows = [...table.tBodies[0].rows];
    rows.sort((one, two) => {
      const first = valueOf(one, column);
      const second = valueOf(two, column);
      const order = first < second ? -1 : first > second ? 1 : 0;
      return up ? order : -order;
    });
    table.tBodies[0].append(...rows);
  };
  for (const table of document.querySelectorAll("table[data-sorts]")) {
    for (const heading of table.tHead.rows[0].cells) {
      heading.querySelector("button")?.addEventListener("click", () => sortBy(table, heading));
    }
  }
  for (const tools of document.querySelectorAll("[data-filters]")) {
    const table = document.getElementById(tools.dataset.filters);
    const word = tools.querySelector("input[type=search]");
    const only = tools.querySelector("input[type=checkbox]");
    const told = tools.querySelector("output");
    const rows = [...table.tBodies[0].rows];
    const show = () => {
      const wanted = word.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden =
          !row.textContent.toLowerCase().includes(wanted) ||
          (only.checked && row.dataset.assumed === undefined);
        shown += row.hidden ? 0 : 1;
      }
      told.value = `${shown} / ${rows.length}`;
    };
    word.addEventListener("input", show);
    only.addEventListener("change", show);
    show();
  }
})();
