// An item to look at: its picture large, what is known of it, what can be done with it, and its neighbours below.

import { about } from "./about.js";
import { get, showPicture } from "./api.js";
import { fullName, nameOf, pathOf, thumbnail } from "./cards.js";
import { cropper } from "./crop.js";
import { count, h, problemBox } from "./dom.js";
import { ask } from "./query.js";
import { selection } from "./selection.js";
import { addressOf, go, read } from "./state.js";
import { Zoom } from "./zoom.js";

const NEIGHBOURS = 12;
const PAN = 80;  // pixels for an arrow key

let viewer = null;

/** Show an item. shown: {items, more} of the list beneath; more() loads further ones and says whether there were any. */
export function openViewer(id, { facts, shown }) {
  viewer ??= new Viewer();
  viewer.open(id, facts, shown);
}

export function closeViewer() {
  viewer?.close();
}

const idOf = (item) => (typeof item === "string" ? item : item.id);
const button = (text, run, rest = {}) => h("button", { type: "button", onclick: run, ...rest }, text);

class Viewer {
  id = null;
  item = null;
  isLast = false;  // whether the list beneath is known to end where it ends now

  constructor() {
    this.title = h("h2", { id: "viewer-title", tabindex: "-1" });
    this.place = h("span", { class: "place" });
    this.told = h("p", { class: "hidden", role: "status" });  // for those who listen
    this.tick = h("input", { type: "checkbox", onchange: () => selection.toggle(this.id) });
    this.frame = h("div", { class: "frame" });
    this.stage = h("div", { class: "stage" }, this.frame);
    this.under = h("div", { class: "under" });
    this.previous = button("‹", () => this.walk(-1), { class: "previous", "aria-label": "Previous", "aria-keyshortcuts": "ArrowLeft" });
    this.next = button("›", () => this.walk(1), { class: "next", "aria-label": "Next", "aria-keyshortcuts": "ArrowRight" });
    this.about = h("div", { class: "about" });
    this.near = h("ol", { class: "near" });
    this.zoom = new Zoom(this.stage, (step) => this.walk(step));
    this.dialog = this.make();
    document.body.append(this.dialog);
    addEventListener("selection", () => this.showTick());
  }

