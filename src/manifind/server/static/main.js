// Puts the page together: which view is shown, and what works everywhere: names, keys, drops and pastes.

import { get } from "./api.js";
import { showCollection } from "./collection.js";
import { byId, problemBox } from "./dom.js";
import { showMap } from "./map.js";
import { searchPicture, showSearch } from "./search.js";
import { go, read, start } from "./state.js";

let facts = null;
let turn = 0;

async function render() {
  const main = byId("main"), state = read(), mine = ++turn;
  const isCurrent = () => mine === turn;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    link.toggleAttribute("aria-current", link.dataset.view === (state.view || "search"));
    if (link.hasAttribute("aria-current")) link.setAttribute("aria-current", "page");
  }
  byId("name").value = state.name;
  if (byId("dialog").open) byId("dialog").close();
  try {
    facts ??= await get("collection");
  } catch (problem) {
    main.replaceChildren(problemBox(problem));
    return;
  }
  if (!isCurrent()) return;
  byId("home").textContent = facts.name;
  document.title = [state.id || (state.upload && "uploaded picture") || state.view, facts.name].filter(Boolean).join(" · ");
  if (state.view === "map") await showMap(main, state, facts, isCurrent);
  else if (state.view === "collection") await showCollection(main);
  else await showSearch(main, state, facts);
}

byId("by-name").addEventListener("submit", (event) => {
  event.preventDefault();
  go({ view: "", id: "", upload: "", name: byId("name").value.trim() });
});

addEventListener("changed", () => {
  facts = null;
  render();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea, dialog")) {
    event.preventDefault();
    byId("name").focus();
  }
});

const pictureIn = (items) => [...(items ?? [])].find((file) => file.type.startsWith("image/") || /\.hei[cf]$/i.test(file.name));
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    document.body.classList.toggle("dragging", name === "dragover");
    const picture = name === "drop" && pictureIn(event.dataTransfer.files);
    if (picture && facts?.can_upload) searchPicture(picture);
  });
}
document.addEventListener("paste", (event) => {
  const picture = pictureIn(event.clipboardData?.files);
  if (picture && facts?.can_upload) searchPicture(picture);
});

start(render);
