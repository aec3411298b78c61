// The review: looking through a whole collection by duplicates, times, places, or groups of what is alike.

import { showClusters } from "./clusters.js";
import { h, problemBox } from "./dom.js";
import { showDuplicates } from "./duplicates.js";
import { showPlaces } from "./places.js";
import { addressOf } from "./state.js";
import { showTimeline } from "./timeline.js";

const TABS = {
  duplicates: { label: "Duplicates", show: showDuplicates },
  timeline: { label: "Timeline", show: showTimeline },
  places: { label: "Places", show: showPlaces },
  clusters: { label: "Groups", show: showClusters },
};

/** how: what `state.start` says of the rendering. Every tab is an address: show(panel, view) fills its panel. */
export async function showReview(main, state, facts, isCurrent, how) {
  const tab = state.tab in TABS ? state.tab : "duplicates";
  const panel = h("section", { role: "tabpanel", id: "panel", class: "panel", "aria-labelledby": `tab-${tab}` });
  const parts = [h("h1", { class: "hidden" }, `Review: ${TABS[tab].label}`), tabs(tab, state), panel];
  if (!how.anew) main.replaceChildren(...parts);
  try {
    await TABS[tab].show(panel, { state, facts, isCurrent, how });
  } catch (problem) {
    if (isCurrent()) panel.replaceChildren(problemBox(problem));
  }
  if (how.anew && isCurrent()) main.replaceChildren(...parts);
}

/** Arrow keys move among the tabs, and Enter follows one, as every link. */
function tabs(current, state) {
  const links = Object.entries(TABS).map(([tab, { label }]) => h("a", {
    role: "tab", id: `tab-${tab}`, "data-link": true, href: addressOf({ ...state, show: "", cluster: "", tab }),
    "aria-selected": String(tab === current), "aria-controls": tab === current ? "panel" : null, tabindex: tab === current ? "0" : "-1",
  }, label));
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], at = links.indexOf(event.target);
    const to = step ? links[(at + step + links.length) % links.length] : { Home: links[0], End: links.at(-1) }[event.key];
    if (!to) return;
    event.preventDefault();
    to.focus();
  };
  return h("div", { role: "tablist", class: "tabs", "aria-label": "What to review", onkeydown: move }, links);
}
