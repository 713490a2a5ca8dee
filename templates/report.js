"use strict";
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], heads = table.tHead.rows[0].cells;
  if (table.tHead.rows.length > 1 || body.rows.length < 2) continue;
  const number = (text) => parseFloat(text.replace(/[±,\s]/g, ""));
  const compare = (a, b) => number(a) - number(b) || a.localeCompare(b, "en", {numeric: true});
  [...heads].forEach((head, i) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const order = head.ariaSort === "ascending" ? -1 : 1;
      for (const each of heads) each.ariaSort = null;
      head.ariaSort = order > 0 ? "ascending" : "descending";
      const text = (row) => row.cells[i].textContent.trim();
      body.append(...[...body.rows].sort((a, b) => order * compare(text(a), text(b))));
    };
  });
  if (body.rows.length < 8 || document.forms.length) continue;
  const filter = document.createElement("input");
  filter.type = "search";
  filter.placeholder = filter.ariaLabel = document.body.dataset.filter;
  filter.oninput = () => {
    const wanted = filter.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  };
  table.parentNode.before(filter);
}
