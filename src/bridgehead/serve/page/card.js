/* One hit as a card: rank, picture, name, statement, facets of its payload, score with its bar, and what can be done.
   What opens below it is in `panels.js`. */

import { percentileBar, percentileText } from "./bars.js";
import { button, copyButton, h, score, shortened, shown } from "./elements.js";
import { showStructure } from "./dialogs.js";
import { facetsOf, isMolecule, otherSide, partnersOf, sideOf } from "./facts.js";
import { oneOf } from "./conditions.js";
import { allPanel, explanationPanel, partnersPanel } from "./panels.js";
import { smallPicture, titleOf } from "./items.js";
import { current, go, linkTo } from "./state.js";
import { showPicture } from "./service.js";

const MOST_CHIPS = 6;
const MOST_OF_ONE = 2;
const MOST_SMALL = 4;
const SHORT = 20;

/* The card of a hit; `number` makes its ids on the page, `explained` asks for the hit's explanation. */
export function cardOf(hit, number, { meaning, isQuery, explained }) {
  const molecule = isMolecule(hit.side);
  const id = `hit-${number}`;
  const panels = h("div", { class: "panels" });
  const toggles = [
    toggle("texts", partnersLabel(hit), () => partnersPanel(hit), panels, id),
    toggle("explain", "Why?", () => explanationPanel(hit, explained), panels, id),
    toggle("fields", "All fields", () => allPanel(hit), panels, id),
  ];
  const card = h(
    "article",
    { class: `card ${molecule ? "drawn" : "worded"}`, tabindex: number ? -1 : 0, "aria-labelledby": `${id}-title` },
    h("span", { class: "rank" }, hit.rank),
    molecule ? plate(hit) : null,
    h(
      "div",
      { class: "what" },
      heading(hit, id, isQuery),
      statement(hit),
      molecule ? null : partnerPictures(hit),
      chips(hit),
      also(hit),
    ),
    closeness(hit, meaning),
    h("div", { class: "actions" }, similarLink(hit), toggles, copyAction(hit, molecule)),
    panels,
  );
  card.addEventListener("all", () => {
    const closed = toggles.filter((one) => one.getAttribute("aria-expanded") === "false");
    (closed.length ? closed : toggles).forEach((one) => one.click());
  });
  return h("li", {}, card);
}

function partnersLabel(hit) {
  const other = otherSide(hit.side);
  const n = partnersOf(hit).values.length;
  const what = { molecule: ["structure", "structures"], text: ["text", "texts"] }[other?.kind] ?? [
    other?.name ?? "partner",
    `${other?.name ?? "partner"} items`,
  ];
  return n ? `Its ${n === 1 ? "" : `${n} `}${what[n === 1 ? 0 : 1]}` : `Near ${what[1]}`;
}

/* A button that opens a panel below the card, made when it is first opened. */
function toggle(does, label, make, panels, id) {
  const panel = h("section", {
    id: `${id}-${does}`,
    class: `panel ${does}`,
    "aria-label": label.replace("?", ""),
    hidden: true,
  });
  panels.append(panel);
  const press = () => {
    panel.hidden = !panel.hidden;
    opener.setAttribute("aria-expanded", String(!panel.hidden));
    if (!panel.hidden && !panel.hasChildNodes()) panel.append(make());
  };
  const opener = button(label, press, { data: { does }, "aria-expanded": "false", "aria-controls": panel.id });
  return opener;
}

const undrawn = (hit) =>
  h("div", { class: "plate none", title: "Not drawn" }, h("span", { class: "code" }, shortened(hit.item, 90)));

function plate(hit) {
  const title = titleOf(hit);
  if (!hit.has_picture) return undrawn(hit);
  const image = h("img", { alt: `Structure of ${shortened(title, 80)}`, loading: "lazy" });
  const larger = button(image, () => showStructure(hit, title), { class: "plate", title: "Larger" });
  image.addEventListener("error", () => larger.replaceWith(undrawn(hit)), { once: true });
  showPicture(image, hit.id, hit.side);
  return larger;
}

function heading(hit, id, isQuery) {
  const title = titleOf(hit);
  return h(
    "div",
    { class: "heading" },
    h("h3", { id: `${id}-title`, title: Array.from(title).length > 60 ? title : null }, title),
    title === hit.id ? null : h("span", { class: "id code" }, shortened(hit.id, 40)),
    isQuery ? h("span", { class: "mark" }, "the query itself") : null,
  );
}

function statement(hit) {
  const partners = partnersOf(hit);
  if (partners.areIds || !partners.values.length) return null;
  const text = mostAlike(partners.values, current().q);
  return h("p", { class: "statement", title: text }, text);
}

