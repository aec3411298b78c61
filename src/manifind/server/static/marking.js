// What is done with a selection: tags and albums, exports, removal, each asked for in a dialog, and undone by one button.

import { download, finished, get, send } from "./api.js";
import { count, h, problemBox } from "./dom.js";
import { say } from "./toast.js";

let opened = 0;  // dialogs
let offered = null;  // the message that offers to undo the last change

/** A dialog with a form; work(the button that was pressed, tell) does what was asked and returns what to do afterwards. */
export function openForm(title, parts, buttons, work) {
  const titleId = `form-${opened += 1}`;
  const said = h("div", { class: "said", "aria-live": "polite" });
  const controls = buttons.map(({ text, value, primary }) => (
    h("button", { type: "submit", value, class: primary ? "primary" : null }, text)));
  const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const form = h("form", { onsubmit: (event) => submit(event) }, h("h2", { id: titleId }, title), parts, said,
    h("div", { class: "buttons" }, controls, cancel));
  const dialog = h("dialog", { class: "marking", "aria-labelledby": titleId, onclose: () => left(dialog) }, form);
  let isBusy = false;
  const submit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    said.replaceChildren("working…");
    try {
      const after = await work(event.submitter.value, (job) => said.replaceChildren(...progressOf(job)));
      dialog.close();
      after();
    } catch (problem) {
      said.replaceChildren(problemBox(problem));
    }
    isBusy = false;
  };
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Who opened a dialog may have gone meanwhile, as the bar of what was removed; the focus then goes to what lies beneath. */
function left(dialog) {
  dialog.remove();
  if (document.activeElement !== document.body) return;
  (document.querySelector("dialog.viewer[open] h2") ?? document.querySelector("main")).focus();
}

function progressOf(job) {
  if (!job.total) return [job.state === "waiting" ? "waiting for its turn…" : "working…"];
  return [h("progress", { max: job.total, value: job.done, "aria-label": "Progress" }), ` ${job.stage} ${job.done} of ${job.total}`];
}

/** Do what changes the collection, and tell everybody that it has. */
async function done(path, json, heard) {
  const { result } = await finished(await send("POST", path, { json }), heard);
  dispatchEvent(new CustomEvent("changed", { detail: { removed: path === "items/remove" ? json.ids : [] } }));
  return () => announce(result);
}

/** What was done, with its undo; a change of very many items is too large to be remembered. */
function announce({ step, label }) {
  offered?.close();  // only the last change can be undone
  if (step === undefined) say("Done. This was too large a change to be undone.");
  else offered = say(sentence(label), { action: { label: "Undo", run: () => undo(step) } });
}

/** Change the collection at once, and offer to take it back. */
export async function change(path, json) {
  try {
    (await done(path, json))();
  } catch (problem) {
    say(inWords(problem), { problem: true });
  }
}

/** Take back the last change; a later one stands in the way of an earlier one. */
export async function undo(step) {
  offered?.close();
  try {
    const { result } = await finished(await send("POST", "undo", { json: { step } }));
    say(`Undone: ${result.undone}`);
  } catch (problem) {
    say(`This could not be undone: ${inWords(problem)}`, { problem: true });
  }
  dispatchEvent(new CustomEvent("changed"));
}

const inWords = (problem) => [problem.message, problem.hint].filter(Boolean).join("; ");
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const WORDS = {
  tags: { one: "tag", title: (n) => `Tag ${count(n, "item")}`, add: "Add", remove: "Remove" },
  albums: { one: "album", title: (n) => `Albums of ${count(n, "item")}`, add: "Put in", remove: "Take out" },
};

/** Ask for tags or albums of items, which are added to them or taken from them. */
export async function askForLabels(field, ids) {
  const words = WORDS[field];
  const fresh = h("input", { type: "text", maxlength: "200", autocomplete: "off", autofocus: true, id: "fresh-label" });
  const there = h("div", { class: "labels" }, "looking for those that there are…");
  const parts = [h("p", {}, h("label", { for: "fresh-label" }, `New ${words.one}`), fresh), there];
  const buttons = [{ text: words.add, value: "add", primary: true }, { text: words.remove, value: "remove" }];
  openForm(words.title(ids.length), parts, buttons, async (what, tell) => {
    const ticked = [...there.querySelectorAll("input:checked")].map((one) => one.value), typed = fresh.value.trim();
    const labels = [...new Set(typed ? [...ticked, typed] : ticked)];
    if (!labels.length) throw new Error(`Type a new ${words.one}, or tick one that there is.`);
    return done("labels", { field, ids, add: what === "add" ? labels : [], remove: what === "remove" ? labels : [] }, tell);
  });
  try {
    there.replaceChildren(...choices(await labelsOf(field), field));
  } catch (problem) {
    there.replaceChildren(problemBox(problem));
  }
}

async function labelsOf(field) {
  const { fields } = await get("fields");
  return fields.find((one) => one.name === field);
}

function choices(found, field) {
  if (!found?.different) return [h("p", {}, `There are no ${field} yet.`)];
  const many = `There are ${count(found.different, WORDS[field].one)}, too many to list. Type the one you mean.`;
  if (!found.values.length) return [h("p", {}, many)];
  const ticks = found.values.map(({ value, items }) => h("label", {}, h("input", { type: "checkbox", value: String(value) }),
    h("bdi", {}, String(value)), h("span", { class: "n" }, ` ${items}`)));
  return [h("fieldset", {}, h("legend", {}, `${field[0].toUpperCase()}${field.slice(1)} that there are`), ticks)];
}

/** Ask whether items are to be taken out of the collection. */
export function askToRemove(ids) {
  const what = count(ids.length, "item");
  const parts = [h("p", {}, "They leave the collection, and searches no longer find them. Their files stay where they are."),
    h("p", {}, "This can be undone until the collection is fitted anew.")];
  openForm(`Remove ${what} from the collection?`, parts, [{ text: `Remove ${what}`, value: "remove", primary: true }],
    (_, tell) => done("items/remove", { ids }, tell));
}

const KINDS = {
  csv: "A table (CSV): ids, paths, tags, albums and all other metadata",
  paths: "A list of paths, one in each line",
  pictures: "The picture files, in a ZIP",
  collection: "A collection of these items, in a ZIP",
};

const OF_PICTURES = ["paths", "pictures"];

/** Ask what items are to be written to, write it, and download it. */
export function askForExport(ids, facts) {
  const kinds = Object.entries(KINDS).filter(([kind]) => facts.pictures || !OF_PICTURES.includes(kind));
  const choice = kinds.map(([kind, text], at) => h("label", {},
    h("input", { type: "radio", name: "kind", value: kind, checked: at === 0, autofocus: at === 0 }), text));
  const what = count(ids.length, "item"), button = { text: "Export", value: "export", primary: true };
  const parts = [h("fieldset", { class: "kinds" }, h("legend", {}, "As"), choice)];
  const dialog = openForm(`Export ${what}`, parts, [button], async (_, tell) => {
    const kind = dialog.querySelector("input:checked").value;
    const { result } = await finished(await send("POST", "exports", { json: { kind, ids } }), tell);
    if (!dialog.open) return () => {};  // somebody has had enough of waiting
    await download(`exports/${result.key}`, result.name);
    return () => say(`${what} exported to ${result.name}`);
  });
}
