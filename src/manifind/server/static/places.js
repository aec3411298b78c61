// Where items were taken: the outline of the world, a circle for each place, and the same as a list.

import { get } from "./api.js";
import { thumbnail } from "./cards.js";
import { joined, understand, write } from "./clauses.js";
import { count, h } from "./dom.js";
import { filterBar } from "./filters.js";
import { gestures } from "./gestures.js";
import { addressOf, go } from "./state.js";

const CELLS = [60, 45, 30, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01];  // degrees
const FIRST = 5, SMALL = 1;  // of those, what is asked for at once, and what is no longer asked for of the whole earth
const APART = 44, LARGEST = 20, SMALLEST = 6;  // pixels that a cell has at least; of the radius of a circle
const MARGIN = 1.4, LEAST = 4;  // around all places: times their extent, and degrees
const CLOSEST = 0.02;  // degrees across the map
const MOST_LISTED = 100;
const PAUSE = 150;  // milliseconds without movement after which places are counted anew
const CLOSER = 1.6, STEP = 0.15;  // for a press on a button, and for an arrow key in shares of the map

let outline = null;
let looked = {};  // what was last in sight

/** The world as a path, in degrees east and south; its source stands in the file. */
async function outlineOfTheWorld() {
  outline ??= fetch(new URL("world.json", import.meta.url)).then((answer) => answer.json()).then(({ rings }) => rings.map(([x, y, ...steps]) => {
    const degrees = (value) => value / 10;
    const path = steps.map((value, at) => (at % 2 ? -value : value)).map(degrees);
    return `M${degrees(x)} ${degrees(-y)}l${path.join(" ")}z`;
  }).join(""));
  return outline;
}

export async function showPlaces(panel, { state, facts, isCurrent }) {
  const where = joined(state.where);
  const [path, first] = await Promise.all([outlineOfTheWorld(), get("places", { where, degrees: FIRST })]);
  if (!isCurrent()) return;
  const placed = first.cells.reduce((sum, { items }) => sum + items, 0);
  const words = placed ? `${count(placed, "item")} with a place` : "No item has a latitude and a longitude.";
  const head = h("div", { class: "head" }, h("p", {}, words, first.unplaced ? `; ${count(first.unplaced, "item")} without` : null), filterBar(state, facts));
  const earth = new Earth({ path, first, state, facts, where, isCurrent });
  panel.replaceChildren(head, ...(placed ? earth.elements : []));
  if (placed) earth.begin();
}

class Earth {
  known = new Map();  // by the size of cells in degrees: {cells, box}, no box where they are of the whole earth

  constructor(given) {
    Object.assign(this, given);
    this.known.set(FIRST, { cells: given.first.cells });
    this.cells = given.first.cells;  // until there are some of a fitting size
    this.circles = h("g", {});
    this.land = h("path", { class: "land", d: given.path });
    this.svg = h("svg", { class: "earth", tabindex: "0", role: "application", "aria-describedby": "earth-help",
      "aria-label": "Map of the earth", onkeydown: (event) => this.key(event) }, this.land, this.circles);
    this.tip = h("div", { class: "tip", hidden: true });
    this.list = h("ol", { class: "place-list" });
    this.title = h("h2", { id: "places-here" }, "Places");
    const button = (id, text, label, run) => h("button", { type: "button", id, "aria-label": label, title: label, onclick: run }, text);
    const buttons = h("div", { role: "group", class: "methods", "aria-label": "Look closer" },
      button("closer", "+", "Closer", () => this.zoom(CLOSER)), button("further", "−", "Further", () => this.zoom(1 / CLOSER)),
      button("everything", "All places", "All places", () => this.everything()), button("whole", "Earth", "The whole earth", () => this.whole()));
    this.elements = [
      h("div", { class: "tools" }, buttons, h("p", { class: "soft", id: "earth-help" }, "Drag to move, scroll or pinch to zoom, click a circle for its items. The same as a list below.")),
      h("div", { class: "earth-box" }, this.svg, this.tip),
      h("section", { "aria-labelledby": "places-here" }, this.title, this.list)];
    gestures(this.svg, { pan: (dx, dy) => this.pan(dx, dy), zoom: (...at) => this.zoom(...at), tap: (x, y) => this.tap(x, y),
      hover: (x, y) => this.hover(x, y), leave: () => this.hover(-1e6, -1e6) });
    new ResizeObserver(() => this.show()).observe(this.svg);
  }

