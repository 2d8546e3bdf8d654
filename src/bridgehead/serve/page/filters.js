/* The filters: a free condition, facets of the payload, and for molecules a substructure or a likeness. Each choice
   becomes a condition of the state; what it means is the service's matter. */

import { button, byId, fill, h, quiet, shortened, submit } from "./elements.js";
import { between, fieldText, oneOf } from "./conditions.js";
import { facet, further } from "./facets.js";
import { facetsOf } from "./facts.js";
import { ask } from "./service.js";
import { current, go } from "./state.js";

const MOST_FACETS = 8;
let built = null;
const updates = [];

/* Where a refusal is about: "filter", "sub" or "near", with the message; null where it is about something else. */
export function faultOfFilters(message, state) {
  if (state.filter.length && /\b(filter|field)\b/.test(message)) return { at: "filter", message };
  if (state.near && /similar_to|similar/.test(message)) return { at: "near", message };
  if (state.sub && /substructure|pattern|SMARTS/.test(message)) return { at: "sub", message };
  return null;
}

export function showFilters(place, side, state, fault = null) {
  place.hidden = !side || (!state.q.trim() && !state.filter.length);
  place.parentElement.classList.toggle("alone", place.hidden);
  if (!side) return;
  if (built !== side) build(place, side);
  updates.forEach((update) => update(state, fault));
}

function build(place, side) {
  built = side;
  updates.length = 0;
  const wide = window.matchMedia("(min-width: 62rem)");
  const fields = side.fields.filter((field) => field.n_items > 0);
  const facets = facetsOf(side).slice(0, MOST_FACETS);
  const number = h("span", { class: "n" });
  const panel = h(
    "details",
    { open: wide.matches },
    h("summary", { id: "filters-title" }, h("h2", {}, "Filters"), number),
    active(),
    free(fields),
    side.kind === "molecule" ? structures() : null,
    facets.map((field, at) => facet(field, updates, at < 2)),
    further(fields.filter((field) => !facets.includes(field))),
    fields.length ? h("p", { class: "quiet counts" }, "Numbers count all items, whatever is asked.") : null,
  );
  wide.onchange = () => (panel.open = wide.matches);
  updates.push((state, fault) => {
    const n = state.filter.length + (state.sub ? 1 : 0) + (state.near ? 1 : 0);
    number.textContent = n ? `${n} on` : "";
    if (fault) panel.open = true;
  });
  fill(place, panel);
}

function problem(at) {
  const place = h("p", { class: "bad problem", id: `${at}-problem`, role: "alert" });
  updates.push((state, fault) => (place.textContent = fault?.at === at ? fault.message : ""));
  return place;
}

/* The conditions that hold now: each can be taken out, and a free one taken back into the box. */
function active() {
  const list = h("ul", { class: "active", "aria-label": "Filters that are on" });
  updates.push((state) => {
    const had = list.contains(document.activeElement);
    const shown = [
      ...state.filter.map((condition) =>
        on(
          condition,
          () => without(condition),
          () => {
            without(condition);
            byId("where").value = condition;
            byId("where").focus();
          },
        ),
      ),
      state.sub
        ? on(
            `contains ${state.sub}`,
            () => go({ sub: "" }),
            () => byId("sub").focus(),
          )
        : null,
      state.near
        ? on(
            `like ${state.near}, ${state.least} or more`,
            () => go({ near: "" }),
            () => byId("near").focus(),
          )
        : null,
    ].filter(Boolean);
    if (shown.length > 1)
      shown.push(
        h(
          "li",
          {},
          button("Clear all", () => go({ filter: [], sub: "", near: "" }), { class: "plain" }),
        ),
      );
    fill(list, shown);
    if (had) (list.querySelector("button") ?? byId("filters-title")).focus();
  });
  return list;
}

function on(condition, out, edit) {
  return h(
    "li",
    {},
    button(shortened(condition, 60), edit, { class: "chip", title: `${condition}\nChange it` }),
    button("×", out, { class: "chip away", "aria-label": `Without ${condition}` }),
  );
}

const without = (condition) => go({ filter: current().filter.filter((one) => one !== condition) });

function free(fields) {
  const hint = exampleOf(fields);
  const said = problem("filter");
  const box = h("input", {
    id: "where",
    type: "text",
    placeholder: hint,
    maxlength: 10000,
    spellcheck: "false",
    autocapitalize: "none",
    autocomplete: "off",
    "aria-describedby": said.id,
  });
  const add = async (event) => {
    event.preventDefault();
    const condition = box.value.trim();
    if (!condition || !(await isRight(condition, said))) return;
    box.value = "";
    go({ filter: [...current().filter.filter((one) => one !== condition), condition] });
  };
  return h(
    "form",
    { class: "free", on: { submit: add } },
    h("label", { for: "where" }, "Condition"),
    h("div", { class: "box" }, box, submit("Add")),
    said,
    h(
      "details",
      { class: "help" },
      h("summary", {}, "How to write one"),
      quiet(
        "field = 'value', !=, <, <=, >, >=, in ('a', 'b'), not in, exists field; and, or, not, brackets. ",
        "A field of more than one word stands in double quotes.",
      ),
      quiet("Fields: ", fields.map((field) => field.name).join(", ")),
    ),
  );
}

/* A condition that would find something, to show how one is written. */
function exampleOf(fields) {
  const field = facetsOf(built)[0] ?? fields[0];
  if (!field) return "";
  if (field.kind === "number" && field.name !== built.partners) return between(field.name, null, field.most);
  const common = field.common[0]?.[0];
  return common === undefined || String(common).length > 30
    ? `exists ${fieldText(field.name)}`
    : oneOf(field.name, [field.kind === "boolean" ? true : common]);
}

/* Ask whether a condition can be read before it counts; a refusal stands under the box, and the text stays in it. */
async function isRight(condition, said) {
  const { q, of } = current();
  try {
    await ask("search", { body: { q, of: of || built.name, k: 1, filter: condition } });
    said.textContent = "";
    return true;
  } catch (error) {
    said.textContent = error.message;
    byId("where").focus();
    return false;
  }
}

function structures() {
  const field = (id, placeholder, said) =>
    h("input", {
      id,
      type: "text",
      placeholder,
      maxlength: 10000,
      spellcheck: "false",
      autocapitalize: "none",
      autocomplete: "off",
      "aria-describedby": said.id,
      class: "code",
    });
  const subSaid = problem("sub");
  const nearSaid = problem("near");
  const sub = field("sub", "SMILES or SMARTS", subSaid);
  const near = field("near", "SMILES", nearSaid);
  const least = h("input", { id: "least", type: "number", min: 0, max: 1, step: 0.05 });
  updates.push((state) => {
    if (document.activeElement !== sub) sub.value = state.sub;
    if (document.activeElement !== near) near.value = state.near;
    if (document.activeElement !== least) least.value = state.least;
  });
  const form = h(
    "form",
    {
      on: {
        submit: (event) => {
          event.preventDefault();
          go({ sub: sub.value.trim(), near: near.value.trim(), least: least.value || "0.7" });
        },
      },
    },
    h("label", { for: "sub" }, "Contains"),
    sub,
    subSaid,
    h("label", { for: "near" }, "Resembles"),
    near,
    nearSaid,
    h("div", { class: "box" }, h("label", { for: "least" }, "Tanimoto at least"), least, submit("Set")),
  );
  const panel = h(
    "details",
    { class: "facet structures", open: true },
    h("summary", {}, h("span", { class: "field" }, "structure")),
    form,
  );
  updates.push((state) => {
    if (state.sub || state.near) panel.open = true;
  });
  return panel;
}
