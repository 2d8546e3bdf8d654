/* Classification: labels and items in, bars out, with what the answers hang on. Not about how they are found. */

import { byId, copyButton, count, fill, h, say, score, svg } from "./elements.js";
import { asFault, faultPanel, forget, succeeded } from "./faults.js";
import { isMolecule, known, otherSide, sideOf } from "./facts.js";
import { ask } from "./service.js";
import { current, go } from "./state.js";

const SHOWN = 5;
let running = null;
let built = false;
let asked = "";

export const lines = (text) => text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);

/* Labels and their synonyms: a class a line, further names of it after "|" or a tab. */
export function labelsOf(text) {
  const rows = lines(text).map((line) => line.split(/\||\t/).map((name) => name.trim()).filter(Boolean)).filter((row) => row.length);
  const synonyms = Object.fromEntries(rows.filter((row) => row.length > 1).map(([label, ...further]) => [label, further]));
  return { labels: rows.map((row) => row[0]), synonyms };
}

export function showClassify(place, state) {
  if (!built) build(place);
  for (const name of ["labels", "items", "templates", "below"]) {
    const field = byId(`classify-${name}`);
    if (document.activeElement !== field) field.value = state[name];
  }
  if (state.of) byId("classify-of").value = state.of;
  const now = JSON.stringify([state.labels, state.items, state.templates, state.below, state.of]);
  if (now === asked) return;
  asked = now;
  if (state.labels && state.items) classify(state);
  else fill(byId("classified"), intro());
}

function build(place) {
  built = true;
  const words = known()?.sides.find((side) => side.kind === "text") ?? known()?.sides[1];
  const raw = otherSide(words?.name);
  const area = (name, label, hint, rows, placeholder, code = false) => [
    h("label", { for: `classify-${name}` }, label), h("p", { class: "quiet", id: `classify-${name}-hint` }, hint),
    h("textarea", { id: `classify-${name}`, rows, placeholder, spellcheck: "false", class: code ? "code" : null, "aria-describedby": `classify-${name}-hint` }),
  ];
  const choice = h("select", { id: "classify-of" }, known()?.sides.map((side) => h("option", { value: side.name, selected: side === words }, side.name)));
  fill(place, h("div", { class: "columns even" },
    h("form", { class: "sheet", on: { submit } },
      h("h2", {}, "Put items to the nearest of your labels"),
      area("labels", "Labels", "One a line. Further names of a label after a |: they are averaged with it.", 6, "cyclooxygenase inhibitor | NSAID\nopioid receptor agonist\nbeta blocker"),
      area("items", "Items", `One a line: ${raw?.kind === "molecule" ? "SMILES" : raw?.name ?? "items"}.`, 5, isMolecule(raw?.name) ? "CC(=O)Oc1ccccc1C(=O)O" : "", isMolecule(raw?.name)),
      h("details", {}, h("summary", {}, "Wording, threshold, side"),
        area("templates", "Templates", "One a line; {} is where a label goes. Several are averaged.", 2, "{}\na drug that is a {}"),
        h("label", { for: "classify-below" }, "None of these below a cosine of"),
        h("input", { id: "classify-below", type: "number", min: -1, max: 1, step: "any", placeholder: "no threshold" }),
        h("label", { for: "classify-of" }, "Labels are"), choice),
      h("div", { class: "actions" }, h("button", { type: "submit", class: "main" }, "Classify"))),
    h("div", { id: "classified" })));
}

function submit(event) {
  event.preventDefault();
  const value = (name) => byId(`classify-${name}`).value;
  asked = "";
  go({ labels: value("labels").trim(), items: value("items").trim(), templates: value("templates").trim(), below: value("below").trim(), of: value("of") });
}

function intro() {
  const example = { labels: "cyclooxygenase inhibitor | NSAID\nopioid receptor agonist\nbeta blocker that lowers blood pressure\nserotonin receptor agonist", items: "CC(=O)Oc1ccccc1C(=O)O\nCN1CCC23C4C1CC5=C2C(=C(C=C5)O)OC3C(C=C4)O\nCC(C)NCC(COc1cccc2c1cccc2)O" };
  const fits = isMolecule(otherSide(known()?.sides.find((side) => side.kind === "text")?.name)?.name);
  return h("div", { class: "empty" }, h("h2", {}, "No training on these labels"),
    h("p", {}, "Each label is read as words, each item is put to the label whose place in the space is nearest. The answer is conditional on the labels that you give: state them with it."),
    fits ? h("div", { class: "actions" }, h("button", { type: "button", on: { click: () => go(example) } }, "Try three drugs and four labels")) : null);
}

