const form = document.forms[0];
form.hidden = false;
form.onchange = () => {
  const chosen = ["workloads", "hardware"].filter((name) => form[name].value);
  for (const row of document.querySelectorAll("tr[data-workloads]"))
    row.hidden = chosen.some((name) => !row.dataset[name].split("|").includes(form[name].value));
  for (const fold of document.querySelectorAll("details")) fold.open = chosen.length > 0;
};
const {nothing, pairs} = JSON.parse(document.getElementById("pairs").textContent);
const template = document.querySelector("template"), panel = template.content.firstElementChild;
const [about, table] = [panel.querySelector("p"), panel.querySelector("table")];
const ticked = [];
const titleOf = (box) => box.ariaLabel;
function show() {
  panel.remove();
  if (ticked.length < 2) return;
  template.after(panel);
  const [now, before] = [...ticked].sort((a, b) => a.value - b.value);
  const [text, ...rows] = pairs[`${now.value}-${before.value}`] || [nothing];
  panel.querySelector("h2").textContent = `${titleOf(before)} → ${titleOf(now)}`;
  about.textContent = text;
  table.hidden = !rows.length;
  const heads = [...table.tHead.rows[0].cells];
  heads[4].textContent = titleOf(before);
  heads[5].textContent = titleOf(now);
  table.tBodies[0].replaceChildren(...rows.map((texts) => {
    const row = document.createElement("tr");
    texts.forEach((text, i) => {
      const cell = row.insertCell();
      cell.textContent = text;
      cell.className = i === 1 ? "main" : heads[i].className;
      cell.dataset.label = heads[i].textContent;
    });
    return row;
  }));
  panel.scrollIntoView();
  panel.focus({preventScroll: true});
}
for (const row of document.querySelectorAll('tr[data-place]:not([data-place=""])')) {
  const box = document.createElement("input");
  box.type = "checkbox";
  box.value = row.dataset.place;
  box.ariaLabel = row.cells[1].textContent;
  box.onchange = () => {
    if (box.checked) ticked.push(box);
    else ticked.splice(ticked.indexOf(box), 1);
    if (ticked.length > 2) ticked.shift().checked = false;
    show();
  };
  row.cells[0].prepend(box);
}
