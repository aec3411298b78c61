// The form in which a token is typed, where the server wants one: it stays in this tab, and out of the address.

import { get, giveToken } from "./api.js";
import { h, problemBox } from "./dom.js";

/** Show a form in a place; done() once the server takes the token. path: of the API, to try the token with. */
export function askForToken(place, path, done) {
  if (place.querySelector("form.token")) return;  // each request that was refused asks for it
  const input = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const said = h("div");
  const submit = async (event) => {
    event.preventDefault();
    giveToken(input.value.trim());
    const problem = await get(path).then(() => null, (refused) => refused);
    if (!problem) return done();
    said.replaceChildren(problemBox(problem.status === 401 ? WRONG : problem, () => form.requestSubmit()));
    return input.select();
  };
  const form = h("form", { class: "token", onsubmit: submit }, h("h1", {}, "This server wants a token"),
    h("p", {}, "Whoever runs it knows it: it stands in MANIFIND_TOKEN there, or in a file. It is kept until this tab is closed."),
    h("p", {}, h("label", { for: "token" }, "Token"), input), h("button", { class: "primary" }, "Go on"), said);
  place.replaceChildren(form);
  input.focus();
}

const WRONG = { message: "This is not the token of this server", hint: "Ask whoever runs it." };
