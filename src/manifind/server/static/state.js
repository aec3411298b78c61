// What the page shows, as the address has it: every state can be shared, and the back button leads to the one before.

const keys = ["view", "id", "upload", "text", "method", "where", "name", "space"];
let render = () => {};

export function read() {
  const given = new URLSearchParams(location.search);
  return Object.fromEntries(keys.map((key) => [key, given.get(key) ?? ""]));
}

export function addressOf(state) {
  const given = keys.filter((key) => state[key]).map((key) => [key, state[key]]);
  return given.length ? `/?${new URLSearchParams(given)}` : "/";
}

export function go(changes, { replace = false } = {}) {
  const next = addressOf({ ...read(), ...changes });
  if (next === location.pathname + location.search) return render();
  history[replace ? "replaceState" : "pushState"](null, "", next);
  render();
}

export function start(renderer) {
  render = renderer;
  addEventListener("popstate", render);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-link]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    history.pushState(null, "", link.getAttribute("href"));
    render();
  });
  render();
}
