// What lies together on the map is selected at once: by a line drawn around it, or, with keys, by a ring.

import { count, h } from "./dom.js";

const APART = 4;  // pixels between two corners of the line
const RADIUS = 60, STEP = 12, LARGER = 1.15;
const HELP = "Arrow keys move the ring, plus and minus change its size, Enter selects what is inside, Escape ends.";

export class Lasso {
  corners = [];
  ring = null;  // {x, y, r}
  isOn = false;

  /** select(points): those that are inside. said(text): what a screen reader is told. */
  constructor(map, { select, said }) {
    Object.assign(this, { map, select, said });
    map.lasso = this;
    this.button = h("button", { type: "button", id: "lasso", "aria-pressed": "false", title: "Draw around items to select them ( L )",
      onclick: (event) => this.pressed(event.detail === 0) }, "Lasso");
  }

  /** Whoever presses the button with a key gets the ring. */
  pressed(byKey) {
    if (byKey && !this.ring) return this.startRing();
    return this.turn(!this.isOn && !this.ring);
  }

  turn(isOn) {
    this.isOn = isOn;
    this.ring = null;
    this.show();
  }

  show() {
    this.button.setAttribute("aria-pressed", String(this.isOn || this.ring !== null));
    this.map.box.classList.toggle("drawing", this.isOn);
    this.map.draw();
  }

  isWanted = (event) => this.isOn || (event.shiftKey && event.pointerType === "mouse");

  begin(x, y) {
    this.corners = [[x, y]];
    this.map.point(-1);
  }

  move(x, y) {
    const [lastX, lastY] = this.corners.at(-1);
    if (Math.hypot(x - lastX, y - lastY) >= APART) this.corners.push([x, y]);
    this.map.draw();
  }

  end() {
    const inside = this.corners.length > 2 ? this.within(this.corners) : [];
    this.drop();
    this.turn(false);
    this.choose(inside);
  }

  drop() {
    this.corners = [];
    this.map.draw();
  }

  choose(inside) {
    this.said(inside.length ? `${count(inside.length, "item")} selected` : "Nothing is inside");
    if (inside.length) this.select(inside);
  }

  startRing() {
    const { width, height } = this.map.canvas;
    this.turn(false);
    this.ring = { x: width / 2, y: height / 2, r: RADIUS };
    this.map.canvas.focus();
    this.show();
    this.tell(HELP);
  }

  tell(more = "") {
    this.said(`${count(this.insideRing().length, "item")} inside the ring. ${more}`);
  }

  /** Whether a key was meant for the ring. */
  key(event) {
    if (event.key === "l" || event.key === "L") this.startRing();
    else if (event.key === "Escape" && (this.ring || this.isOn)) this.turn(false);
    else if (!this.ring || !this.change(event.key)) return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  change(key) {
    const { ring } = this, { width, height } = this.map.canvas;
    const step = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[key];
    const factor = { "+": LARGER, "=": LARGER, "-": 1 / LARGER }[key];
    if (step) {
      ring.x = Math.min(width, Math.max(0, ring.x + step[0]));
      ring.y = Math.min(height, Math.max(0, ring.y + step[1]));
    } else if (factor) ring.r = Math.min(2000, Math.max(8, ring.r * factor));
    else if (key === "Enter") {
      const inside = this.insideRing();
      this.turn(false);
      this.choose(inside);
      return true;
    } else return false;
    this.map.draw();
    this.tell();
    return true;
  }

  insideRing() {
    const { x, y, r } = this.ring, frame = this.map.frame();
    return this.those((at) => {
      const [px, py] = this.map.placeOf(at, frame);
      return Math.hypot(px - x, py - y) <= r;
    });
  }

  /** The points inside a polygon of the canvas. */
  within(corners) {
    const { left, top, scale } = this.map.frame(), { points } = this.map;
    const polygon = corners.map(([x, y]) => [(x - left) / scale, (y - top) / scale]);
    const xs = polygon.map(([x]) => x), ys = polygon.map(([, y]) => y);
    const [west, east, north, south] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    return this.those((at) => {
      const x = points[2 * at], y = points[2 * at + 1];
      return x >= west && x <= east && y >= north && y <= south && isInside(x, y, polygon);
    });
  }

  those(isIn) {
    const found = [];
    for (let at = 0; at < this.map.n; at += 1) if (this.map.isShown(at) && isIn(at)) found.push(at);
    return found;
  }

  draw(context) {
    if (!this.ring && this.corners.length < 2) return;
    context.beginPath();
    if (this.ring) context.arc(this.ring.x, this.ring.y, this.ring.r, 0, 7);
    else {
      context.moveTo(...this.corners[0]);
      for (const corner of this.corners.slice(1)) context.lineTo(...corner);
      context.closePath();
    }
    Object.assign(context, { fillStyle: this.map.inks.accent, strokeStyle: this.map.inks.accent, lineWidth: 2, globalAlpha: 0.15 });
    context.fill("evenodd");
    context.globalAlpha = 1;
    context.stroke();
  }
}

/** Whether a line from a place to the far right crosses the polygon an odd number of times. */
function isInside(x, y, polygon) {
  let isIn = false;
  for (let at = 0, before = polygon.length - 1; at < polygon.length; before = at, at += 1) {
    const [ax, ay] = polygon[at], [bx, by] = polygon[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) isIn = !isIn;
  }
  return isIn;
}
