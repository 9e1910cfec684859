"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const config = { displayModeBar: false, responsive: true };
  const narrow = () => window.innerWidth < 640;

  const layoutOf = (figure) => {
    const layout = structuredClone(figure.layout);
    if (narrow()) Object.assign(layout, { font: { ...layout.font, size: 10 } });
    return layout;
  };
  for (const figure of figures) {
    Plotly.newPlot(`plot-${figure.name}`, figure.data, layoutOf(figure), config);
  }

  // On paper every figure is as wide as its frame is there, and every table of numbers is open.
  const paper = (plot) => (plot.closest(".verdict") ? 315 : 690);
  const opened = [];
  window.addEventListener("beforeprint", () => {
    for (const figure of figures) {
      const plot = document.getElementById(`plot-${figure.name}`);
      Plotly.relayout(plot, { autosize: false, width: paper(plot) });
    }
    for (const row of document.querySelectorAll("tr[hidden]")) {
      row.hidden = false;
      opened.push(row);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const figure of figures) {
      Plotly.relayout(`plot-${figure.name}`, { autosize: true, width: null });
    }
    for (const row of opened.splice(0)) row.hidden = true;
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
