// A phone shows the first section and the main columns; the rest opens when it is asked for.
if (matchMedia("(max-width:32rem)").matches) {
  const [, ...others] = document.querySelectorAll("main > section:has(> h2)");
  for (const section of others) {
    const fold = document.createElement("details"), summary = document.createElement("summary");
    summary.append(section.querySelector("h2"));
    fold.append(summary, ...section.childNodes);
    section.append(fold);
  }
  for (const box of document.querySelectorAll(".scroll:has(.less)")) {
    const columns = button(page.columns);
    columns.className = "button";
    columns.onclick = () => columns.ariaPressed = box.classList.toggle("all");
    box.before(columns);
  }
}