/* Of several texts the one that shares most words with the query; the first one where none does. */
function mostAlike(texts, query) {
  const wordsOf = (text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []);
  const asked = wordsOf(query);
  const shared = texts.map((text) => [...wordsOf(text)].filter((word) => asked.has(word)).length);
  return texts[shared.indexOf(Math.max(...shared))];
}

/* The structures that belong to a text, small: chemistry at a glance. */
function partnerPictures(hit) {
  const partners = partnersOf(hit);
  const other = otherSide(hit.side);
  if (!partners.areIds || other?.kind !== "molecule" || !partners.values.length) return null;
  const more = partners.values.length - MOST_SMALL;
  return h(
    "div",
    { class: "smalls" },
    partners.values.slice(0, MOST_SMALL).map((id) => smallPicture(id, other.name)),
    more > 0 ? h("span", { class: "quiet" }, `+\u00a0${more} more`) : null,
  );
}

/* Facets of the payload that many items share, as buttons that filter by them. "true" shows as the field's name. */
function chips(hit) {
  const side = sideOf(hit.side);
  const partner = partnersOf(hit).field;
  const found = [];
  let more = 0;
  for (const field of facetsOf(side)) {
    const value = hit.payload[field.name];
    if (value === undefined || value === null || field.name === partner) continue;
    const values = [value].flat().filter((one) => !["false", ""].includes(String(one)) && typeof one !== "object");
    found.push(...values.slice(0, MOST_OF_ONE).map((one) => [field, one]));
    more += Math.max(values.length - MOST_OF_ONE, 0);
  }
  found.push(...plainOnes(hit, side, partner));
  if (!found.length) return null;
  more += Math.max(found.length - MOST_CHIPS, 0);
  return h(
    "div",
    { class: "chips" },
    found.slice(0, MOST_CHIPS).map(([field, value]) => chip(field, value)),
    more > 0 ? h("span", { class: "quiet" }, `+\u00a0${more} more`) : null,
  );
}

/* Short texts of fields that sort nothing, a formula say: they are only shown. */
function plainOnes(hit, side, partner) {
  const sorting = facetsOf(side);
  return (side?.fields ?? [])
    .filter((field) => !sorting.includes(field) && field.name !== partner && field.name !== "name")
    .map((field) => [{ ...field, isPlain: true }, hit.payload[field.name]])
    .filter(([, value]) => typeof value === "string" && value && value.length <= SHORT);
}

/* A value as a filter by it. A number is only shown: that another item has just this one says little. */
function chip(field, value) {
  if (field.isPlain || field.kind === "number")
    return h("span", { class: "chip" }, h("span", { class: "quiet" }, `${field.name} `), shown(value));
  const isTrue = String(value) === "true";
  const condition = oneOf(field.name, [field.kind === "boolean" ? isTrue : value]);
  const press = () => {
    const filter = current().filter;
    if (!filter.includes(condition)) go({ filter: [...filter, condition] });
  };
  const label = isTrue ? field.name : [h("span", { class: "quiet" }, `${field.name} `), shortened(shown(value), 44)];
  return button(label, press, { class: "chip", title: `Only with ${field.name}: ${shown(value)}` });
}

function also(hit) {
  if (!hit.also?.length) return null;
  const shownIds = hit.also.slice(0, 5).join(", ");
  return h(
    "p",
    { class: "quiet also" },
    `and ${hit.also.length} more form${hit.also.length > 1 ? "s" : ""} of it: ${shownIds}${hit.also.length > 5 ? ", …" : ""}`,
  );
}

function closeness(hit, meaning) {
  const known = typeof hit.percentile === "number";
  return h(
    "div",
    { class: "closeness" },
    h("span", { class: "score" }, score(hit.score, meaning === "fused" ? 4 : 3)),
    h("span", { class: "unit quiet" }, hit.read_as === "words" ? "word score" : meaning),
    known ? percentileBar(hit.percentile) : null,
    known ? h("span", { class: "percentile quiet" }, percentileText(hit.percentile)) : null,
  );
}

function similarLink(hit) {
  const side = sideOf(hit.side);
  return h(
    "a",
    {
      class: "button",
      href: linkTo({ q: hit.id, as: "id", of: side?.name ?? "" }),
      data: { link: "", does: "similar" },
    },
    "Similar",
  );
}

function copyAction(hit, molecule) {
  const what = molecule ? "SMILES" : "Text";
  const copier = copyButton(`Copy ${molecule ? "SMILES" : "text"}`, hit.item, what);
  copier.dataset.does = "copy";
  return copier;
}
