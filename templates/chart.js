"use strict";
{
  const tip = document.createElement("p");
  tip.className = "tip";
  tip.ariaLive = "polite";
  tip.hidden = true;
  const hide = () => {
    tip.hidden = true;
    for (const each of document.querySelectorAll(".here")) each.classList.remove("here");
  };
  for (const svg of document.querySelectorAll("svg.chart")) {
    const points = [...svg.querySelectorAll("g > title")].map((title) => ({text: title.textContent, group: title.parentNode}));
    if (!points.length) continue;
    const curves = svg.classList.contains("curves");
    // What a point is: its series, as the legend calls it, and its title, which a browser would show as well.
    for (const point of points) {
      const series = curves && point.group.parentNode.classList[0];
      const name = series && svg.querySelector(`.${series} .legend`);
      if (name) point.text = `${name.textContent} · ${point.text}`;
      point.group.firstChild.remove();
    }
    const at = (point) => {
      const box = point.group.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    let stop = -1;
    const stops = () => {
      const made = [];
      for (const point of points) {
        const [x, y] = at(point), same = made.find((each) => curves && Math.abs(each.x - x) < 2);
        if (same) same.points.push(point);
        else made.push({x, y, points: [point]});
      }
      return curves ? made.sort((a, b) => a.x - b.x) : made;
    };
    const show = (all, index) => {
      hide();
      stop = index;
      const {x, y, points: own} = all[index];
      tip.textContent = own.map((point) => point.text).join("\n");
      tip.hidden = false;
      for (const point of own) point.group.classList.add("here");
      const width = document.documentElement.clientWidth, low = svg.getBoundingClientRect().bottom;
      tip.style.left = `${scrollX + Math.max(8, Math.min(x + 12, width - tip.offsetWidth - 8))}px`;
      tip.style.top = `${scrollY + (curves ? low : y + 16)}px`;
    };
    svg.onpointermove = svg.onpointerdown = (event) => {
      const all = stops(), far = ({x, y}) => curves ? Math.abs(x - event.clientX) : Math.hypot(x - event.clientX, 4 * (y - event.clientY));
      show(all, all.reduce((best, each, index) => far(each) < far(all[best]) ? index : best, 0));
    };
    svg.onpointerleave = svg.onblur = hide;
    svg.tabIndex = 0;
    svg.onkeydown = (event) => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const all = stops();
      show(all, Math.max(0, Math.min(all.length - 1, stop + step)));
    };
  }
  document.body.append(tip);
}
