/* Classification: labels and items in. What comes out is shown by `classified.js`. */

import { button, byId, count, fill, h, quiet, say, submit } from "./elements.js";
import { classifiedParts } from "./classified.js";
import { asFault, faultPanel, forget, succeeded } from "./faults.js";
import { isMolecule, known, otherSide } from "./facts.js";
import { ask } from "./service.js";
import { current, go } from "./state.js";

const SHOWN = 5;
let running = null;
let built = false;
let asked = "";

export const lines = (text) =>
  text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter(Boolean);

/* Labels and their synonyms: a class a line, further names of it after "|" or a tab. */
export function labelsOf(text) {
  const rows = lines(text)
    .map((line) =>
      line
        .split(/\||\t/)
        .map((name) => name.trim())
        .filter(Boolean),
    )
    .filter((row) => row.length);
  const synonyms = Object.fromEntries(
    rows.filter((row) => row.length > 1).map(([label, ...further]) => [label, further]),
  );
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
    h("label", { for: `classify-${name}` }, label),
    h("p", { class: "quiet", id: `classify-${name}-hint` }, hint),
    h("textarea", {
      id: `classify-${name}`,
      rows,
      placeholder,
      spellcheck: "false",
      class: code ? "code" : null,
      "aria-describedby": `classify-${name}-hint`,
    }),
  ];
  const choice = h(
    "select",
    { id: "classify-of" },
    known()?.sides.map((side) => h("option", { value: side.name, selected: side === words }, side.name)),
  );
  fill(
    place,
    h(
      "div",
      { class: "columns even" },
      h(
        "form",
        { class: "sheet", on: { submit: sent } },
        h("h2", {}, "Put items to the nearest of your labels"),
        area(
          "labels",
          "Labels",
          "One a line. Further names of a label after a |: they are averaged with it.",
          6,
          "cyclooxygenase inhibitor | NSAID\nopioid receptor agonist\nbeta blocker",
        ),
        area(
          "items",
          "Items",
          `One a line: ${raw?.kind === "molecule" ? "SMILES" : (raw?.name ?? "items")}.`,
          5,
          isMolecule(raw?.name) ? "CC(=O)Oc1ccccc1C(=O)O" : "",
          isMolecule(raw?.name),
        ),
        h(
          "details",
          {},
          h("summary", {}, "Wording, threshold, side"),
          area(
            "templates",
            "Templates",
            "One a line; {} is where a label goes. Several are averaged.",
            2,
            "{}\na drug that is a {}",
          ),
          h("label", { for: "classify-below" }, "None of these below a cosine of"),
          h("input", {
            id: "classify-below",
            type: "number",
            min: -1,
            max: 1,
            step: "any",
            placeholder: "no threshold",
          }),
          h("label", { for: "classify-of" }, "Labels are"),
          choice,
        ),
        h("div", { class: "actions" }, submit("Classify", { class: "main" })),
      ),
      h("div", { id: "classified" }),
    ),
  );
}

function sent(event) {
  event.preventDefault();
  const value = (name) => byId(`classify-${name}`).value;
  asked = "";
  go({
    labels: value("labels").trim(),
    items: value("items").trim(),
    templates: value("templates").trim(),
    below: value("below").trim(),
    of: value("of"),
  });
}

function intro() {
  const example = {
    labels:
      "cyclooxygenase inhibitor | NSAID\nopioid receptor agonist\nbeta blocker that lowers blood pressure\nserotonin receptor agonist",
    items: "CC(=O)Oc1ccccc1C(=O)O\nCN1CCC23C4C1CC5=C2C(=C(C=C5)O)OC3C(C=C4)O\nCC(C)NCC(COc1cccc2c1cccc2)O",
  };
  const fits = isMolecule(otherSide(known()?.sides.find((side) => side.kind === "text")?.name)?.name);
  return h(
    "div",
    { class: "empty" },
    h("h2", {}, "No training on these labels"),
    h(
      "p",
      {},
      "Each label is read as words, each item is put to the label whose place in the space is nearest. ",
      "The answer is conditional on the labels that you give: state them with it.",
    ),
    fits
      ? h(
          "div",
          { class: "actions" },
          button("Try three drugs and four labels", () => go(example)),
        )
      : null,
  );
}

async function classify(state) {
  running?.abort();
  forget();
  const control = (running = new AbortController());
  const place = byId("classified");
  const { labels, synonyms } = labelsOf(state.labels);
  const body = {
    labels,
    items: lines(state.items),
    k: SHOWN,
    of: state.of || null,
    ...(Object.keys(synonyms).length ? { synonyms } : {}),
    ...(lines(state.templates).length ? { templates: lines(state.templates) } : {}),
    ...(state.below ? { abstain_below: Number(state.below) } : {}),
  };
  place.setAttribute("aria-busy", "true");
  fill(
    place,
    h(
      "div",
      { class: "skeleton", "aria-hidden": "true" },
      [1, 2, 3].map(() =>
        h(
          "div",
          { class: "sheet" },
          h("div", { class: "bone line short" }),
          h("div", { class: "bone line" }),
          h("div", { class: "bone line" }),
        ),
      ),
    ),
  );
  say("Classifying");
  try {
    const found = await ask("classify", { body, signal: control.signal });
    if (running !== control) return;
    succeeded();
    fill(place, classifiedParts(found));
    say(`${count(found.items.length)} items classified among ${count(labels.length)} labels`);
  } catch (error) {
    if (running !== control || error.name === "AbortError") return;
    fill(
      place,
      faultPanel(asFault(error), () => classify(current())),
    );
  } finally {
    if (running === control) place.removeAttribute("aria-busy");
  }
}