  make() {
    const close = button("×", () => this.dialog.close(), { class: "close", "aria-label": "Close" });
    const head = h("div", { class: "head" }, this.title, this.place, h("label", { class: "tick" }, this.tick, "Select"), close, this.told);
    this.picture = h("div", { class: "picture" }, this.stage, this.previous, this.next, this.under);
    const neighbours = h("section", { "aria-labelledby": "viewer-near" }, h("h3", { id: "viewer-near" }, "Nearest to it"), this.near);
    const dialog = h("dialog", { class: "viewer", "aria-labelledby": "viewer-title" }, head,
      h("div", { class: "body" }, h("div", { class: "top" }, this.picture, this.about), neighbours));
    dialog.addEventListener("close", () => this.left());
    dialog.addEventListener("cancel", (event) => event.target === dialog && this.cropping && event.preventDefault());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());  // beside it
    dialog.addEventListener("keydown", (event) => this.key(event));
    dialog.addEventListener("click", (event) => this.follow(event));
    return dialog;
  }

  open(id, facts, shown) {
    const isOther = id !== this.id || !this.dialog.open;
    Object.assign(this, { facts, shown, isLast: this.isLast && this.list === shown.items, list: shown.items });
    if (isOther) this.begin(id);
    if (!this.dialog.open) {
      this.dialog.showModal();
      this.title.focus();
    } else if (isOther && !this.dialog.contains(document.activeElement)) this.title.focus();
    this.showWhere();
    this.showTick();
    this.load(isOther);
  }

  /** Somebody else has changed the address, or wants it closed. */
  close() {
    if (this.dialog.open) this.dialog.close();
  }

  /** It was closed, by a key, a click, or the address: the address and the focus go back to the list. */
  left() {
    const id = this.id;
    this.endCrop();
    this.frame.replaceChildren();
    this.id = null;
    if (read().show) go({ show: "" }, { replace: true });
    [...document.querySelectorAll("main [data-id]")].find((card) => card.dataset.id === id)?.querySelector("a, button")?.focus();
  }

  begin(id) {
    this.endCrop();
    Object.assign(this, { id, item: null });
    this.title.replaceChildren(h("bdi", {}, id));
    this.about.replaceChildren();
    this.near.replaceChildren();
    this.showPicture();
    this.dialog.querySelector(".body").scrollTo(0, 0);
  }

  showPicture() {
    const words = (text) => h("p", { class: "words" }, h("bdi", {}, text));
    if (!this.facts.pictures) {
      this.frame.replaceChildren(words(this.id));
      return;
    }
    const image = h("img", { alt: `Picture ${this.id}`, draggable: "false" }), id = this.id;
    image.addEventListener("error", () => {
      if (this.id !== id) return;
      this.frame.replaceChildren(words(`There is no picture of ${id}. Its file may be gone.`));
      this.zoom.on(null);
      this.showAbout();
    });
    showPicture(image, "picture", { id });
    this.frame.replaceChildren(image);
    this.zoom.on(image);
  }

  async load(isOther) {
    const { id } = this, isCurrent = () => this.id === id;
    const item = await get("item", { id }).catch((problem) => ({ problem }));
    if (!isCurrent()) return;
    if (item.problem) this.about.replaceChildren(problemBox(item.problem));
    else {
      this.item = item;
      this.showAbout();
    }
    if (!isOther || item.problem) return;
    const found = await get("search", { id, k: NEIGHBOURS + 1 }).catch((problem) => ({ problem }));
    if (isCurrent()) this.showNear(found);
  }

  get image() {
    return this.frame.querySelector("img");
  }

  // What is known of the item

  showAbout() {
    if (!this.item) return;
    const { item } = this;
    this.title.replaceChildren(h("bdi", { title: fullName(item) }, pathOf(item)));
    if (this.image) this.image.alt = `Picture ${fullName(item)}`;
    const focused = this.about.contains(document.activeElement) ? document.activeElement.textContent : null;
    this.about.replaceChildren(...about(item, this.facts, this.image ? () => this.crop() : null));
    if (focused !== null) ([...this.about.querySelectorAll("a, button")].find((one) => one.textContent === focused) ?? this.title).focus();
  }

  // Its neighbours, and the list beneath

  showNear(found) {
    if (found.problem) {
      this.near.replaceChildren(h("li", { class: "wide" }, problemBox(found.problem)));
      return;
    }
    const others = found.results.filter((item) => item.id !== this.id).slice(0, NEIGHBOURS);
    this.near.replaceChildren(...others.map((item) => h("li", {},
      h("a", { href: addressOf({ ...read(), show: item.id }), "data-show": item.id, title: fullName(item) },
        thumbnail(this.facts.pictures, { id: item.id }, fullName(item)),
        this.facts.pictures ? h("bdi", { class: "label", "aria-hidden": "true" }, nameOf(pathOf(item))) : null))));
  }

  /** Another item takes the place of this one, so that one step back closes the viewer. */
  follow(event) {
    const link = event.target.closest?.("a[data-show]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go({ show: link.dataset.show }, { replace: true });
  }

  get at() {
    return this.shown.items.findIndex((item) => idOf(item) === this.id);
  }

  showWhere() {
    const { at } = this, total = this.shown.items.length;
    this.place.textContent = at < 0 ? "" : `${at + 1} of ${count(total, "item")} shown`;
    this.told.textContent = at < 0 ? this.id : `${this.id}, ${at + 1} of ${total}`;
    this.previous.setAttribute("aria-disabled", String(at <= 0));
    this.next.setAttribute("aria-disabled", String(at < 0 || (at === total - 1 && this.isLast)));
  }

  async walk(step) {
    const { at, id } = this;
    if (at < 0 || this.cropping) return;
    let to = this.shown.items[at + step];
    if (!to && step > 0) {
      this.isLast = !(await this.shown.more?.());
      to = this.shown.items[at + 1];
      if (this.id !== id) return;
    }
    if (to) go({ show: idOf(to) }, { replace: true });
    else this.showWhere();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input[type=text], textarea, select")) return;
    const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    const zooms = { "+": this.zoom.closer, "=": this.zoom.closer, "-": this.zoom.further, 0: () => this.zoom.whole() }[event.key];
    if (zooms && this.image && !this.cropping) zooms();
    else if (arrows && this.zoom.scale > 1) this.zoom.pan(...arrows.map((one) => one * PAN));
    else if (arrows?.[0]) this.walk(-arrows[0]);
    else return;
    event.preventDefault();
  }

  // A part of the picture

  crop() {
    this.endCrop();
    this.zoom.whole();
    this.zoom.isHeld = true;
    this.cropping = cropper((crop) => {
      if (crop) ask([{ sign: 1, kind: "id", value: this.id, crop }]);
      else this.endCrop();
    });
    this.frame.append(this.cropping.area);
    this.picture.classList.add("cropping");
    this.under.replaceChildren(this.cropping.bar);
    this.cropping.focus();
  }

  endCrop() {
    if (!this.cropping) return;
    this.cropping.area.remove();
    this.picture.classList.remove("cropping");
    this.under.replaceChildren();
    this.cropping = null;
    this.zoom.isHeld = false;
    this.title.focus();
  }

  showTick() {
    if (this.id !== null) this.tick.checked = selection.has(this.id);
  }
}
