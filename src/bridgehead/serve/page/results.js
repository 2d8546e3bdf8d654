/* The list of hits and what stands in its place: the start, the skeleton while one waits, and no hits. */

import { button, copyButton, count, fill, h, quiet, shortened } from "./elements.js";
import { reportLink } from "./about.js";
import { cardOf } from "./card.js";
import { directed, headline, indexRecalls, isMolecule, known, sideOf, whenMeasured } from "./facts.js";
import { go, linkTo, MOST_OFFSET, PAGE_SIZE } from "./state.js";

const MEANINGS = { space: "cosine", words: "word score", hybrid: "fused" };
const NAMED = ["id", "name", "inchikey"];

export function showAnswer(place, answer, state, explained) {
  if (!answer.hits.length) return fill(place, noHits(answer, state));
  const first = answer.offset + 1;
  const last = answer.offset + answer.hits.length;
  const bars = answer.hits.some((hit) => typeof hit.percentile === "number");
  return fill(
    place,
    h(
      "div",
      { class: "results-head" },
      h("h2", { id: "results-title", tabindex: -1 }, `Hits ${count(first)} to ${count(last)}`),
      quiet(`${answer.of} · ${count(answer.n_searched)} searched · ${duration(answer.took_ms)}`),
      copyButton("Copy link", () => location.href, "Link"),
    ),
    h(
      "ol",
      { class: "hits", start: first, "aria-labelledby": "results-title" },
      answer.hits.map((hit, number) =>
        cardOf(hit, number, {
          meaning: MEANINGS[state.mode],
          isQuery: NAMED.includes(answer.reading.kind) && hit.id === state.q.trim(),
          explained: () => explained(hit),
        }),
      ),
    ),
    bars
      ? h(
          "p",
          { class: "quiet legend" },
          "Bars: the share of random pairs that are further apart; marks at 90, 99, 99.9 and 99.99\u00a0%. ",
          "A hit is a reason to look, no proof.",
        )
      : null,
    pages(answer, state),
  );
}

const duration = (ms) => (ms < 1 ? "under 1 ms" : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

function pages(answer, state) {
  const further = answer.more && answer.offset + PAGE_SIZE <= MOST_OFFSET;
  if (!further && state.page === 1) return null;
  return h(
    "nav",
    { class: "pages", "aria-label": "Pages of hits" },
    state.page > 1 ? button("← Ten before", () => go({ page: state.page - 1 }, "page"), { id: "before" }) : h("span"),
    h("span", { class: "quiet" }, `page ${count(state.page)}`),
    further ? button("Next ten →", () => go({ page: state.page + 1 }, "page"), { id: "next" }) : h("span"),
  );
}

function noHits(answer, state) {
  const ways = [];
  const way = (label, changes) => ways.push(button(label, () => go(changes)));
  if (state.page > 1) way("Back to the first page", { page: 1 });
  if (state.filter.length || state.sub || state.near) way("Without the filters", { filter: [], sub: "", near: "" });
  if (state.as) way("Read it as it comes", { as: "" });
  if (state.mode === "words") way("Match by meaning", { mode: "space" });
  const why =
    state.page > 1
      ? "There are no hits on this page."
      : answer.n_searched === 0 && (state.filter.length || state.sub || state.near)
        ? `No ${answer.of} passes the filters.`
        : "Nothing here answers this query.";
  return h(
    "div",
    { class: "empty" },
    h("h2", { id: "results-title", tabindex: -1 }, "No hits"),
    h("p", {}, why),
    answer.note ? null : quiet("Other words, a name or a SMILES may find it."),
    ways.length ? h("div", { class: "actions" }, ways) : null,
  );
}

/* Before anything was asked: what there is, how good it is, and what could be asked. */
export function showStart(place) {
  const facts = known();
  if (!facts) return fill(place);
  return fill(
    place,
    h(
      "div",
      { class: "start" },
      h(
        "div",
        {},
        h(
          "h2",
          { id: "results-title", tabindex: -1 },
          "Search ",
          facts.sides.map((side, at) => `${at ? " and " : ""}${count(side.n_items)} ${side.name}`),
          " items",
        ),
        h("p", {}, purpose(facts)),
        facts.examples.length
          ? [
              h("h3", {}, "For example"),
              h(
                "ul",
                { class: "examples" },
                facts.examples.map((text) =>
                  h(
                    "li",
                    {},
                    h(
                      "a",
                      {
                        href: linkTo({ q: text }),
                        data: { link: "" },
                        class: looksCoded(text) ? "code" : null,
                        title: text,
                      },
                      shortened(text, 120),
                    ),
                  ),
                ),
              ),
            ]
          : null,
        quiet("Press ", h("kbd", {}, "/"), " to type, ", h("kbd", {}, "?"), " for all keys."),
      ),
      h("div", { class: "sheet" }, h("h3", {}, "What is searched"), inShort(facts)),
    ),
  );
}

function inShort(facts) {
  const figure = headline();
  const recalls = indexRecalls();
  const fact = (name, ...value) => [h("dt", {}, name), h("dd", { class: "number" }, ...value)];
  return [
    h(
      "dl",
      { class: "facts" },
      fact("space", facts.name),
      facts.sides.map((side) => fact(side.name, `${count(side.n_items)} items`)),
      fact("heads", facts.heads),
      figure
        ? fact(
            figure.metric,
            h("b", {}, figure.value.toFixed(3)),
            ` ${directed(figure.direction)}`,
            h(
              "span",
              { class: "quiet block" },
              figure.chance === null ? "" : `chance ${figure.chance.toFixed(3)}; `,
              `among ${count(figure.n_candidates)}; ${whenMeasured()}`,
            ),
          )
        : null,
      fact(
        "index",
        recalls.length
          ? `finds ${(100 * Math.min(...recalls)).toFixed(1)}\u00a0% of the true first ten, or more`
          : "exact",
      ),
    ),
    h(
      "p",
      { class: "actions" },
      h("a", { class: "button", href: linkTo({ tab: "about" }), data: { link: "" } }, "All figures"),
      reportLink(facts, "Report", "button"),
    ),
  ];
}

const looksCoded = (text) => !/\s/.test(text) && /[()=#[\]\d]/.test(text);

function purpose(facts) {
  const words = facts.sides.find((side) => side.kind === "text");
  const drawn = facts.sides.find((side) => isMolecule(side.name));
  if (!words || !drawn) {
    const names = facts.sides.map((side) => side.name).join(" or ");
    return `Give an item of one side, and find what belongs to it on the other: ${names}.`;
  }
  const what = drawn.name;
  return `Describe what a ${what} does, and find ${what} items; paste a SMILES or type a name, and find what is said of its like.`;
}

/* Grey shapes where hits will be; nothing for screen readers, who are told that it searches. */
export function showSkeleton(place) {
  const bone = (name) => h("div", { class: `bone ${name}` });
  const drawn = isMolecule(place.dataset.of) || !sideOf(place.dataset.of);
  const ghost = () =>
    h(
      "div",
      { class: "ghost" },
      drawn ? bone("picture") : null,
      h("div", { class: "lines" }, bone("line short"), bone("line"), bone("line")),
    );
  return fill(place, h("div", { class: "skeleton", "aria-hidden": "true" }, Array.from({ length: 5 }, ghost)));
}
