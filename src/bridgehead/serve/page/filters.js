/* The filters: facets of the payload, a free filter, and for molecules a substructure or a likeness. Each choice becomes
   a condition of the state; what it means is the service's matter. */

import { byId, count, fill, h, shortened } from "./elements.js";
import { between, fieldText, isOf, oneOf, rangeOf, valuesOf } from "./conditions.js";
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
  place.hidden = !side || !state.q.trim() && !state.filter.length;
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
  const panel = h("details", { open: wide.matches },
    h("summary", { id: "filters-title" }, h("h2", {}, "Filters"), number),
    active(), free(fields), side.kind === "molecule" ? structures() : null,
    facets.map((field, at) => facet(field, at < 2)),
    further(fields.filter((field) => !facets.includes(field))));
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
      ...state.filter.map((condition) => on(condition, () => without(condition), () => {
        without(condition);
        byId("where").value = condition;
        byId("where").focus();
      })),
      state.sub ? on(`contains ${state.sub}`, () => go({ sub: "" }), () => byId("sub").focus()) : null,
      state.near ? on(`like ${state.near}, ${state.least} or more`, () => go({ near: "" }), () => byId("near").focus()) : null,
    ].filter(Boolean);
    if (shown.length > 1) shown.push(h("li", {}, h("button", { type: "button", class: "plain", on: { click: () => go({ filter: [], sub: "", near: "" }) } }, "Clear all")));
    fill(list, shown);
    if (had) (list.querySelector("button") ?? byId("filters-title")).focus();
  });
  return list;
}

function on(condition, out, edit) {
  return h("li", {},
    h("button", { type: "button", class: "chip", title: `${condition}\nChange it`, on: { click: edit } }, shortened(condition, 60)),
    h("button", { type: "button", class: "chip away", "aria-label": `Without ${condition}`, on: { click: out } }, "×"));
}

const without = (condition) => go({ filter: current().filter.filter((one) => one !== condition) });
const replaced = (field, condition) => go({ filter: [...current().filter.filter((one) => !isOf(one, field)), ...(condition ? [condition] : [])] });

function free(fields) {
  const hint = exampleOf(fields);
  const said = problem("filter");
  const box = h("input", { id: "where", type: "text", placeholder: hint, maxlength: 10000, spellcheck: "false", autocapitalize: "none", autocomplete: "off", "aria-describedby": said.id });
  const add = async (event) => {
    event.preventDefault();
    const condition = box.value.trim();
    if (!condition || !(await isRight(condition, said))) return;
    box.value = "";
    go({ filter: [...current().filter.filter((one) => one !== condition), condition] });
  };
  return h("form", { class: "free", on: { submit: add } },
    h("label", { for: "where" }, "Condition"),
    h("div", { class: "box" }, box, h("button", { type: "submit" }, "Add")),
    said,
    h("details", { class: "help" }, h("summary", {}, "How to write one"),
      h("p", { class: "quiet" }, "field = 'value', !=, <, <=, >, >=, in ('a', 'b'), not in, exists field; and, or, not, brackets. A field of more than one word stands in double quotes."),
      h("p", { class: "quiet" }, "Fields: ", fields.map((field) => field.name).join(", "))));
}