  /** As it was last looked at. */
  begin() {
    if (looked.where !== this.where) this.everything();
    else {
      Object.assign(this, looked);
      this.show();
    }
  }

  /** So that all places are seen. */
  everything() {
    const east = this.first.cells.map(({ longitude }) => longitude), south = this.first.cells.map(({ latitude }) => -latitude);
    const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2, extent = (values) => Math.max(...values) - Math.min(...values);
    const { width, height } = this.size();
    [this.x, this.y] = [middle(east), middle(south)];
    this.across = Math.min(360, Math.max(LEAST, extent(east), (extent(south) * width) / height) * MARGIN);
    this.show();
  }

  whole() {
    [this.x, this.y, this.across] = [0, 0, 360];
    this.show();
  }

  size() {
    const { width, height } = this.svg.getBoundingClientRect();
    return { width: width || 1, height: height || 1 };
  }

  get pixel() {
    return this.across / this.size().width;
  }

  /** The pixel of a place in degrees east and south. */
  pixelOf([east, south]) {
    const { width, height } = this.size();
    return [(east - this.x) / this.pixel + width / 2, (south - this.y) / this.pixel + height / 2];
  }

  pan(dx, dy) {
    this.x -= dx * this.pixel;
    this.y -= dy * this.pixel;
    this.show();
  }

  zoom(factor, px, py) {
    const { width, height } = this.size(), before = this.pixel;
    this.across = Math.min(360, Math.max(CLOSEST, this.across / factor));
    this.x += ((px ?? width / 2) - width / 2) * (before - this.pixel);
    this.y += ((py ?? height / 2) - height / 2) * (before - this.pixel);
    this.show();
  }

