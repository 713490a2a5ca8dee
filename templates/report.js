"use strict";
for (const table of document.querySelectorAll("table")) {
  const rows = table.tBodies[0], heads = table.tHead.rows;
  if (heads.length > 1 || rows.rows.length < 2) continue;
  const text = (row, i) => row.cells[i].textContent.trim();
  const number = (t) => /^±?\s*-?[\d.,]+($|[\s%/])/.test(t) ? parseFloat(t.replace(/[±,\s]/g, "")) : NaN;
  const compare = (a, b) => {
    const x = number(a), y = number(b);
    return isNaN(x) || isNaN(y) ? isNaN(y) - isNaN(x) || a.localeCompare(b, "en", {numeric: true}) : x - y;
  };
  [...heads[0].cells].forEach((cell, i) => {
    const button = document.createElement("button");
    button.append(...cell.childNodes);
    cell.append(button);
    button.onclick = () => {
      const down = cell.ariaSort === "ascending";
      for (const other of heads[0].cells) other.ariaSort = null;
      cell.ariaSort = down ? "descending" : "ascending";
      rows.append(...[...rows.rows].sort((a, b) => (down ? -1 : 1) * compare(text(a, i), text(b, i))));
    };
  });
  if (rows.rows.length < 8) continue;
  const filter = document.createElement("input");
  filter.type = "search";
  filter.placeholder = filter.ariaLabel = document.body.dataset.filter;
  filter.oninput = () => {
    for (const row of rows.rows)
      row.hidden = !row.textContent.toLowerCase().includes(filter.value.toLowerCase());
  };
  table.parentNode.before(filter);
}
