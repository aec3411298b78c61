// The start page of a server with several collections: what each holds, what is wrong with any, and how to make one.

import { fillFolders } from "./add.js";
import { get, showPicture } from "./api.js";
import { byId, count, h, problemBox } from "./dom.js";
import { jobButton, startJob } from "./jobs.js";
import { askForToken } from "./token.js";
import { say } from "./toast.js";

const SUFFIX = /\.manifind$/;
const main = byId("main");

async function show() {
  try {
    const { collections, can_make: canMake } = await get("collections");
    const focus = document.activeElement?.id;
    const form = canMake ? main.querySelector("form.make") ?? makeForm() : null;  // what was typed stays
    const title = count(collections.length, "collection");
    main.replaceChildren(h("h1", {}, collections.length ? title : "No collection yet"),
      collections.length ? h("ul", { class: "collections" }, collections.map(card)) : h("p", {}, canMake ? EMPTY_BELOW : EMPTY), form ?? "");
    if (focus) byId(focus)?.focus({ preventScroll: true });
  } catch (problem) {
    if (problem.status !== 401) main.replaceChildren(problemBox(problem, show));
  }
}

const EMPTY = "Make one with `manifind index FOLDER COLLECTION`; it appears here.";
const EMPTY_BELOW = "Make the first one of a folder of pictures.";

function card(one) {
  const name = h("bdi", {}, one.name.replace(SUFFIX, "") || one.name);
  if (one.problem) {
    return h("li", { class: "collection" }, h("h2", {}, name),
      h("div", { class: "problem" }, h("strong", {}, "It cannot be opened: "), one.problem, one.hint ? h("div", {}, one.hint) : null));
  }
  return h("li", { class: "collection" },
    h("a", { class: "open", href: one.address, id: `open-${one.key}` },
      one.thumbnails.length ? h("div", { class: "examples", "aria-hidden": "true" }, one.thumbnails.map((id) => example(one.key, id))) : null,
      h("h2", {}, name)),
    h("p", {}, heldInWords(one)), one.changed ? h("p", { class: "soft" }, changedInWords(one.changed)) : null);
}

const heldInWords = ({ items, pictures }) => (pictures ? count(items, "picture") : `${count(items, "item")}, made of vectors`);

function changedInWords(changed) {
  const share = changed < 0.001 ? "less than 0.1" : (100 * changed).toFixed(changed < 0.1 ? 1 : 0);
  return `${share} % has come or gone since the fit`;
}

function example(collection, id) {
  const image = h("img", { alt: "", loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.remove(), { once: true });
  showPicture(image, "thumbnail", { collection, id });
  return image;
}

/** A new collection of a folder that the server may index. */
function makeForm() {
  const name = h("input", { type: "text", id: "new-name", required: true, maxlength: 200, autocomplete: "off", spellcheck: "false" });
  const folder = h("select", { id: "new-folder", required: true }), said = h("div");
  fillFolders(folder);
  const make = async () => {
    said.replaceChildren();
    try {
      await startJob("collections", { name: name.value, folder: folder.value });
      say(`${name.value} is being made. It appears here when that is done.`);
      name.value = "";
    } catch (problem) {
      said.replaceChildren(problemBox(problem, () => form.requestSubmit()));
    }
  };
  const submit = (event) => {
    event.preventDefault();
    make();
  };
  const form = h("form", { class: "make", onsubmit: submit }, h("h2", {}, "Make a collection of a folder"),
    h("p", {}, h("label", { for: "new-folder" }, "Folder of pictures"), folder),
    h("p", {}, h("label", { for: "new-name" }, "Its name"), name),
    h("button", { class: "primary" }, "Make it"), said);
  return form;
}

addEventListener("changed", show);
addEventListener("token", () => askForToken(main, "collections", show));
show();