/* A condition that would find something, to show how one is written. */
function exampleOf(fields) {
  const field = facetsOf(built)[0] ?? fields[0];
  if (!field) return "";
  if (field.kind === "number" && field.name !== built.partners) return between(field.name, null, field.most);
  const common = field.common[0]?.[0];
  return common === undefined || String(common).length > 30 ? `exists ${fieldText(field.name)}` : oneOf(field.name, [field.kind === "boolean" ? true : common]);
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

function facet(field, open) {
  const content = field.kind === "number" ? range(field) : values(field);
  const panel = h("details", { class: "facet", open }, h("summary", {}, h("span", { class: "field" }, field.name), h("span", { class: "quiet number" }, count(field.n_items))), content);
  updates.push((state) => {
    if (state.filter.some((condition) => isOf(condition, field.name))) panel.open = true;
  });
  return panel;
}

function values(field) {
  const chosen = () => current().filter.map((condition) => valuesOf(condition, field.name)).find(Boolean) ?? [];
  const choose = (value, on) => {
    const now = chosen().filter((one) => one !== value).concat(on ? [value] : []);
    replaced(field.name, now.length ? oneOf(field.name, now) : null);
  };
  const boxes = field.common.filter(([value, n]) => n > 1 || (field.common.length < 4 && String(value).length < 60)).map(([value, n]) => {
    const box = h("input", { type: "checkbox", on: { change: () => choose(value, box.checked) } });
    updates.push(() => (box.checked = chosen().includes(value)));
    return h("label", { class: "value", title: String(value) }, box, h("span", { class: "name" }, String(value)), h("span", { class: "quiet number" }, count(n)));
  });
  const whole = field.kind === "boolean" || field.common.reduce((sum, [, n]) => sum + n, 0) >= field.n_items && field.common.length < 10;
  return h("div", {}, boxes, whole ? null : another(field, (value) => choose(typed(field, value), true)));
}

/* A value that is not among the common ones. */
function another(field, choose) {
  const box = h("input", { type: "text", placeholder: "another value", "aria-label": `Another value of ${field.name}`, autocomplete: "off", spellcheck: "false" });
  return h("form", { class: "box", on: { submit: (event) => {
    event.preventDefault();
    if (box.value.trim()) choose(box.value.trim(), true);
    box.value = "";
  } } }, box, h("button", { type: "submit" }, "Add"));
}

// A field of numbers is asked with numbers; a text that reads as one may still be meant as a text.
const typed = (field, text) => (field.kind === "number" && Number.isFinite(Number(text)) ? Number(text) : text);

function range(field) {
  const end = (name, shown) => h("input", { type: "number", step: "any", placeholder: String(shown), "aria-label": `${field.name}, ${name}` });
  const least = end("at least", field.least);
  const most = end("at most", field.most);
  const number = (box) => (box.value.trim() === "" ? null : Number(box.value));
  updates.push((state) => {
    const now = state.filter.map((condition) => rangeOf(condition, field.name)).find(Boolean);
    if (document.activeElement !== least) least.value = now?.least ?? "";
    if (document.activeElement !== most) most.value = now?.most ?? "";
  });
  return h("form", { class: "box range", on: { submit: (event) => {
    event.preventDefault();
    replaced(field.name, between(field.name, number(least), number(most)) || null);
  } } }, least, h("span", { "aria-hidden": "true" }, "to"), most, h("button", { type: "submit" }, "Set"));
}

/* Fields that have no facet: a value of one of them, by hand. */
function further(fields) {
  if (!fields.length) return null;
  const choice = h("select", { "aria-label": "Field" }, fields.map((field) => h("option", { value: field.name }, field.name)));
  const box = h("input", { type: "text", placeholder: "value", "aria-label": "Its value", autocomplete: "off", spellcheck: "false" });
  return h("details", { class: "facet" }, h("summary", {}, h("span", { class: "field" }, "further fields"), h("span", { class: "quiet number" }, fields.length)),
    h("form", { class: "box", on: { submit: (event) => {
      event.preventDefault();
      if (!box.value.trim()) return;
      replaced(choice.value, oneOf(choice.value, [typed(fields.find((field) => field.name === choice.value), box.value.trim())]));
      box.value = "";
    } } }, choice, box, h("button", { type: "submit" }, "Add")));
}

function structures() {
  const field = (id, placeholder, said) => h("input", { id, type: "text", placeholder, maxlength: 10000, spellcheck: "false", autocapitalize: "none", autocomplete: "off", "aria-describedby": said.id, class: "code" });
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
  const form = h("form", { on: { submit: (event) => {
    event.preventDefault();
    go({ sub: sub.value.trim(), near: near.value.trim(), least: least.value || "0.7" });
  } } },
    h("label", { for: "sub" }, "Contains"), sub, subSaid,
    h("label", { for: "near" }, "Resembles"), near, nearSaid,
    h("div", { class: "box" }, h("label", { for: "least" }, "Tanimoto at least"), least, h("button", { type: "submit" }, "Set")));
  const panel = h("details", { class: "facet structures", open: true }, h("summary", {}, h("span", { class: "field" }, "structure")), form);
  updates.push((state) => {
    if (state.sub || state.near) panel.open = true;
  });
  return panel;
}
