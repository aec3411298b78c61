// Puts the page together: which view is shown, and what works everywhere: names, keys, drops and pastes.

import { get } from "./api.js";
import { showCollection } from "./collection.js";
import { byId, h, problemBox } from "./dom.js";
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
  byId("name").value = state.text || state.name;
  if (byId("dialog").open) byId("dialog").close();
  try {
    facts ??= await get("collection");
  } catch (problem) {
    main.replaceChildren(problemBox(problem));
    return;
  }
  if (!isCurrent()) return;
  byId("home").textContent = facts.name;
  offerWords();
  document.title = [state.id || (state.upload && "uploaded picture") || state.text || state.view, facts.name].filter(Boolean).join(" · ");
  if (state.view === "map") await showMap(main, state, facts, isCurrent);
  else if (state.view === "collection") await showCollection(main);
  else await showSearch(main, state, facts);
}

/** Where the model understands words, the box takes them, and names by a button of their own. */
function offerWords() {
  const input = byId("name");
  if (!facts.understands_words || byId("only-names")) return;
  input.placeholder = "Describe what to find, or type a name ( / )";
  input.labels[0].textContent = "Find items by words, or by name";
  input.after(h("button", { type: "submit" }, "Words"), h("button", { type: "submit", id: "only-names" }, "Names"));
}

byId("by-name").addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = byId("name").value.trim(), isName = !facts?.understands_words || event.submitter?.id === "only-names";
  go({ view: "", id: "", upload: "", text: isName ? "" : typed, name: isName ? typed : "" });
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
