"use strict";
const page = document.body.dataset;
const button = (...content) => {
  const made = document.createElement("button");
  made.type = "button";
  made.append(...content);
  return made;
};
const names = (table) => {
  // Below a heading that spans several columns each has the name of both.
  const [first, second] = [...table.tHead.rows].map((row) => [...row.cells]);
  return first.flatMap((head) => head.rowSpan > 1 || !second ? head.textContent
    : second.splice(0, head.colSpan).map((below) => `${head.textContent} ${below.textContent}`));
};
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], heads = table.tHead.rows[0].cells, labels = names(table);
  for (const row of body.rows) [...row.cells].forEach((cell, i) => {
    cell.dataset.label = labels[i];
    cell.classList.toggle("none", cell.textContent.trim() === "–");
  });
  // A table that fits needs no box to scroll in, which would keep its head from staying in view.
  const box = table.parentNode;
  let width = 0;
  const fit = () => {
    if (width === box.clientWidth) return;
    width = box.clientWidth;
    box.classList.remove("wide");
    const fits = table.offsetWidth <= width;
    box.classList.toggle("fits", fits);
    box.classList.toggle("wide", !fits);
  };
  fit();
  new ResizeObserver(fit).observe(box);
  if (table.tHead.rows.length > 1 || body.rows.length < 2) continue;
  const number = (text) => parseFloat(text.replace(/[±,\s]/g, ""));
  const compare = (a, b) => number(a) - number(b) || a.localeCompare(b, "en", {numeric: true});
  [...heads].forEach((head, i) => {
    const sort = button(...head.childNodes);
    head.append(sort);
    sort.onclick = () => {
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
  filter.placeholder = filter.ariaLabel = page.filter;
  filter.oninput = () => {
    const wanted = filter.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  };
  box.before(filter);
}
for (const source of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
  const copy = button(source.dataset.copy);
  copy.className = "button";
  copy.onclick = async () => {
    // The text of an element, or what a link carries.
    const text = source.href ? decodeURIComponent(source.href.replace(/^[^,]*,/, "")) : source.textContent;
    await navigator.clipboard.writeText(text);
    copy.textContent = page.copied;
  };
  source.after(" ", copy);
}
