// The map: every item a point, near what it is like; pixels are written directly, so that fifty thousand pan smoothly.

import { getMap, get, finished } from "./api.js";
import { fullName, thumbnail } from "./cards.js";
import { count, h, problemBox, say } from "./dom.js";
import { go } from "./state.js";

const REACH = 9;  // pixels around the pointer in which a point counts as meant
const CELL = 64;  // of the grid by which points are found again, a side of the whole map in cells

export async function showMap(main, state, facts, isCurrent) {
  const space = state.space || "features";
  const bar = h("progress", { "aria-label": "Progress of the map" });
  const words = h("span");
  const place = h("div", {}, h("p", {}, bar, " ", words));
  const names = { features: "Learned features", descriptors: "Descriptors" };
  const buttons = Object.entries(names).map(([one, label]) =>
    h("button", { "aria-pressed": String(space === one), onclick: () => go({ space: one }) }, label));
  main.replaceChildren(h("h1", {}, `Map of ${count(facts.items, "item")}`),
    h("div", { role: "group", "aria-label": "What the map is made of" }, buttons), place);
  try {
    const points = await loadPoints(space, (job) => {
      words.textContent = job.total ? `laying out the map: ${job.done} of ${job.total} ${job.note}` : "waiting…";
      if (job.total) Object.assign(bar, { max: job.total, value: job.done });
    });
    if (isCurrent()) place.replaceChildren(...new PointMap(points, facts).elements);
  } catch (problem) {
    if (isCurrent()) place.replaceChildren(problemBox(problem));
  }
}

async function loadPoints(space, heard) {
  let found = await getMap(space);
  while (found.job) {
    heard(found.job);
    await finished(found.job, heard);
    found = await getMap(space);
  }
  return found.points;
}

export class PointMap {
  constructor(points, facts) {
    Object.assign(this, { points, facts, n: points.length / 2, x: 0, y: 0, zoom: 1, at: -1, items: new Map() });
    this.canvas = h("canvas", { tabindex: "0", role: "application",
      "aria-label": `Map of ${count(this.n, "item")}. Arrow keys move, plus and minus zoom, Enter searches for the item in the middle.` });
    this.tip = h("div", { class: "tip", hidden: true });
    this.box = h("div", { class: "map" }, this.canvas, this.tip);
    this.elements = [h("p", {}, "Drag to move, scroll to zoom, hover to look, click to search."), this.box];
    this.cells = cellsOf(points);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.box);
    window.manifindMap = this;
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.box;
    if (!width || !height) return;
    Object.assign(this.canvas, { width, height });
    this.context = this.canvas.getContext("2d", { alpha: true });
    this.image = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.base = Math.min(width, height) * 0.47;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  paint() {
    if (!this.pixels) return;
    const { points, pixels, n } = this;
    const { width, height } = this.canvas;
    const scale = this.base * this.zoom, left = width / 2 + this.x, top = height / 2 + this.y;
    const [r, g, b] = getComputedStyle(document.documentElement).getPropertyValue("--point").split(",").map(Number);
    const colour = (255 << 24) | (b << 16) | (g << 8) | r;
    const size = Math.round(Math.min(7, Math.max(2, 2 + Math.log2(this.zoom) + (n < 5000 ? 1 : 0))));
    pixels.fill(0);
    for (let at = 0; at < n; at += 1) {
      const x = (left + points[2 * at] * scale) | 0, y = (top + points[2 * at + 1] * scale) | 0;
      if (x < 0 || y < 0 || x + size > width || y + size > height) continue;
      for (let row = 0, start = y * width + x; row < size; row += 1, start += width) pixels.fill(colour, start, start + size);
    }
    this.context.putImageData(this.image, 0, 0);
    if (this.at >= 0) this.ring(this.at, left, top, scale);
  }

