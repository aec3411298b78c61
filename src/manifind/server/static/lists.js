// A list that goes on while people scroll, and as far as it was when they come back to it.

import { h, problemBox } from "./dom.js";
import { here } from "./state.js";

const PAGE = 36;

/** What the viewer walks along: the items that are shown, and more(), which loads further ones and says whether there were any. */
export const shown = { items: [], more: null };

export class Endless {
  offset = 0;
  isMore = true;
  running = null;

  /** load(offset, k) gives {more, ...}; append(found) shows it. wanted: how many to begin with. most: of one request. */
  constructor({ load, append, isCurrent, wanted = 0, most }) {
    Object.assign(this, { load, append, isCurrent, wanted, most });
    this.end = h("div", { class: "end" });
    this.watch = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.go(), { rootMargin: "400px" });
  }

  /** The first part; what goes wrong with it is thrown. */
  async begin() {
    do {
      await this.step(Math.min(this.most, Math.max(PAGE, this.wanted - this.offset)));
    } while (this.isMore && this.offset < this.wanted);
    this.look();
  }

  /** Further ones; whether there were any. */
  go() {
    this.running ??= this.further().finally(() => { this.running = null; });
    return this.running;
  }

  async further() {
    const before = this.offset;
    if (!this.isMore || !this.isCurrent()) return false;
    try {
      await this.step(PAGE);
      this.end.replaceChildren();
      this.look();
    } catch (problem) {
      this.watch.disconnect();
      this.end.replaceChildren(problemBox(problem, () => this.go()));
    }
    return this.offset > before;
  }

  async step(k) {
    const found = await this.load(this.offset, k);
    if (!this.isCurrent()) return;
    this.offset += this.append(found);
    this.isMore = found.more;
    here.shown = this.offset;
  }

  /** Observed anew, since an end that stays in sight is told only once. */
  look() {
    this.watch.disconnect();
    if (this.isMore && this.isCurrent()) this.watch.observe(this.end);
  }
}
