// Short messages over the page: they leave by themselves, except problems, which stay until they are closed.

import { h } from "./dom.js";

const STAYS = 6_000, STAYS_WITH_ACTION = 12_000;  // milliseconds
const MOST = 4;

const polite = h("div", { role: "status", "aria-live": "polite" });
const urgent = h("div", { role: "alert" });
const place = h("div", { class: "toasts" }, polite, urgent);
document.body.append(place);

/** Say something. action: {label, run}, a button. problem: stays until it is closed. lasts: until close() of what this returns. */
export function say(text, { action, problem = false, lasts = false } = {}) {
  if (!text) return { close: () => {} };
  const region = problem ? urgent : polite;
  const toast = h("div", { class: problem ? "toast bad" : "toast" }, h("span", {}, text));
  const close = () => toast.remove();
  const run = () => {
    close();
    action.run();
  };
  if (action) toast.append(h("button", { type: "button", onclick: run }, action.label));
  if (action || problem) toast.append(h("button", { type: "button", class: "close", "aria-label": "Close the message", onclick: close }, "×"));
  comeForward();
  for (const same of [...region.children].filter((one) => one.firstChild.textContent === text)) same.remove();
  region.append(toast);
  while (polite.children.length > MOST) polite.firstChild.remove();
  if (!problem && !lasts) leaveLater(toast, action ? STAYS_WITH_ACTION : STAYS);
  return { close };
}

/** A dialog makes everything around it inert, so messages appear within the one that is open. */
function comeForward() {
  const dialog = [...document.querySelectorAll("dialog")].filter((one) => one.matches(":modal")).at(-1);
  if (place.parentElement === (dialog ?? document.body)) return;
  (dialog ?? document.body).append(place);
  dialog?.addEventListener("close", comeForward, { once: true });
}

/** Whoever points at a message, or stands on its button, is still reading it. */
function leaveLater(toast, wait) {
  let timer = 0;
  const stay = () => clearTimeout(timer);
  const leave = () => {
    stay();
    timer = setTimeout(() => toast.remove(), wait);
  };
  for (const name of ["pointerenter", "focusin"]) toast.addEventListener(name, stay);
  for (const name of ["pointerleave", "focusout"]) toast.addEventListener(name, leave);
  leave();
}

/** Say what went wrong; about: what it was about, such as the name of a file. */
export function sayProblem(problem, about = "") {
  const words = [problem.message || String(problem), problem.hint].filter(Boolean).join("; ");
  return say(about ? `${about}: ${words}` : words, { problem: true });
}