  ring(at, left, top, scale) {
    this.context.beginPath();
    this.context.arc(left + this.points[2 * at] * scale, top + this.points[2 * at + 1] * scale, 7, 0, 7);
    this.context.lineWidth = 2;
    this.context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--down");
    this.context.stroke();
  }

  listen() {
    const { canvas } = this;
    let from = null;
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      from = [event.clientX - this.x, event.clientY - this.y];
      moved = 0;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) return this.hover(event.offsetX, event.offsetY);
      moved += Math.abs(event.movementX) + Math.abs(event.movementY);
      [this.x, this.y] = [event.clientX - from[0], event.clientY - from[1]];
      this.draw();
    });
    canvas.addEventListener("pointerup", async (event) => {
      from = null;
      if (moved < 5) await this.search(this.nearest(event.offsetX, event.offsetY));
    });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomAt(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const { width, height } = this.canvas;
    if (steps[event.key]) {
      this.x += steps[event.key][0];
      this.y += steps[event.key][1];
      this.hover(width / 2, height / 2, 60);
    } else if (event.key === "+" || event.key === "=") this.zoomAt(1.3, width / 2, height / 2);
    else if (event.key === "-") this.zoomAt(1 / 1.3, width / 2, height / 2);
    else if (event.key === "Enter") this.search(this.nearest(width / 2, height / 2, 200));
    else return;
    event.preventDefault();
    this.draw();
  }

  zoomAt(factor, x, y) {
    const zoom = Math.min(200, Math.max(0.5, this.zoom * factor));
    const { width, height } = this.canvas;
    const share = zoom / this.zoom;
    this.x = x - width / 2 - (x - width / 2 - this.x) * share;
    this.y = y - height / 2 - (y - height / 2 - this.y) * share;
    this.zoom = zoom;
    this.draw();
  }

  /** The item at a place of the canvas, -1 where there is none within reach. */
  nearest(px, py, reach = REACH) {
    const scale = this.base * this.zoom;
    const mx = (px - this.canvas.width / 2 - this.x) / scale, my = (py - this.canvas.height / 2 - this.y) / scale;
    const r = reach / scale;
    let best = -1, distance = r * r;
    for (let row = cellOf(my - r); row <= cellOf(my + r); row += 1) {
      for (let column = cellOf(mx - r); column <= cellOf(mx + r); column += 1) {
        for (const at of this.cells.get(row * CELL + column) ?? []) {
          const d = (this.points[2 * at] - mx) ** 2 + (this.points[2 * at + 1] - my) ** 2;
          if (d <= distance) [best, distance] = [at, d];
        }
      }
    }
    return best;
  }

  async hover(px, py, reach) {
    const at = this.nearest(px, py, reach);
    if (at === this.at) return;
    this.at = at;
    this.draw();
    this.tip.hidden = at < 0;
    if (at < 0) return;
    const item = await this.itemOf(at);
    if (this.at !== at) return;
    const name = fullName(item);
    this.tip.replaceChildren(this.facts.pictures ? thumbnail(true, { id: item.id }, name) : "", h("div", {}, name));
    const { width, height } = this.canvas;
    this.tip.style.left = `${px > width / 2 ? px - 160 : px + 16}px`;
    this.tip.style.top = `${Math.max(0, py > height / 2 ? py - 150 : py + 16)}px`;
    say(name);
  }

  async itemOf(at) {
    if (!this.items.has(at)) this.items.set(at, (await get("items", { offset: at, limit: 1 })).items[0]);
    return this.items.get(at);
  }

  async search(at) {
    if (at >= 0) go({ view: "", id: (await this.itemOf(at)).id, upload: "", text: "", name: "" });
  }
}

const cellOf = (value) => Math.min(CELL - 1, Math.max(0, Math.floor(((value + 1) / 2) * CELL)));

function cellsOf(points) {
  const cells = new Map();
  for (let at = 0; at < points.length / 2; at += 1) {
    const key = cellOf(points[2 * at + 1]) * CELL + cellOf(points[2 * at]);
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(at);
  }
  return cells;
}
