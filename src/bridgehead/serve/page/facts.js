/* What the service says of itself (`/about`): asked once, kept, and looked things up in. Not about showing it. */

import { ask } from "./service.js";

let facts = null;

export async function load(signal) {
  facts ??= await ask("about", { signal });
  return facts;
}

export const known = () => facts;

/* The side of a shown name or of "a"/"b"; undefined where there is none. */
export const sideOf = (name) => facts?.sides.find((side) => side.side === name || side.name === name);
export const otherSide = (name) => facts?.sides.find((side) => side !== sideOf(name));
export const isMolecule = (name) => sideOf(name)?.kind === "molecule";

/* The figure to show first: recall@10 over all queries, towards molecules where a side holds them; null where there is
   none. */
export function headline() {
  const rows = (facts?.measured?.rows ?? []).filter((row) => /^recall@/.test(row.metric));
  const tens = rows.filter((row) => row.metric === "recall@10");
  const drawn = facts?.sides.find((side) => side.kind === "molecule");
  const found = tens.length ? tens : rows;
  return found.find((row) => drawn && row.direction.endsWith(` ${drawn.name}`)) ?? found[0] ?? null;
}

/* Recall of the index against exact, of all sides and kinds of queries; empty where all is exact. */
export const indexRecalls = () =>
  (facts?.sides ?? []).flatMap((side) => Object.values(side.recall ?? {})).filter((value) => typeof value === "number");

/* When the figures were measured, as the heads that are searched tell. */
export const whenMeasured = () => (facts?.heads === "refit" ? "measured before refit" : "measured on held-out pairs");

/* The field of an item's payload that holds its partners on the other side; null where that is not known. Partners of
   an item on side a are given whole, those of an item on side b by their ids. */
export function partnersOf(hit) {
  const side = sideOf(hit.side);
  const named = side?.partners ?? null;
  const field = named ?? (side?.kind === "text" ? null : fieldOfWords(hit.payload));
  const value = field === null ? undefined : hit.payload[field];
  const values = (Array.isArray(value) ? value : value ? [value] : []).map(String);
  return { field, values, areIds: side?.side === "b" };
}

function fieldOfWords(payload) {
  const spoken = (value) => [value].flat().some((one) => typeof one === "string" && one.trim().includes(" "));
  return (
    Object.keys(payload).find((name) => !["name", "names", "synonyms"].includes(name) && spoken(payload[name])) ?? null
  );
}

/* The fields that sort items: numbers, and values that many items share; those that tell most apart come first. What
   each item has for itself (a key, a formula) sorts nothing. */
export function facetsOf(side) {
  return (side?.fields ?? [])
    .filter(
      (field) =>
        field.n_items > 0 &&
        field.name !== side.partners &&
        (field.kind === "number" || (covered(field) >= LEAST_COVERED && longest(field) < LONGEST)),
    )
    .sort(
      (one, other) =>
        manyFirst(one) - manyFirst(other) || covered(other) - covered(one) || (one.name < other.name ? -1 : 1),
    );
}

const LEAST_COVERED = 0.05;
const LONGEST = 80;
// Values that occur once sort nothing.
const covered = (field) => field.common.reduce((sum, [, n]) => sum + (n > 1 ? n : 0), 0) / field.n_items;
const longest = (field) => Math.max(0, ...field.common.map(([value, n]) => (n > 1 ? String(value).length : 0)));
const manyFirst = (field) => (field.kind !== "number" && field.common.length < 2 ? 1 : 0);

export const directed = (direction) => direction.replace(/ (->|to) /, " → ");
