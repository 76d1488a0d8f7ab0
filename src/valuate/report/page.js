"use strict";
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const svg = figure.querySelector("svg"), layer = svg.querySelector(".hover"), tip = figure.querySelector(".tip");
  const chart = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
  const box = svg.viewBox.baseVal, top = 30, bottom = 286;
  const show = value => {
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(3)));
  };
  const nearest = (places, at) => {
    let low = 0, high = places.length - 1;
    while (high - low > 1) { const mid = (low + high) >> 1; if (places[mid] < at) low = mid; else high = mid; }
    return at - places[low] < places[high] - at ? low : high;
  };
  const hide = () => { layer.textContent = ""; tip.style.display = "none"; };
  const move = event => {
    const frame = svg.getBoundingClientRect(), scale = frame.width / box.width;
    const at = (event.clientX - frame.left) / scale, up = (event.clientY - frame.top) / scale;
    if (up > bottom + 8 || at < 50) { hide(); return; }
    let marks = "", closest = Infinity, place = 0, here = 0;
    const rows = [];
    for (const line of chart.lines) {
      const k = nearest(line.px, at);
      if (Math.abs(line.px[k] - at) < closest) { closest = Math.abs(line.px[k] - at); place = line.px[k]; here = line.x[k]; }
      if (Math.abs(line.px[k] - at) > 40) continue;
      marks += `<circle cx="${line.px[k]}" cy="${line.py[k]}" r="3.6" fill="${line.colour}" stroke="#fff"/>`;
      const range = line.low[k] === line.high[k] ? "" : ` (${show(line.low[k])} to ${show(line.high[k])})`;
      rows.push([line.py[k], `<div><i style="background:${line.colour}"></i>${line.label}: ${show(line.mean[k])}${range}</div>`]);
    }
    if (!rows.length) { hide(); return; }
    layer.innerHTML = `<line x1="${place}" x2="${place}" y1="${top}" y2="${bottom}" stroke="#9aa5b1" stroke-dasharray="3 3"/>` + marks;
    tip.innerHTML = `<div><b>${chart.x} ${show(here)}</b></div>` + rows.sort((a, b) => a[0] - b[0]).map(row => row[1]).join("");
    tip.style.display = "block";
    const left = place * scale;
    tip.style.left = (left + tip.offsetWidth + 16 > frame.width ? left - tip.offsetWidth - 12 : left + 12) + "px";
    tip.style.top = Math.max(0, up * scale - tip.offsetHeight - 10) + "px";
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", hide);
}