  key(event) {
    const { width, height } = this.size(), across = STEP * width, down = STEP * height;
    const steps = { ArrowLeft: [across, 0], ArrowRight: [-across, 0], ArrowUp: [0, down], ArrowDown: [0, -down] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (steps[event.key]) this.pan(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(CLOSER);
    else if (event.key === "-") this.zoom(1 / CLOSER);
    else if (event.key === "0") this.whole();
    else return;
    event.preventDefault();
  }

  show() {
    if (this.across === undefined || !this.svg.isConnected) return;
    const { width, height } = this.size(), high = height * this.pixel;
    this.x = Math.min(180, Math.max(-180, this.x));
    this.y = Math.min(90, Math.max(-90, this.y));
    looked = { where: this.where, x: this.x, y: this.y, across: this.across };
    this.svg.setAttribute("viewBox", `${this.x - this.across / 2} ${this.y - high / 2} ${this.across} ${high}`);
    this.land.setAttribute("stroke-width", this.pixel);
    const degrees = CELLS.findLast((cell) => cell / this.pixel >= APART) ?? CELLS[0];
    clearTimeout(this.timer);
    const known = this.known.get(degrees);
    this.isWaiting = !known || Boolean(known.box && !isWithin(this.view(high), known.box));
    this.svg.setAttribute("aria-busy", "true");
    if (this.isWaiting) this.timer = setTimeout(() => this.load(degrees, high), PAUSE);
    else this.cells = known.cells;
    this.drawCircles(width, height);
    clearTimeout(this.listing);
    this.listing = setTimeout(() => this.showList(width, height), PAUSE);
  }

  /** South, west, north and east of what is in sight, and some shares of it around. */
  view(high, around = 0) {
    const wide = this.across * (0.5 + around), tall = high * (0.5 + around);
    const most = (value, end) => Math.min(end, Math.max(-end, value));
    return { south: most(-this.y - tall, 90), west: most(this.x - wide, 180), north: most(-this.y + tall, 90), east: most(this.x + wide, 180) };
  }

  /** Small cells only for what is in sight and around it: there may be very many. */
  async load(degrees, high) {
    const box = degrees < SMALL ? this.view(high, 1) : null;
    const found = await get("places", { where: this.where, degrees, ...box }).catch(() => null);
    this.isWaiting = false;
    if (!found) return this.svg.setAttribute("aria-busy", "false");  // the cells that are shown stay
    this.known.set(degrees, { cells: found.cells, box });
    return this.isCurrent() ? this.show() : undefined;
  }

  drawCircles(width, height) {
    const inSight = this.cells.filter(({ box: [south, west, north, east] }) => {
      const [[left, bottom], [right, top]] = [this.pixelOf([west, -south]), this.pixelOf([east, -north])];
      return right > 0 && left < width && bottom > 0 && top < height;
    });
    const most = Math.max(1, ...inSight.map(({ items }) => items)), { pixel } = this;
    this.inSight = inSight.map((cell) => {
      const r = SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(cell.items / most);
      return { cell, r, place: withinCell(cell, r * pixel) };
    });
    this.circles.replaceChildren(...this.inSight.flatMap(({ cell: { items }, r, place: [x, y] }) => [
      h("circle", { cx: x, cy: y, r: r * pixel, "stroke-width": 1.5 * pixel }),
      r > 11 && items < 10_000 ? h("text", { x, y: y + 4 * pixel, "font-size": 11 * pixel, "text-anchor": "middle" }, String(items)) : null]).filter(Boolean));
  }

  at(px, py) {
    return this.inSight?.find(({ place, r }) => {
      const [x, y] = this.pixelOf(place);
      return Math.hypot(x - px, y - py) <= Math.max(r, 12);
    });
  }

  tap(px, py) {
    const found = this.at(px, py);
    if (found) go(this.inside(found.cell));
  }

  hover(px, py) {
    const found = this.at(px, py);
    this.svg.classList.toggle("over", Boolean(found));
    this.tip.hidden = !found;
    if (!found || this.tipped === found.cell) return;
    this.tipped = found.cell;
    const [x, y] = this.pixelOf(found.place), { width, height } = this.size();
    this.tip.replaceChildren(this.facts.pictures ? thumbnail(true, { id: found.cell.id }, "") : "", h("div", {}, wordsOf(found.cell)));
    this.tip.style.left = `${x > width / 2 ? x - 170 : x + 24}px`;
    this.tip.style.top = `${Math.max(0, Math.min(height - 150, y - 60))}px`;
  }

  /** The state that shows the items of a cell; another place that was asked for gives way. */
  inside({ box: [south, west, north, east] }) {
    const others = this.state.where.filter((clause) => !["latitude", "longitude"].includes(understand(clause)?.name));
    const box = [write("latitude", ">=", south), write("latitude", "<", north), write("longitude", ">=", west), write("longitude", "<", east)];
    return { view: "", tab: "", show: "", parts: [], where: [...others, ...box] };
  }

  showList(width, height) {
    const inside = this.inSight.filter(({ place }) => {
      const [x, y] = this.pixelOf(place);
      return x >= 0 && y >= 0 && x <= width && y <= height;
    }).map(({ cell }) => cell).sort((a, b) => b.items - a.items);
    const items = inside.reduce((sum, cell) => sum + cell.items, 0);
    this.svg.setAttribute("aria-busy", String(this.isWaiting));
    this.title.textContent = inside.length ? `${count(items, "item")} in ${count(inside.length, "place")} in sight` : "No place is in sight";
    this.list.replaceChildren(...inside.slice(0, MOST_LISTED).map((cell) => h("li", {},
      h("a", { "data-link": true, href: addressOf({ ...this.state, ...this.inside(cell) }) },
        this.facts.pictures ? thumbnail(true, { id: cell.id }, "") : null, h("span", {}, wordsOf(cell))))));
  }
}

const isWithin = (inner, outer) => inner.south >= outer.south && inner.west >= outer.west && inner.north <= outer.north && inner.east <= outer.east;

/** The mean place of a cell, moved so that the circle stays within, and no circle lies on another. */
function withinCell({ latitude, longitude, box: [south, west, north, east] }, r) {
  const between = (value, low, high) => (low > high ? (low + high) / 2 : Math.min(high, Math.max(low, value)));
  return [between(longitude, west + r, east - r), -between(latitude, south + r, north - r)];
}

const angle = (value, [positive, negative]) => `${Math.abs(value).toFixed(2)}° ${value < 0 ? negative : positive}`;
const wordsOf = ({ latitude, longitude, items }) => `${count(items, "item")} near ${angle(latitude, "NS")}, ${angle(longitude, "EW")}`;
