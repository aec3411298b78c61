// The points of the map on a canvas: pixels are written directly, so that fifty thousand move smoothly.

import { get } from "./api.js";
import { fullName, thumbnail } from "./cards.js";
import { count, h } from "./dom.js";
import { gestures } from "./gestures.js";

const REACH = 9;  // pixels around the pointer in which a point counts as meant
const CELL = 64;  // of the grid by which points are found again, a side of the whole map in cells
const NEAREST = 0.5, FURTHEST = 400;  // how large the map may be made
const FEW = 400;  // points in sight, of which pictures are shown
const SIDE = 64, MOST_PICTURES = 60;
const STEP = 60;  // pixels for an arrow key
const PAUSE = 120;  // milliseconds without movement after which pictures are fetched

export class PointMap {
  x = 0;
  y = 0;
  zoom = 1;
  at = -1;  // the point that is looked at
  still = 0;  // when it has come to rest
  taken = [];  // the pictures that are shown
  known = null;  // ids of all points
  query = [];
  answers = [];
  chosen = null;  // a mask of the points that are selected
  fitting = null;  // a mask of those that satisfy the filter
  items = new Map();

  /** points: pairs within -1 and 1. colours: of `Colours`. ids(): those of all points, once they are needed. open(at): look at one. */
  constructor({ points, facts, colours, ids, open, toggle, said }) {
    Object.assign(this, { points, facts, colours, ids, open, toggle, said, n: points.length / 2, lasso: null });
    this.canvas = h("canvas", { tabindex: "0", role: "application", "aria-describedby": "map-help",
      "aria-label": `Map of ${count(this.n, "item")}` });
    this.tip = h("div", { class: "tip", hidden: true });
    this.pictures = h("div", { class: "pictures", "aria-hidden": "true" });
    this.box = h("div", { class: "map" }, this.canvas, this.pictures, this.tip);
    this.shown = new Map();  // pictures by point
    this.cells = cellsOf(points);
    this.recolour();
    gestures(this.canvas, this.moves());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.box);
    window.manifindMap = this;
  }

  moves() {
    return {
      pan: (dx, dy) => this.pan(dx, dy),
      zoom: (factor, x, y) => this.zoomAt(factor, x, y),
      tap: (x, y) => this.look(this.hit(x, y)),
      hover: (x, y) => this.hover(x, y),
      leave: () => this.hover(-1e6, -1e6),
      stroke: {
        wanted: (event) => this.lasso?.isWanted(event) ?? false,
        begin: (x, y) => this.lasso.begin(x, y),
        move: (x, y) => this.lasso.move(x, y),
        end: () => this.lasso.end(),
        drop: () => this.lasso.drop(),
      },
    };
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

  /** After the colours, or the scheme, have changed. */
  recolour() {
    const style = getComputedStyle(document.documentElement), value = (name) => style.getPropertyValue(name).trim();
    this.table = this.colours.pixels();
    this.inks = { mark: value("--down"), accent: value("--accent"), ink: value("--ink"), page: value("--page") };
    this.outline = pixelOf(this.inks.ink);
    this.faint = (this.table[254] & 0xffffff) | 0x60000000;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  isShown = (at) => this.colours.isShown(at) && (!this.fitting || this.fitting[at] === 1);

  /** Where the map's middle is on the canvas, and how many pixels its unit has. */
  frame() {
    const { width, height } = this.canvas;
    return { left: width / 2 + this.x, top: height / 2 + this.y, scale: this.base * this.zoom };
  }

  placeOf(at, { left, top, scale } = this.frame()) {
    return [left + this.points[2 * at] * scale, top + this.points[2 * at + 1] * scale];
  }

  paint() {
    if (!this.pixels) return;
    const frame = this.frame();
    this.pixels.fill(0);
    const near = this.paintPoints(frame);
    this.context.putImageData(this.image, 0, 0);
    for (const at of this.answers) this.ring(at, frame, 8, this.inks.mark);
    for (const at of this.query) [6, 10].forEach((radius) => this.ring(at, frame, radius, this.inks.accent));
    if (this.at >= 0) this.ring(this.at, frame, 7, this.inks.ink);
    this.lasso?.draw(this.context);
    this.showPictures(near, frame);
  }

  /** Draws the squares; gives the points in sight where they are few. */
  paintPoints({ left, top, scale }) {
    const { points, n, table, chosen, fitting, canvas } = this, { codes, hidden } = this.colours;
    const size = Math.round(Math.min(8, Math.max(2, 2 + Math.log2(this.zoom) + (n < 1000 ? 3 : n < 10_000 ? 1 : 0)))), half = size >> 1;
    const out = new Uint8Array(256), near = [], { width, height } = canvas;
    for (const code of hidden) out[code] = 1;
    let inSight = 0;
    for (let at = 0; at < n; at += 1) {
      const x = (left + points[2 * at] * scale - half) | 0, y = (top + points[2 * at + 1] * scale - half) | 0;
      if (x < 0 || y < 0 || x + size > width || y + size > height || out[codes[at]]) continue;
      const fits = fitting === null || fitting[at] === 1;
      if (fits && chosen !== null && chosen[at] === 1) this.square(x - 2, y - 2, size + 4, this.outline);
      this.square(x, y, size, fits ? table[codes[at]] : this.faint);
      if (fits && (inSight += 1) <= FEW) near.push(at);
    }
    return inSight > FEW ? [] : near;
  }

  square(x, y, size, colour) {
    const { pixels } = this, { width, height } = this.canvas;
    const from = Math.max(0, x), to = Math.min(width, x + size), last = Math.min(height, y + size);
    for (let row = Math.max(0, y); row < last; row += 1) pixels.fill(colour, row * width + from, row * width + to);
  }

  ring(at, frame, radius, colour) {
    const [x, y] = this.placeOf(at, frame), { context } = this;
    for (const [width, style] of [[4, this.inks.page], [2, colour]]) {  // seen on points of every colour
      context.beginPath();
      context.arc(x, y, radius, 0, 7);
      Object.assign(context, { lineWidth: width, strokeStyle: style });
      context.stroke();
    }
  }

  /** Pictures in place of the points in sight, as many as have room; new ones only where nothing moves. */
  showPictures(near, frame) {
    const taken = [], isMoving = performance.now() < this.still;
    const there = new Set(isMoving ? near.filter((at) => this.shown.has(at)) : near);
    const wanted = [...new Set([...this.query, ...this.answers, ...there])].filter((at) => there.has(at));  // what is marked comes first
    if (this.facts.pictures && wanted.length && !this.known) this.learn();
    for (const at of this.known ? wanted : []) {
      const [x, y] = this.placeOf(at, frame);
      if (taken.length >= MOST_PICTURES) break;
      if (taken.every((one) => Math.abs(one.x - x) > SIDE || Math.abs(one.y - y) > SIDE)) taken.push({ at, x, y });
    }
    const kept = new Set(taken.map(({ at }) => at));
    for (const [at, picture] of this.shown) {
      if (kept.has(at)) continue;
      picture.remove();
      this.shown.delete(at);
    }
    for (const { at, x, y } of taken) this.pictureOf(at).style.transform = `translate(${x - SIDE / 2}px, ${y - SIDE / 2}px)`;
    this.taken = taken;
  }

  learn() {
    this.ids().then((ids) => {
      this.known = ids;
      this.draw();
    }, () => {});  // without pictures the map is still one
  }

  pictureOf(at) {
    if (!this.shown.has(at)) {
      const frame = h("div", { class: "picture" }, thumbnail(true, { id: this.known[at] }, ""));
      this.shown.set(at, frame);
      this.pictures.append(frame);
    }
    const frame = this.shown.get(at), isChosen = this.chosen !== null && this.chosen[at] === 1;
    frame.style.borderColor = isChosen ? this.inks.ink : this.colours.css(at);
    frame.classList.toggle("chosen", isChosen);
    frame.classList.toggle("found", this.answers.includes(at));
    frame.classList.toggle("asked", this.query.includes(at));
    return frame;
  }

  key(event) {
    const steps = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    const { width, height } = this.canvas;
    if (event.ctrlKey || event.metaKey || event.altKey || this.lasso?.key(event)) return;
    if (steps[event.key]) {
      this.pan(...steps[event.key]);
      this.hover(width / 2, height / 2, 60);
    } else if (event.key === "+" || event.key === "=") this.closer();
    else if (event.key === "-") this.further();
    else if (event.key === "0") this.whole();
    else if (event.key === "Enter") this.look(this.nearest(width / 2, height / 2, 200));
    else if (event.key === " ") this.toggle(this.nearest(width / 2, height / 2, 200));
    else return;
    event.preventDefault();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.moving();
  }

  /** Drawn at once, and once more when it has come to rest. */
  moving() {
    this.still = performance.now() + PAUSE;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.draw(), PAUSE + 10);
    this.draw();
  }

  closer = () => this.zoomAt(1.4, this.canvas.width / 2, this.canvas.height / 2);
  further = () => this.zoomAt(1 / 1.4, this.canvas.width / 2, this.canvas.height / 2);

  whole() {
    [this.x, this.y, this.zoom] = [0, 0, 1];
    this.draw();
  }

  zoomAt(factor, x, y) {
    const zoom = Math.min(FURTHEST, Math.max(NEAREST, this.zoom * factor));
    const { width, height } = this.canvas;
    const share = zoom / this.zoom;
    this.x = x - width / 2 - (x - width / 2 - this.x) * share;
    this.y = y - height / 2 - (y - height / 2 - this.y) * share;
    this.zoom = zoom;
    this.moving();
  }

  /** The item under a pointer: a picture that lies there, or the nearest point. */
  hit(px, py) {
    const picture = this.taken.findLast(({ x, y }) => Math.abs(x - px) <= SIDE / 2 && Math.abs(y - py) <= SIDE / 2);
    return picture ? picture.at : this.nearest(px, py);
  }

  /** The item at a place of the canvas, -1 where there is none within reach. */
  nearest(px, py, reach = REACH) {
    const { left, top, scale } = this.frame();
    const mx = (px - left) / scale, my = (py - top) / scale;
    const r = reach / scale;
    let best = -1, distance = r * r;
    for (let row = cellOf(my - r); row <= cellOf(my + r); row += 1) {
      for (let column = cellOf(mx - r); column <= cellOf(mx + r); column += 1) {
        for (const at of this.cells.get(row * CELL + column) ?? []) {
          const d = (this.points[2 * at] - mx) ** 2 + (this.points[2 * at + 1] - my) ** 2;
          if (d <= distance && this.isShown(at)) [best, distance] = [at, d];
        }
      }
    }
    return best;
  }

  async hover(px, py, reach) {
    const at = reach ? this.nearest(px, py, reach) : this.hit(px, py);
    if (at === this.at) return;
    this.point(at);
    if (at < 0) return;
    const item = await this.itemOf(at);
    if (this.at !== at) return;
    const name = fullName(item), { width, height } = this.canvas;
    this.tip.replaceChildren(this.facts.pictures ? thumbnail(true, { id: item.id }, "") : "", h("bdi", {}, name));
    this.tip.hidden = false;
    this.tip.style.left = `${px > width / 2 ? px - 170 : px + 26}px`;
    this.tip.style.top = `${Math.min(height - 150, Math.max(0, py > height / 2 ? py - 150 : py + 16))}px`;
    if (reach) this.said(name);
  }

  /** Put a ring around a point, -1 for none. */
  point(at) {
    this.at = at;
    this.tip.hidden = true;
    this.draw();
  }

  async itemOf(at) {
    if (!this.items.has(at)) this.items.set(at, (await get("items", { offset: at, limit: 1 })).items[0]);
    return this.items.get(at);
  }

  async look(at) {
    if (at >= 0) this.open((await this.itemOf(at)).id);
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

/** "#1b1f24" as a pixel. */
function pixelOf(text) {
  const value = parseInt(text.slice(1), 16);
  return ((255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
