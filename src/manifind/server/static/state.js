// What the page shows, as the address has it: every state can be shared, and the back button leads to the same place.

const SINGLE = ["view", "method", "name", "space", "colour", "tab", "cluster", "show", "all"];
const PART = /^(-?)(id|upload|text)(?:@([-\d.,e]+))?:(.*)$/su;
const SETTLED = 250;  // milliseconds without scrolling after which the place is kept

/** The state that the address stands for: parts of the query, filter clauses, view, and what is open above them. */
export function read() {
  const given = new URLSearchParams(location.search);
  const state = Object.fromEntries(SINGLE.map((key) => [key, given.get(key) ?? ""]));
  state.parts = given.getAll("q").map(partOf).filter(Boolean);
  state.where = given.getAll("where").filter((clause) => clause.trim());
  const old = ["id", "upload", "text"].find((kind) => given.get(kind));  // addresses that people kept: ?id=...
  if (old && !state.parts.length) state.parts = [{ sign: 1, kind: old, value: given.get(old), crop: "" }];
  return state;
}

function partOf(text) {
  const [, minus, kind, crop, value] = PART.exec(text) ?? [];
  return value ? { sign: minus ? -1 : 1, kind, value, crop: crop ?? "" } : null;
}

const textOf = (part) => `${part.sign < 0 ? "-" : ""}${part.kind}${part.crop ? `@${part.crop}` : ""}:${part.value}`;

/** The address of a state, relative to the page. */
export function addressOf(state) {
  const given = [
    ...(state.parts ?? []).map((part) => ["q", textOf(part)]),
    ...(state.where ?? []).map((clause) => ["where", clause]),
    ...SINGLE.filter((key) => state[key]).map((key) => [key, state[key]]),
  ];
  const query = String(new URLSearchParams(given)).replace(/%(2F|3A|2C|40)/g, decodeURIComponent);  // as people read them
  return given.length ? `?${query}` : "./";
}

/** Change the state. Closing the viewer leads back to where it was opened. */
export function go(changes, { replace = false } = {}) {
  const next = { ...read(), ...changes }, isSameBelow = below(next) === below(read());
  if (isSameBelow && !next.show && history.state?.opened) history.back();
  else open(addressOf(next), { replace, opened: isSameBelow && Boolean(next.show) });
}

function open(address, { replace = false, opened = false } = {}) {
  if (new URL(address, location.href).search === location.search) return again();
  keep();
  const place = { scroll: scrollY, shown: here.shown };
  const isOpen = opened && (!replace || history.state?.opened);
  history[replace ? "replaceState" : "pushState"](opened ? { ...place, opened: isOpen } : null, "", address);
  return show();
}

const below = (state) => addressOf({ ...state, show: "" });

/** How much of a list is shown now, so that as much is loaded when people come back; views write it. */
export const here = { shown: 0 };

let render = async () => {};
let rendered = null, turn = 0, isSettled = false;

function keep() {
  if (isSettled) history.replaceState({ ...history.state, scroll: scrollY, shown: here.shown }, "");
}

/** Render what the address says; where only the viewer opens or closes, what lies below stays as it is. */
async function show({ anew = false, place = history.state ?? {} } = {}) {
  const state = read(), isSameBelow = rendered === below(state) && !anew;
  if (isSameBelow) return render(state, { below: false });
  rendered = below(state);
  turn += 1;
  isSettled = false;
  here.shown = 0;
  const mine = turn, isCurrent = () => mine === turn;
  if (!place.scroll) scrollTo(0, 0);
  await render(state, { below: true, anew, shown: place.shown ?? 0, isCurrent });
  if (!isCurrent()) return undefined;
  if (place.scroll) scrollTo(0, place.scroll);
  isSettled = true;
  return undefined;
}

/** Render the same state again, as after a change of the collection, at the same place. */
export const again = () => show({ anew: true, place: { scroll: scrollY, shown: here.shown } });

/** render(state, {below, anew, shown, isCurrent}) shows a state; below: whether more than the viewer has changed. */
export function start(renderer) {
  render = renderer;
  history.scrollRestoration = "manual";
  addEventListener("popstate", () => show());
  addEventListener("pagehide", keep);
  let timer = 0;
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(keep, SETTLED);
  }, { passive: true });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-link]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    follow(link);
  });
  show();
}

function follow(link) {
  const to = new URL(link.href), now = new URL(location.href);
  const shown = to.searchParams.get("show");
  for (const one of [to, now]) one.searchParams.delete("show");
  open(link.getAttribute("href"), { opened: Boolean(shown) && String(to.searchParams) === String(now.searchParams) });
}
