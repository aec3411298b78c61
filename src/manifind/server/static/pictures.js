// Pictures to search by: chosen as files, taken with the camera, dropped or pasted.

import { send } from "./api.js";
import { take } from "./ask.js";
import { byId, count } from "./dom.js";
import { nameUpload } from "./query.js";
import { say, sayProblem } from "./toast.js";

const MOST = 16;  // pictures of one query
const MOST_NAMED = 4;
const KINDS = "A JPEG, PNG, WebP, TIFF, BMP, GIF or HEIC can be searched by.";

let canUpload = false, isOurs = false;

const isPicture = (file) => file.type.startsWith("image/") || /\.(hei[cf]|tiff?)$/i.test(file.name);

/** Names in a row; of many, the first ones. */
function listed(names) {
  const shown = names.slice(0, MOST_NAMED), rest = names.length - shown.length;
  const last = rest ? count(rest, "other") : shown.length > 1 ? shown.pop() : null;
  return [shown.join(", "), last].filter(Boolean).join(" and ");
}

/** facts: of the collection; without pictures there is nothing to compare one with. */
export function offerPictures(facts) {
  canUpload = facts.can_upload;
  byId("pictures").hidden = !canUpload;
}

/** Search by some files; those that are no pictures are named, and the others are searched by. */
async function searchPictures(files) {
  if (!canUpload) return say("This collection was made of vectors, so no picture can be searched by.", { problem: true });
  const pictures = files.filter(isPicture), others = files.filter((file) => !isPicture(file)).map((file) => file.name);
  if (others.length) say(`${listed(others)} ${others.length === 1 ? "is no picture" : "are no pictures"}. ${KINDS}`, { problem: true });
  if (pictures.length > MOST) say(`These are ${pictures.length} pictures; the first ${MOST} are searched by.`);
  const parts = await described(pictures.slice(0, MOST));
  if (parts.length) take(parts);
  return undefined;
}

async function described(pictures) {
  const parts = [];
  if (!pictures.length) return parts;
  const waiting = say(`Describing ${pictures.length > 1 ? count(pictures.length, "picture") : pictures[0].name}…`, { lasts: true });
  for (const picture of pictures) {
    try {
      const { upload } = await send("POST", "search/picture", { picture, parameters: { k: 1, name: picture.name } });
      nameUpload(upload, picture.name);
      if (!parts.some((part) => part.value === upload)) parts.push({ sign: 1, kind: "upload", value: upload, crop: "" });
    } catch (problem) {
      sayProblem(problem, picture.name);
    }
  }
  waiting.close();
  return parts;
}

function dropped(event) {
  if (event.defaultPrevented) return;  // a view has taken it
  event.preventDefault();
  const files = [...event.dataTransfer.files];
  if (files.length) searchPictures(files);
  else if (!isOurs) say("What was dropped is no picture file. Save the picture first, or copy and paste it.", { problem: true });
}

function pasted(event) {
  const files = [...(event.clipboardData?.files ?? [])];
  if (files.length) {
    event.preventDefault();
    searchPictures(files);
  } else if (!event.target.closest("input, textarea")) {
    say("What was pasted is no picture. Text can be pasted into the box.", { problem: true });
  }
}

for (const [button, input] of [["choose-pictures", "upload"], ["take-picture", "camera"]]) {
  byId(button).addEventListener("click", () => byId(input).click());
  byId(input).addEventListener("change", async (event) => {
    const files = [...event.target.files];
    event.target.value = "";  // so that the same file can be chosen again
    await searchPictures(files);
  });
}
const comes = (event) => !isOurs && [...event.dataTransfer.types].includes("Files");
document.addEventListener("dragstart", () => { isOurs = true; });
document.addEventListener("dragend", () => { isOurs = false; });
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.toggle("dragging", comes(event));
});
document.addEventListener("dragleave", () => document.body.classList.remove("dragging"));
document.addEventListener("drop", (event) => {
  document.body.classList.remove("dragging");
  dropped(event);
});
document.addEventListener("paste", pasted);
