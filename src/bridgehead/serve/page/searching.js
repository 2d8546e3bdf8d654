/* From a state of the page to what is shown of it: asks the service, cancels what was asked before, and tells hits,
   readings and faults to those who show them. */

import { button, byId, count, fill, say, sentence } from "./elements.js";
import { asFault, faultPanel, forget, succeeded } from "./faults.js";
import { known, sideOf } from "./facts.js";
import { filterOf } from "./conditions.js";
import { faultOfFilters, showFilters } from "./filters.js";
import { otherWays, plain, showReading } from "./reading.js";
import { showAnswer, showSkeleton, showStart } from "./results.js";
import { cardOf, focusCard } from "./keys.js";
import { ask } from "./service.js";
import { go, PAGE_SIZE } from "./state.js";

const MOST_KEPT = 30;
const kept = new Map();
let running = null;
let before = null;

/* The body of `/search` for a state. */
export function questionOf(state, changes = {}) {
  return {
    q: state.q,
    k: PAGE_SIZE,
    offset: (state.page - 1) * PAGE_SIZE,
    filter: filterOf(state.filter),
    of: state.of || null,
    read_as: state.as || null,
    mode: state.mode,
    distinct: state.distinct,
    substructure: state.sub || null,
    similar_to: state.near || null,
    ...(state.near ? { least_similarity: Number(state.least) } : {}),
    ...changes,
  };
}

/* Stop the search that runs; says whether there was one. */
export function stop() {
  forget();
  if (!running) return false;
  running.abort();
  running = null;
  fill(byId("results"));
  byId("results").removeAttribute("aria-busy");
  say("Search stopped");
  return true;
}

/* Show what a state asks for; `why` is "history" where somebody goes back or forth. */
export async function search(state, why) {
  running?.abort();
  running = null;
  forget();
  rememberCard();
  const place = byId("results");
  if (!state.q.trim()) {
    before = null;
    showReading(byId("reading"), null);
    showFilters(byId("filters"), null, state);
    place.removeAttribute("aria-busy");
    return showStart(place);
  }
  before = JSON.stringify(questionOf(state));
  const found = why === "history" ? kept.get(before) : null;
  // What was shown is shown again at once, so that going back leads to the same place on the page.
  if (found) return returned(place, found, state);
  return asked(place, state, why);
}

async function asked(place, state, why) {
  const control = (running = new AbortController());
  const question = before;
  showFilters(byId("filters"), targetOf(state, place), state);
  place.setAttribute("aria-busy", "true");
  // A quick answer replaces the old hits at once; only who waits sees the skeleton.
  const soon = setTimeout(() => showSkeleton(place), place.querySelector(".hits") ? 150 : 0);
  say("Searching");
  try {
    const answer = await ask("search", { body: questionOf(state), signal: control.signal });
    if (running !== control) return;
    clearTimeout(soon);
    succeeded();
    keep(question, answer);
    shown(place, answer, state);
    if (why === "page" || why === "link" || why === "history") focusHead(why);
  } catch (error) {
    clearTimeout(soon);
    if (running === control && error.name !== "AbortError") failed(place, asFault(error), state);
  } finally {
    clearTimeout(soon);
    if (running === control) {
      running = null;
      place.removeAttribute("aria-busy");
    }
  }
}

function keep(question, answer) {
  kept.delete(question);
  kept.set(question, { answer, card: -1 });
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
}

// Which hit had the focus when it was left.
function rememberCard() {
  const entry = kept.get(before);
  if (entry) entry.card = [...document.querySelectorAll("#results .card")].indexOf(cardOf(document.activeElement));
}

function returned(place, { answer, card }, state) {
  place.removeAttribute("aria-busy");
  shown(place, answer, state);
  const left = document.querySelectorAll("#results .card")[card];
  if (left) focusCard(left, { preventScroll: true });
  else focusHead("history");
}

function focusHead(why) {
  if (why === "history" && document.activeElement?.closest("form")) return;
  byId("results-title")?.focus({ preventScroll: why === "history" });
  if (why !== "history") window.scrollTo({ top: 0 });
}

function targetOf(state, place) {
  const drawn = known()?.sides.find((side) => side.kind === "molecule");
  return sideOf(state.of) ?? sideOf(place.dataset.of) ?? drawn ?? known()?.sides[0] ?? null;
}

function shown(place, answer, state) {
  place.dataset.of = answer.of;
  showReading(byId("reading"), answer, state);
  showFilters(byId("filters"), sideOf(answer.of) ?? null, state);
  showAnswer(place, answer, state, (hit) => explained(state, hit));
  const n = answer.hits.length;
  const first = count(answer.offset + 1);
  const range = `${n} hits, ${first} to ${count(answer.offset + n)}, of ${count(answer.n_searched)} ${answer.of} items`;
  say(`${sentence(plain(answer.reading.explanation))} ${n ? range : "No hits"}`);
}

/* The explanation of one hit: the same question again, for its place alone. */
async function explained(state, hit) {
  const answer = await ask("search", { body: questionOf(state, { k: 1, offset: hit.rank - 1, explain: true }) });
  return answer.hits.find((one) => one.id === hit.id)?.explanation ?? null;
}

function failed(place, fault, state) {
  showReading(byId("reading"), null);
  const told = fault.kind === "refused" ? faultOfFilters(fault.message, state) : null;
  showFilters(byId("filters"), targetOf(state, place), state, told);
  const ways = told
    ? [button("Without the filters", () => go({ filter: [], sub: "", near: "" }))]
    : fault.kind === "refused"
      ? otherWays(state)
      : [];
  const title = told ? "The filter is not understood" : undefined;
  fill(
    place,
    faultPanel(fault, () => search(state, "again"), { title, ways }),
  );
}
