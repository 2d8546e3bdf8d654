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

/* The figure to show first: recall@10 towards a side (or the first direction), over all queries; null where none is. */
export function headline(towards) {
  const rows = (facts?.measured?.rows ?? []).filter((row) => /^recall@/.test(row.metric));
  const tens = rows.filter((row) => row.metric === "recall@10");
  const fitting = (tens.length ? tens : rows).filter((row) => !towards || row.direction.endsWith(` ${towards}`));
  return fitting[0] ?? null;
}

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
  return Object.keys(payload).find((name) => !["name", "names", "synonyms"].includes(name) && spoken(payload[name])) ?? null;
}
