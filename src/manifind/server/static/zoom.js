// A picture that can be looked at closely: by click, wheel, keys, or two fingers; a swipe across a whole one goes on.

const MOST = 8, STEP = 1.4;
const SWIPE = 50;  // pixels across, more than up or down, that are meant as one
const ENLARGED = 6;  // times that a small picture is shown larger than it is
const CLICK = 6;  // pixels that a hand may tremble

/** stage: the box that the picture lies in. swiped(1 | -1): the next or the previous one is wanted. */
export class Zoom {
  scale = 1;
  x = 0;
  y = 0;
  isHeld = false;  // while a part is chosen
  #fingers = new Map();
  #began = null;

  constructor(stage, swiped) {
    Object.assign(this, { stage, swiped, image: null });
    new ResizeObserver(() => this.#fit()).observe(stage);
    stage.addEventListener("pointerdown", (event) => this.#down(event));
    stage.addEventListener("pointermove", (event) => this.#move(event));
    stage.addEventListener("pointerup", (event) => this.#up(event));
    stage.addEventListener("pointercancel", (event) => this.#forget(event));
    stage.addEventListener("wheel", (event) => {
      if (this.isHeld || !event.ctrlKey) return;  // a plain wheel scrolls the page
      event.preventDefault();
      this.by(Math.exp(-event.deltaY / 200), event);
    }, { passive: false });
  }

  /** Look at another picture, as a whole. */
  on(image) {
    this.image = image;
    this.#fingers.clear();
    image?.addEventListener("load", () => this.#fit());
    this.#fit();
  }

  /** As large as the box allows, with exactly the sides of the picture: a part of it is chosen in shares of them. */
  #fit() {
    const { image, stage } = this;
    if (image?.naturalWidth) {
      const { naturalWidth: width, naturalHeight: height } = image;
      const scale = Math.min(ENLARGED, stage.clientWidth / width, stage.clientHeight / height);
      Object.assign(image.style, { width: `${width * scale}px`, height: `${height * scale}px` });
    }
    this.whole();
  }

  whole() {
    [this.scale, this.x, this.y] = [1, 0, 0];
    this.#show();
  }

  closer = () => this.by(STEP);
  further = () => this.by(1 / STEP);

  /** Enlarge, so that the place at a pointer, or the middle, stays where it is. */
  by(factor, at = null) {
    const { left, top, width, height } = this.stage.getBoundingClientRect();
    const px = at ? at.clientX - left - width / 2 : 0, py = at ? at.clientY - top - height / 2 : 0;
    const scale = Math.min(MOST, Math.max(1, this.scale * factor)), share = scale / this.scale;
    [this.x, this.y, this.scale] = [px - (px - this.x) * share, py - (py - this.y) * share, scale];
    this.#show();
  }

  pan(x, y) {
    this.x += x;
    this.y += y;
    this.#show();
  }

  #show() {
    if (!this.image) return;
    const most = (size) => (size * (this.scale - 1)) / 2;
    const [wide, high] = [most(this.image.offsetWidth), most(this.image.offsetHeight)];
    this.x = Math.min(wide, Math.max(-wide, this.x));
    this.y = Math.min(high, Math.max(-high, this.y));
    this.image.style.transform = this.scale === 1 ? "" : `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
    this.stage.classList.toggle("close", this.scale > 1);
  }

  #down(event) {
    if (this.isHeld || event.button || !this.image || event.target.closest("button, a")) return;
    if (event.isPrimary) this.#fingers.clear();
    this.#fingers.set(event.pointerId, event);
    this.#began = this.#fingers.size === 1 ? event : null;  // two fingers are no click and no swipe
    this.stage.setPointerCapture(event.pointerId);
    if (event.pointerType === "mouse") event.preventDefault();  // or the browser would drag the picture away
  }

  #move(event) {
    const before = this.#fingers.get(event.pointerId);
    if (!before) return;
    const [other] = [...this.#fingers.values()].filter((one) => one.pointerId !== event.pointerId);
    this.#fingers.set(event.pointerId, event);
    const pan = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (other) {
      const middle = { clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 };
      const factor = distance(event, other) / Math.max(1, distance(before, other));
      this.by(factor, middle);
      this.pan(pan[0] / 2, pan[1] / 2);
    } else if (this.scale > 1) this.pan(...pan);
  }

  #up(event) {
    if (!this.#fingers.has(event.pointerId)) return;
    const began = this.#began;
    this.#forget(event);
    if (!began) return;
    const across = event.clientX - began.clientX, down = event.clientY - began.clientY;
    if (Math.hypot(across, down) < CLICK) {
      if (this.scale > 1) this.whole();
      else this.by(2.5, event);
    } else if (this.scale === 1 && Math.abs(across) > SWIPE && Math.abs(across) > 1.5 * Math.abs(down)) this.swiped(across < 0 ? 1 : -1);
  }

  #forget(event) {
    this.#fingers.delete(event.pointerId);
    this.#began = null;
  }
}

const distance = (one, other) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
