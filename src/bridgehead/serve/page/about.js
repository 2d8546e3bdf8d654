/* What is being searched: sides, heads, what was measured and when, attribution; and the line of it at the foot. */

import { count, fill, h, shown, svg } from "./elements.js";
import { directed, headline, known, whenMeasured } from "./facts.js";
import { token } from "./service.js";

// Ranks count, all other figures are shares.
const isRank = (row) => /rank/.test(row.metric);
const figureOf = (row, value) => (typeof value !== "number" ? "–" : isRank(row) ? value.toFixed(1) : value.toFixed(3));

export function showAbout(place) {
  const facts = known();
  if (!facts) return;
  fill(place,
    h("div", { class: "sheet" },
      h("h2", {}, facts.name),
      h("p", {}, `A space of ${facts.sides.map((side) => `${count(side.n_items)} ${side.name} items`).join(" and ")}. `, headsSaid(facts.heads)),
      links(facts)),
    measured(facts),
    h("div", { class: "sheet" }, h("h2", {}, "Index"),
      h("p", { class: "quiet" }, "Recall of the index: the share of the ten nearest items that it finds, against a look at every row. What it misses is not lost to words."),
      sides(facts)),
    facts.sides.map((side) => fields(side)),
    facts.attribution ? h("div", { class: "sheet" }, h("h2", {}, "Data"), h("p", {}, facts.attribution)) : null,
    token.get() ? h("div", { class: "sheet" }, h("h2", {}, "Token"), h("p", {}, "This tab holds the token of the service."),
      h("button", { type: "button", on: { click: () => { token.drop(); location.reload(); } } }, "Forget it")) : null);
}

function headsSaid(heads) {
  if (heads === "refit") return "What you search are refit heads: trained on all pairs, after the figures below were measured with heads that never saw the test pairs.";
  return `What you search are the ${heads} heads: those that the figures below were measured with.`;
}

function links(facts) {
  const report = facts.report ? h("a", { href: facts.report.replace(/^\//, ""), class: "button" }, "Read the report") : null;
  return h("p", { class: "actions" }, report, h("a", { href: "openapi.json", class: "button" }, "Interface (OpenAPI)"),
    h("span", { class: "quiet" }, `bridgehead ${facts.version}`));
}

function measured(facts) {
  const rows = facts.measured?.rows ?? [];
  if (!rows.length) return h("div", { class: "sheet" }, h("h2", {}, "Measured"), h("p", { class: "quiet" }, facts.measured?.text || "Nothing was measured of this space."));
  return h("div", { class: "sheet" }, h("h2", {}, facts.heads === "refit" ? "Measured before refit" : "Measured"),
    facts.measured.text ? h("p", {}, facts.measured.text) : null,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Measured figures" }, h("table", {},
      h("thead", {}, h("tr", {}, ["direction", "metric"].map((name) => h("th", { scope: "col" }, name)), h("th", { class: "wide" }, h("span", { class: "unseen" }, "bar")),
        ["value", "95\u00a0%", "chance", "queries", "candidates"].map((name) => h("th", { scope: "col", class: "n" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {},
        h("th", { scope: "row" }, directed(row.direction)), h("td", {}, row.metric), h("td", { class: "wide" }, isRank(row) ? null : bar(row)),
        h("td", { class: "n strong" }, figureOf(row, row.value)), h("td", { class: "n" }, typeof row.low !== "number" || typeof row.high !== "number" ? "–" : `${figureOf(row, row.low)} to ${figureOf(row, row.high)}`),
        h("td", { class: "n" }, figureOf(row, row.chance)), h("td", { class: "n" }, count(row.n_queries)), h("td", { class: "n" }, count(row.n_candidates))))))));
}

function bar(row) {
  const at = (value) => (100 * Math.min(Math.max(value, 0), 1)).toFixed(2);
  return svg("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    svg("rect", { class: "ground", width: 100, height: 8 }), svg("rect", { class: "value", width: at(row.value), height: 8 }),
    typeof row.chance !== "number" ? null : svg("rect", { class: "chance", x: at(row.chance), width: 0.8, height: 8 }));
}

function sides(facts) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Sides of the index" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "side"), h("th", { scope: "col" }, "kind"), h("th", { scope: "col", class: "n" }, "items"), h("th", { scope: "col" }, "how it is searched"), h("th", { scope: "col" }, "recall"))),
    h("tbody", {}, facts.sides.map((side) => h("tr", {}, h("th", { scope: "row" }, side.name), h("td", {}, side.kind), h("td", { class: "n" }, count(side.n_items)),
      h("td", {}, side.method), h("td", { class: "number" }, recalls(side)))))));
}

function recalls(side) {
  const found = Object.entries(side.recall ?? {}).filter(([, value]) => typeof value === "number");
  return found.length ? found.map(([queries, value]) => `${value.toFixed(4)} for queries of the ${queries}`).join("; ") : "exact";
}

function fields(side) {
  if (!side.fields.length) return null;
  return h("div", { class: "sheet" }, h("h2", {}, `Fields of ${side.name}`),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Fields of ${side.name}` }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "field"), h("th", { scope: "col" }, "kind"), h("th", { scope: "col", class: "n" }, "items"), h("th", { scope: "col" }, "values"))),
      h("tbody", {}, side.fields.map((field) => h("tr", {}, h("th", { scope: "row", class: "code" }, field.name), h("td", {}, field.kind), h("td", { class: "n" }, count(field.n_items)), h("td", { class: "values" }, valuesOf(field))))))));
}

function valuesOf(field) {
  if (field.kind === "number") return `${field.least} to ${field.most}`;
  const common = field.common.filter(([, n]) => n > 1).slice(0, 4);
  if (!common.length) return h("span", { class: "quiet" }, "each its own");
  return common.map(([value, n], at) => [at ? ", " : null, shown(value), h("span", { class: "quiet" }, ` ${count(n)}`)]);
}

/* The line at the foot of every view: what is searched, how good it was measured to be, whose data it is. */
export function showFoot(place) {
  const facts = known();
  if (!facts) return;
  const figure = headline();
  const indexed = facts.sides.map((side) => Object.values(side.recall ?? {})).flat().filter((value) => typeof value === "number");
  fill(place,
    h("p", {}, h("b", {}, facts.name), ` · ${facts.sides.map((side) => `${count(side.n_items)} ${side.name}`).join(" · ")} · ${facts.heads} heads`,
      figure ? ` · ${figure.metric} ${figure.value.toFixed(3)} (${directed(figure.direction)}, ${whenMeasured()})` : "",
      indexed.length ? ` · index recall ${Math.min(...indexed).toFixed(3)}` : " · exact index", " · ",
      h("a", { href: "?tab=about", data: { link: "" } }, "About"), facts.report ? [" · ", h("a", { href: facts.report.replace(/^\//, "") }, "Report")] : null),
    facts.attribution ? h("p", {}, facts.attribution) : null);
}
