/* What opens below a card: its partners on the other side, why it is here, all its fields. Each is asked for when it is
   first opened. */

import { button, count, fill, h, quiet, score, shown } from "./elements.js";
import { percentileText } from "./bars.js";
import { smallPicture, titleOf } from "./items.js";
import { isMolecule, known, otherSide, partnersOf, sideOf } from "./facts.js";
import { ask, itemPath } from "./service.js";
import { linkTo } from "./state.js";

const NEAREST = 4;
const MOST_PICTURES = 12;
const MOST_NAMES = 12;
const PROSE = 40;

/* Fill `place` with what comes; say in words what went wrong, and offer to ask again. */
async function later(place, make) {
  fill(place, quiet("…"));
  try {
    fill(place, await make());
  } catch (error) {
    fill(
      place,
      h(
        "p",
        { class: "bad" },
        `Not found out: ${error.message}. `,
        button("Try again", () => later(place, make)),
      ),
    );
  }
  return place;
}

/* What is paired with the item in the data, and what lies nearest to it on the other side of the space. */
export function partnersPanel(hit) {
  const other = otherSide(hit.side);
  if (!other) return h("p", {}, "This space has one side.");
  const partners = partnersOf(hit);
  const paired = h("div", {});
  if (!partners.values.length) fill(paired, quiet(`No ${other.name} is paired with it in the data.`));
  else if (partners.areIds) pairedById(paired, partners.values, other);
  else
    fill(
      paired,
      h(
        "ul",
        { class: "texts" },
        partners.values.map((text) => h("li", {}, text)),
      ),
    );
  const nearest = h("div", {});
  later(nearest, async () =>
    nearestOf(
      await ask("search", {
        body: { q: hit.id, read_as: "id", of: other.name, k: NEAREST },
      }),
      other,
    ),
  );
  return h(
    "div",
    { class: "two" },
    h("div", {}, h("h4", {}, "Paired with it in the data"), paired),
    h("div", {}, h("h4", {}, `Nearest ${other.name} in the space`), nearest),
  );
}

function pairedById(place, ids, other) {
  const more = ids.length - MOST_PICTURES;
  later(place, async () => [
    h(
      "ul",
      { class: isMolecule(other.name) ? "gallery" : "texts" },
      await Promise.all(
        ids.slice(0, MOST_PICTURES).map(async (id) => {
          const item = await ask(itemPath(id, other.name)).catch(() => null);
          return h("li", {}, item ? small(item, other) : h("span", { class: "code" }, id));
        }),
      ),
    ),
    more > 0 ? quiet(`and ${count(more)} more`) : null,
  ]);
}

function small(item, other, value = null) {
  const name = titleOf(item);
  const number = value === null ? null : h("span", { class: "number quiet" }, score(value));
  if (!isMolecule(other.name))
    return [number, " ", h("a", { href: linkTo({ q: item.id, as: "id" }), data: { link: "" } }, name)];
  return [
    item.has_picture ? smallPicture(item.id, other.name, name) : null,
    h("span", { class: "name", title: name }, name),
    number,
  ];
}

function nearestOf(answer, other) {
  if (!answer.hits.length) return quiet(answer.note || "Nothing is near it.");
  return [
    h(
      "ul",
      { class: isMolecule(other.name) ? "gallery" : "texts scored" },
      answer.hits.map((hit) => h("li", {}, small(hit, other, hit.score))),
    ),
    quiet("What the model puts near it, with the cosine: a guess, not a pair of the data."),
  ];
}

/* Why a hit is here; `explained` answers with its explanation. */
export function explanationPanel(hit, explained) {
  const place = h("div", {});
  later(place, async () => {
    const why = hit.explanation ?? (await explained());
    return why ? explanationOf(why) : quiet("The service gives no explanation of this hit.");
  });
  return place;
}

function explanationOf(why) {
  const words = why.matched_words ?? [];
  const ranks = Object.entries(why.ranks ?? {});
  return h(
    "dl",
    { class: "facts" },
    fact(
      "Similarity",
      typeof why.similarity === "number"
        ? `cosine ${score(why.similarity)}`
        : "no cosine: the query has no place in the space",
    ),
    typeof why.percentile === "number" ? fact("Against chance", percentileText(why.percentile)) : null,
    ranks.length
      ? fact(
          "Rank",
          ranks
            .map(([by, rank]) => `${rank === null ? "not found" : `number ${count(rank)}`} by ${RANKED[by] ?? by}`)
            .join(", "),
        )
      : null,
    fact("Words in common", words.length ? words.map((word) => h("span", { class: "word" }, word)) : "none"),
    why.nearest_pair ? fact("Nearest training pair", nearestPair(why.nearest_pair)) : null,
  );
}

const RANKED = { space: "meaning", words: "words", hybrid: "both" };
const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];

/* A pair that the model was trained on: what it learnt from that is most like this. */
function nearestPair(pair) {
  const ends = (known()?.sides ?? []).map((side) => ({
    side,
    id: pair[`id_${side.side}`],
    item: pair[`item_${side.side}`],
  }));
  return [
    h(
      "div",
      { class: "pair" },
      ends.map(({ side, id, item }) =>
        side.kind === "molecule" ? smallPicture(id, side.name) : h("p", {}, item ?? id),
      ),
    ),
    quiet(`cosine ${score(pair.to_query)} to the query, ${score(pair.to_hit)} to this hit`),
  ];
}

/* Everything that is stored with the item, whole. */
export function allPanel(hit) {
  const rest = Object.entries(hit.payload).filter(([name]) => name !== "names" && name !== "name");
  const names = hit.payload.names ?? [];
  return h(
    "dl",
    { class: "facts" },
    fact("id", h("span", { class: "code" }, hit.id)),
    fact(
      isMolecule(hit.side) ? "SMILES" : (sideOf(hit.side)?.name ?? "item"),
      h("span", { class: isMolecule(hit.side) ? "code" : "" }, hit.item),
    ),
    names.length > 1 || (names.length && names[0] !== hit.name) ? fact("names", longList(names)) : null,
    rest.map(([name, value]) => fact(name, valueOf(value))),
  );
}

// Sentences in a row would run into each other.
function valueOf(value) {
  const isProse = Array.isArray(value) && value.length > 1 && value.some((one) => String(one).length > PROSE);
  return isProse
    ? h(
        "ul",
        {},
        value.map((one) => h("li", {}, shown(one))),
      )
    : shown(value) || "–";
}

/* The first of many, and the rest one step away. */
function longList(values) {
  const rest = values.slice(MOST_NAMES);
  if (!rest.length) return values.join("; ");
  return [
    values.slice(0, MOST_NAMES).join("; "),
    " ",
    h("details", {}, h("summary", {}, `and ${count(rest.length)} more`), rest.join("; ")),
  ];
}
