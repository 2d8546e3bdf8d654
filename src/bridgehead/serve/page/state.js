/* The whole state of the page, as the address holds it: reading it, writing it, going back. Not about showing it. */

const MODES = ["space", "words", "hybrid"];
const TABS = ["search", "classify", "about"];
// A longer address is cut or refused by programs that pass it on.
const LONGEST = 4000;

export const PAGE_SIZE = 10;
export const MOST_OFFSET = 10000;

const EMPTY = {
  tab: "search",
  q: "",
  as: "",
  of: "",
  filter: [],
  mode: "space",
  distinct: false,
  sub: "",
  near: "",
  least: "0.7",
  page: 1,
  labels: "",
  items: "",
  templates: "",
  below: "",
};
const LONG = ["labels", "items", "templates"];

export function stateOf(search, kept = null) {
  const given = new URLSearchParams(search);
  const state = { ...EMPTY, filter: given.getAll("filter").filter((text) => text.trim()) };
  for (const name of ["q", "as", "of", "sub", "near", "least", "below", ...LONG]) {
    state[name] = given.get(name) ?? EMPTY[name];
  }
  state.mode = MODES.includes(given.get("mode")) ? given.get("mode") : "space";
  state.tab = TABS.includes(given.get("tab")) ? given.get("tab") : "search";
  state.distinct = given.get("distinct") === "1";
  const page = Number(given.get("page"));
  state.page = Number.isInteger(page) && page >= 1 ? Math.min(page, MOST_OFFSET / PAGE_SIZE + 1) : 1;
  // What was too long for the address came back with the history's own record.
  return kept?.tab === state.tab ? { ...state, ...kept } : state;
}

export function addressOf(state) {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (name === "filter") value.forEach((text) => said.append("filter", text));
    else if (name === "distinct") value && said.set("distinct", "1");
    else if (String(value) !== String(EMPTY[name])) said.set(name, value);
  }
  if (!state.near) said.delete("least");
  const whole = String(said);
  if (whole.length > LONGEST && state.tab === "classify") LONG.forEach((name) => said.delete(name));
  const address = String(said);
  return address ? `?${address}` : location.pathname;
}

let state = null;
const listeners = [];

export const current = () => state;
export const onChange = (does) => listeners.push(does);

export function start() {
  window.addEventListener("popstate", (event) => {
    state = stateOf(location.search, event.state);
    listeners.forEach((does) => does(state, "history"));
  });
  state = stateOf(location.search, history.state);
  listeners.forEach((does) => does(state, "start"));
}

/* Go to a changed state; a change of anything but the page starts at the first page again. */
export function go(changes, why = "asked") {
  const next = { ...state, page: 1, ...changes };
  const address = addressOf(next);
  const kept = next.tab === "classify" ? Object.fromEntries(["tab", ...LONG].map((name) => [name, next[name]])) : null;
  if (address === addressOf(state)) history.replaceState(kept, "", address);
  else history.pushState(kept, "", address);
  state = next;
  listeners.forEach((does) => does(state, why));
}

/* The address of a fresh state with these changes. */
export const linkTo = (changes) => addressOf({ ...EMPTY, ...changes });
