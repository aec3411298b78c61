// Moving and zooming with a mouse, a finger, two fingers or the wheel: the same on the map of items and on that of the earth.

const CLICK = 6;  // pixels that a hand may tremble
const CLOSER = 400;  // pixels of the wheel that make everything e times as large

/**
 * What happens on a surface, in pixels from its corner. pan(dx, dy), zoom(factor, x, y), tap(x, y), hover(x, y), leave().
 * stroke: {wanted(event), begin(x, y), move(x, y), end(), drop()} for what is drawn in place of moving.
 */
export function gestures(surface, { pan, zoom, tap, hover, leave, stroke }) {
  const fingers = new Map();
  let moved = 0, isDrawing = false;

  const placeOf = (event) => {
    const { left, top } = surface.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };

  surface.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    if (event.isPrimary) fingers.clear();
    fingers.set(event.pointerId, placeOf(event));
    surface.setPointerCapture(event.pointerId);
    if (fingers.size === 1) {
      moved = 0;
      isDrawing = Boolean(stroke?.wanted(event));
      if (isDrawing) stroke.begin(...placeOf(event));
    } else {
      moved = Infinity;  // two fingers are no tap
      if (isDrawing) stroke.drop();
      isDrawing = false;
    }
  });

  surface.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId), now = placeOf(event);
    if (!before) return hover?.(...now);
    moved += distance(before, now);
    const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    fingers.set(event.pointerId, now);
    if (isDrawing) return stroke.move(...now);
    if (!other) return moved > CLICK || event.pointerType === "mouse" ? pan(now[0] - before[0], now[1] - before[1]) : undefined;
    const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
    zoom(distance(now, other) / Math.max(1, distance(before, other)), ...middle);
    return pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  });

  surface.addEventListener("pointerup", (event) => {
    if (!fingers.delete(event.pointerId)) return;
    if (isDrawing) stroke.end();
    else if (moved <= CLICK && !fingers.size) tap(...placeOf(event));
    isDrawing = false;
  });

  surface.addEventListener("pointercancel", (event) => {
    fingers.delete(event.pointerId);
    if (isDrawing) stroke.drop();
    isDrawing = false;
  });

  surface.addEventListener("pointerleave", () => leave?.());
  surface.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / CLOSER), ...placeOf(event));
  }, { passive: false });
}

const distance = (one, other) => Math.hypot(one[0] - other[0], one[1] - other[1]);
