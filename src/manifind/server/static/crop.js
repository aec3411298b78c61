// A part of a picture, chosen with a rectangle: drawn, moved and resized by pointer, by touch or by keys.

import { h } from "./dom.js";

const LEAST = 0.02;  // of the width or height: less would be a pixel or two
const STEP = 0.02;
const CORNERS = [[0, 0], [1, 0], [0, 1], [1, 1]];  // right, low
const REACH = 22;  // pixels around a corner by which it can be pulled
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const between = (value, low, high) => Math.min(high, Math.max(low, value));

/** What lies over a picture while a part of it is chosen: done("l,t,w,h"), or done("") where nothing was. */
export function cropper(done) {
  const chosen = new Part();
  const words = h("p", { class: "crop-words", role: "status", id: "crop-words" });
  const handles = CORNERS.map(([right, low]) => h("span", { class: `handle ${right ? "right" : "left"} ${low ? "low" : "high"}` }));
  const box = h("div", { class: "crop-box", tabindex: "0", role: "application", "aria-label": "Part of the picture",
    "aria-describedby": "crop-help" }, handles);
  const area = h("div", { class: "crop-area" }, box);
  const show = () => {
    for (const [name, value] of Object.entries({ left: chosen.left, top: chosen.top, width: chosen.width, height: chosen.height })) {
      box.style[name] = `${value * 100}%`;
    }
    words.textContent = chosen.words;
  };
  const bar = h("div", { class: "crop-bar", role: "group", "aria-label": "Part of the picture" },
    h("p", { id: "crop-help" }, "Draw a rectangle. Arrow keys move it, with Shift they resize it; Enter searches, Escape cancels."),
    words,
    h("button", { class: "primary", onclick: () => done(chosen.shares) }, "Search by this part"), " ",
    h("button", { onclick: () => done("") }, "Cancel"));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") done(chosen.shares);
    else if (KEYS[event.key]) chosen[event.shiftKey ? "grow" : "move"](...KEYS[event.key].map((one) => one * STEP));
    else return;
    event.preventDefault();
    event.stopPropagation();
    show();
  });
  for (const element of [area, bar]) element.addEventListener("keydown", (event) => escape(event, done));
  follow(area, chosen, show);
  show();
  return { area, bar, focus: () => box.focus() };
}

function escape(event, done) {
  if (event.key !== "Escape") return;
  event.preventDefault();  // or the dialog around the picture would close
  event.stopPropagation();
  done("");
}

/** A rectangle in shares of the picture. */
class Part {
  left = 0.25;
  top = 0.25;
  width = 0.5;
  height = 0.5;

  get shares() {
    return [this.left, this.top, this.width, this.height].map((share) => share.toFixed(4)).join();
  }

  get words() {
    const said = { Left: this.left, top: this.top, width: this.width, height: this.height };
    return Object.entries(said).map(([name, share]) => `${name} ${Math.round(share * 100)}%`).join(", ");
  }

  move(x, y) {
    this.left = between(this.left + x, 0, 1 - this.width);
    this.top = between(this.top + y, 0, 1 - this.height);
  }

  grow(x, y) {
    this.width = between(this.width + x, LEAST, 1 - this.left);
    this.height = between(this.height + y, LEAST, 1 - this.top);
  }

  /** From a corner that stays to one that follows the pointer. */
  span([fromX, fromY], [toX, toY]) {
    [this.left, this.width] = stretched(fromX, between(toX, 0, 1));
    [this.top, this.height] = stretched(fromY, between(toY, 0, 1));
  }

  has([x, y]) {
    return x >= this.left && x <= this.left + this.width && y >= this.top && y <= this.top + this.height;
  }

  /** The corner that stays while the one near a place is pulled; of a small rectangle the middle is left to move it. */
  oppositeOf([x, y], width, height) {
    const isNear = ([right, low]) => {
      const across = (x - this.left - right * this.width) * width * (right ? 1 : -1), inside = this.width * width / 3;
      const down = (y - this.top - low * this.height) * height * (low ? 1 : -1), below = this.height * height / 3;
      return across < REACH && down < REACH && across > -Math.min(REACH, inside) && down > -Math.min(REACH, below);
    };
    const [right, low] = CORNERS.find(isNear) ?? [];
    return right === undefined ? null : [this.left + (1 - right) * this.width, this.top + (1 - low) * this.height];
  }
}

function stretched(from, to) {
  const size = Math.max(LEAST, Math.abs(to - from));
  return [between(Math.min(from, to), 0, 1 - size), size];
}

/** A drag draws a rectangle, moves the one it begins in, or pulls at a corner. */
function follow(area, chosen, show) {
  let drag = null;
  const place = (event) => {
    const { left, top, width, height } = area.getBoundingClientRect();
    return [between((event.clientX - left) / width, 0, 1), between((event.clientY - top) / height, 0, 1)];
  };
  area.addEventListener("pointerdown", (event) => {
    if (event.button || !event.isPrimary) return;
    const at = place(event), fixed = chosen.oppositeOf(at, area.offsetWidth, area.offsetHeight);
    if (fixed) drag = (to) => chosen.span(fixed, to);
    else if (chosen.has(at)) {
      const held = [at[0] - chosen.left, at[1] - chosen.top];
      drag = (to) => chosen.move(to[0] - held[0] - chosen.left, to[1] - held[1] - chosen.top);
    } else drag = (to) => chosen.span(at, to);
    event.preventDefault();
    area.querySelector(".crop-box").focus({ preventScroll: true });
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    if (!drag || !event.isPrimary) return;
    drag(place(event));
    show();
  });
  for (const end of ["pointerup", "pointercancel"]) area.addEventListener(end, () => { drag = null; });
}
