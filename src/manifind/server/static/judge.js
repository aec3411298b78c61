// Judgements: "right" and "wrong" on the results of a query, and what all of them say of the two methods.

import { get, send } from "./api.js";
import { fullName } from "./cards.js";
import { count, h, problemBox } from "./dom.js";
import { partsAsJson } from "./query.js";
import { addressOf } from "./state.js";
import { say } from "./toast.js";

const VERDICTS = { right: { sign: "✓", word: "Right" }, wrong: { sign: "✗", word: "Wrong" } };

let asked = null;  // the query whose judgements are known: {key, parts, verdicts: a promise of a Map, shows: functions of it}

/** What has been judged of a query, asked for once as long as the query stands. */
function judgedOf(parts) {
  const json = partsAsJson(parts), key = JSON.stringify(json);
  if (asked?.key !== key) {
    const verdicts = send("POST", "judgements/of", { json: { parts: json } }).then(asMap);
    verdicts.catch(() => { asked = null; });  // to be asked again
    asked = { key, parts: json, verdicts, shows: [] };
  }
  return asked;
}

const asMap = (found) => new Map(Object.keys(VERDICTS).flatMap((verdict) => found[verdict].map((id) => [id, verdict])));

/** Two buttons that say of a result whether it is right; none for an item that is asked with, or where nothing may be changed. */
export function judgeButtons(item, parts, facts) {
  if (!facts.can_edit || !parts.length || parts.some((part) => part.kind === "id" && part.value === item.id)) return null;
  const query = judgedOf(parts), name = fullName(item);
  const press = (event, verdict) => {
    const isPressed = event.currentTarget.getAttribute("aria-pressed") === "true";
    judge(query, item.id, isPressed ? null : verdict);
  };
  const buttons = Object.entries(VERDICTS).map(([verdict, { sign, word }]) => h("button", { type: "button", class: verdict,
    "aria-pressed": "false", "aria-label": `${word}: ${name}`, title: `${word}; press again to take it back`,
    onclick: (event) => press(event, verdict) }, sign));
  const show = (all) => buttons.forEach((button) =>
    button.setAttribute("aria-pressed", String(button.classList.contains(all.get(item.id)))));
  query.shows.push(show);  // side by side, an item has two cards
  query.verdicts.then(show, () => {});
  return h("span", { class: "judge", role: "group", "aria-label": `Judge ${name}` }, buttons);
}

async function judge(query, id, verdict) {
  const lists = { right: [], wrong: [], neither: [], [verdict ?? "neither"]: [id] };
  try {
    const all = asMap(await send("POST", "judgements", { json: { parts: query.parts, ...lists } }));
    query.verdicts = Promise.resolve(all);
    for (const show of query.shows) show(all);
  } catch (problem) {
    say(`This was not kept: ${[problem.message, problem.hint].filter(Boolean).join("; ")}`, { problem: true });
  }
}

/** How many queries have been judged, and what they say; for the page of the collection. */
export function judgedSummary(facts) {
  const place = h("div", { class: "judged" }, facts.judged?.queries ? "reading what was judged…" : howTo(facts));
  if (facts.judged?.queries) {
    get("judgements").then(summary, (problem) => [problemBox(problem)]).then((parts) => place.replaceChildren(...parts));
  }
  return place;
}

function howTo(facts) {
  const way = facts.can_edit ? "Search for something, and call results right or wrong."
    : "Where changes are allowed, results can be called right or wrong.";
  return h("p", {}, `No query has been judged. ${way} A few dozen judged queries tell how well searches work here.`);
}

function summary({ queries, scores }) {
  const total = (verdict) => queries.reduce((sum, query) => sum + query[verdict].length, 0);
  const many = `${count(queries.length, "query has", "queries have")} been judged`;
  const listed = queries.map((query) => h("li", {}, linkTo(query),
    h("span", { class: "n" }, ` ${query.right.length} right, ${query.wrong.length} wrong`)));
  return [
    h("p", {}, `${many}: ${count(total("right"), "result")} right, ${total("wrong")} wrong.`),
    ...(scores ? comparison(scores) : [h("p", {}, NOTHING_YET)]),
    h("details", {}, h("summary", {}, "Judged queries"), h("ul", {}, listed)),
  ];
}

const NOTHING_YET = "They say nothing of the methods yet: that takes queries with at least one result right and one wrong.";

function comparison({ queries, gradnet, knn, gain }) {
  const row = (name, score) => h("tr", {},
    h("th", { scope: "row" }, name), h("td", {}, number(score.value)), h("td", {}, interval(score, queries)));
  const caption = `Mean average precision (mAP) over the judged results of ${count(queries, "query", "queries")}, in percent`;
  return [
    h("table", { class: "facts-table" }, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, h("td"), h("th", { scope: "col" }, "mAP"), h("th", { scope: "col" }, "95% interval"))),
      h("tbody", {}, row("GRAD-Net", gradnet), row("Plain neighbours (k-NN)", knn), row("Gain of GRAD-Net", gain))),
    h("p", {}, inWords(gain, queries)),
  ];
}

const number = (value) => (Number.isFinite(value) ? (Math.round(10 * value) / 10 || 0).toFixed(1).replace("-", "−") : "–");
const interval = ({ low, high }, queries) => (queries < 2 ? "–" : `${number(low)} to ${number(high)}`);

// That all of n queries are on one side happens by chance in 2 of 2^n cases: for fewer than 6 in more than 5%.
const ENOUGH = 6;

/** Whether a difference is more than chance would make. */
function inWords({ value, low, high }, queries) {
  if (queries < ENOUGH) return `Which is better cannot be told from so few: fewer than ${ENOUGH} queries can agree by chance.`;
  const points = number(Math.abs(value));
  const better = (name, side) => `${name} here by ${points} points, beyond chance: the whole interval of the gain is ${side} zero.`;
  if (low > 0) return better("GRAD-Net is better", "above");
  if (high < 0) return better("Plain neighbours are better", "below");
  return "Which is better cannot be told yet: the interval of the gain holds zero. More judged queries make it narrower.";
}

/** A query as a link that asks it again; its words alone where a part of it is no longer there. */
function linkTo({ label, parts }) {
  const again = parts.map((part) => partOf(part));
  const name = h("bdi", {}, label);
  return again.every(Boolean) ? h("a", { "data-link": true, href: addressOf({ parts: again }) }, name) : name;
}

function partOf({ sign, weight, crop, ...part }) {
  const kind = ["id", "text", "upload"].find((one) => typeof part[one] === "string");
  return kind ? { sign: (sign ?? weight ?? 1) < 0 ? -1 : 1, kind, value: part[kind], crop: crop ? [crop].flat().join() : "" } : null;
}