async function classify(state) {
  running?.abort();
  forget();
  const control = (running = new AbortController());
  const place = byId("classified");
  const { labels, synonyms } = labelsOf(state.labels);
  const body = {
    labels, items: lines(state.items), k: SHOWN, of: state.of || null,
    ...(Object.keys(synonyms).length ? { synonyms } : {}), ...(lines(state.templates).length ? { templates: lines(state.templates) } : {}),
    ...(state.below ? { abstain_below: Number(state.below) } : {}),
  };
  place.setAttribute("aria-busy", "true");
  fill(place, h("div", { class: "skeleton", "aria-hidden": "true" }, [1, 2, 3].map(() => h("div", { class: "sheet" }, h("div", { class: "bone line short" }), h("div", { class: "bone line" }), h("div", { class: "bone line" })))));
  say("Classifying");
  try {
    const found = await ask("classify", { body, signal: control.signal });
    if (running !== control) return;
    succeeded();
    fill(place, classified(found));
    say(`${count(found.items.length)} items classified among ${count(labels.length)} labels`);
  } catch (error) {
    if (running !== control || error.name === "AbortError") return;
    fill(place, faultPanel(asFault(error), () => classify(current())));
  } finally {
    if (running === control) place.removeAttribute("aria-busy");
  }
}

function classified(found) {
  const n = Object.keys(found.candidates).length;
  return [
    h("div", { class: "results-head" }, h("h2", { tabindex: -1 }, `${count(found.items.length)} ${found.items_are} items among ${count(n)} labels`), copyButton("Copy link", () => location.href, "Link")),
    h("p", { class: "callout" }, "Shares are among these labels alone and no probabilities: leave one out, or add one, and they are others. The cosine does not depend on the other labels."),
    h("ol", { class: "answers" }, found.items.map((item) => answer(item, found))),
    found.unread.length ? h("div", { class: "sheet" }, h("h3", {}, "Not read"), h("ul", {}, found.unread.map((one) => h("li", {}, h("span", { class: "code" }, one.item || "(empty)"), `: ${one.reason}`)))) : null,
    found.notes.length ? h("div", { class: "sheet" }, h("h3", {}, "Notes"), h("ul", {}, found.notes.map((note) => h("li", {}, note)))) : null,
    found.sensitivity.length ? moves(found.sensitivity) : null,
  ];
}

function answer(item, found) {
  const tied = item.n_tied > 1 ? `, tied with ${item.n_tied - 1} more: the first one given is named` : "";
  return h("li", { class: "sheet" },
    h("p", { class: sideOf(found.items_are)?.kind === "molecule" ? "item code" : "item" }, item.item),
    h("h3", { class: item.answer === null ? "none" : "" }, item.answer ?? "None of these", h("span", { class: "quiet" }, item.answer === null ? ` nearest: ${item.labels[0].label}, under the cosine ${score(found.abstain_below)}` : tied)),
    h("table", { class: "shares" }, h("thead", { class: "unseen" }, h("tr", {}, ["label", "share among these labels", "share", "cosine"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, item.labels.map((one) => h("tr", {}, h("th", { scope: "row" }, one.label), h("td", { class: "barcell" }, shareBar(one.share_among_candidates)),
        h("td", { class: "n strong" }, shareText(one.share_among_candidates)), h("td", { class: "n quiet" }, `cosine ${score(one.score)}`))))));
}

// Never rounded to all or to none.
const shareText = (share) => (share > 0.9995 && share < 1 ? "> 99.9\u00a0%" : share < 0.0005 && share > 0 ? "< 0.1\u00a0%" : `${(100 * share).toFixed(1)}\u00a0%`);

const shareBar = (share) => svg("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
  svg("rect", { class: "ground", width: 100, height: 8 }), svg("rect", { class: "value", width: (100 * share).toFixed(2), height: 8 }));

/* How the answers move with another set of candidates: what a claim about them has to be stated with. */
function moves(sensitivity) {
  const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(0)}\u00a0%`);
  return h("div", { class: "sheet" }, h("h3", {}, "With other candidates"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Answers with other candidates" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "change"),
      ["candidates", "other answers", "of those still there", "mean first share"].map((name) => h("th", { scope: "col", class: "n" }, name)))),
      h("tbody", {}, sensitivity.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name), h("td", { class: "n" }, count(one.n_candidates)), h("td", { class: "n" }, percent(one.changed)),
        h("td", { class: "n" }, percent(one.changed_of_kept)), h("td", { class: "n" }, `${one.mean_top_share_before.toFixed(2)} → ${one.mean_top_share_after.toFixed(2)}`)))))));
}
