/* The page when something goes wrong: no network, a refused query, a busy service, a token that is asked for.
   Not about asking the service. */

import { button, h, sentence, submit } from "./elements.js";
import { plain } from "./reading.js";
import { Fault } from "./service.js";

const TITLES = {
  network: "The service cannot be reached",
  token: "This service asks for a token",
  busy: "The service is busy",
  late: "This took too long",
  refused: "This query cannot be answered",
  broken: "Something went wrong in the service",
};
const ADVICE = {
  network: "It may have been stopped, or the connection is gone. What you typed is kept.",
  token: "Whoever started it has the token. It is kept for this tab of the browser alone.",
  busy: "Many questions are waiting.",
  late: "The service gave up at its time limit. A shorter query or a narrower filter takes less.",
  refused: "",
  broken: "Try again; if it stays so, its log says more.",
};
const AUTOMATIC = 3;
let tries = 0;
let timer = null;

export const asFault = (error) =>
  error instanceof Fault ? error : new Fault("broken", `the page met an error: ${error.message}`);

export function forget() {
  clearTimeout(timer);
  timer = null;
}
export function succeeded() {
  forget();
  tries = 0;
}

const isPointed = (text) => text.includes("\n");
// What speaks of arguments is for those who call the service; here there are buttons.
const told = (text) => (isPointed(text) ? text : sentence(plain(text)));

/* A panel that says what went wrong and what can be done; `again` asks once more, `ways` are further buttons. */
export function faultPanel(fault, again, { title = TITLES[fault.kind], ways = [] } = {}) {
  forget();
  const actions = h("div", { class: "actions" });
  const panel = h(
    "div",
    { class: `fault ${fault.kind}`, role: "alert" },
    h("h2", {}, title),
    fault.kind === "network"
      ? null
      : h("p", { class: `message${isPointed(fault.message) ? " pointed" : ""}` }, told(fault.message)),
    ADVICE[fault.kind] ? h("p", { class: "quiet" }, ADVICE[fault.kind]) : null,
    actions,
  );
  actions.append(...ways);
  if (fault.kind === "token") {
    actions.append(tokenForm(again));
  } else if (fault.kind !== "refused") {
    const anew = () => {
      tries = 0;
      again();
    };
    actions.append(button("Try again", anew, { class: "main" }));
    if (fault.kind === "busy" && tries < AUTOMATIC) actions.append(waiting(fault.retryAfter ?? 2, again));
  }
  return panel;
}

function waiting(seconds, again) {
  tries += 1;
  timer = setTimeout(again, seconds * 1000);
  return h("span", { class: "quiet" }, `asked again by itself in ${seconds} s`);
}

function tokenForm(again) {
  const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const use = async (event) => {
    event.preventDefault();
    const { token } = await import("./service.js");
    token.set(field.value.trim());
    again();
  };
  return h(
    "form",
    { class: "token", on: { submit: use } },
    h("label", { for: "token" }, "Token"),
    field,
    submit("Use it", { class: "main" }),
  );
}
