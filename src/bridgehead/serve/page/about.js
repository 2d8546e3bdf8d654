/* What is being searched: sides, heads, what was measured and when, attribution; and the line of it at the foot. */

import { bar } from "./bars.js";
import { button, count, fill, h, quiet, shown } from "./elements.js";
import { directed, headline, indexRecalls, known, whenMeasured } from "./facts.js";
import { token } from "./service.js";
import { tableOf } from "./tables.js";

const MOST_VALUES = 4;
const REFIT =
  "What you search are refit heads: trained on all pairs, after the figures below were measured with heads that " +
  "never saw the test pairs.";
const INDEX =
  "Recall of the index: the share of the ten nearest items that it finds, against a look at every row. What it " +
  "misses can still be found by its words.";

export function showAbout(place) {
  const facts = known();
  if (!facts) return;
  const sizes = facts.sides.map((side) => `${count(side.n_items)} ${side.name} items`).join(" and ");
  const heads =
    facts.heads === "refit" ? REFIT : `What you search are the ${facts.heads} heads, as they were measured.`;
  fill(
    place,
    sheet(facts.name, h("p", {}, `A space of ${sizes}. ${heads}`), links(facts)),
    measured(facts),
    sheet("Index", quiet(INDEX), sides(facts)),
    facts.sides.map((side) => fields(side)),
    facts.attribution ? sheet("Data", h("p", {}, facts.attribution)) : null,
    token.get()
      ? sheet("Token", h("p", {}, "This tab holds the token of the service."), button("Forget it", forget))
      : null,
  );
}

const sheet = (title, ...content) => h("div", { class: "sheet" }, h("h2", {}, title), ...content);

function forget() {
  token.drop();
  location.reload();
}

export const reportLink = (facts, label, look) =>
  facts.report ? h("a", { href: facts.report.replace(/^\//, ""), class: look }, label) : null;

function links(facts) {
  return h(
    "p",
    { class: "actions" },
    reportLink(facts, "Read the report", "button"),
    h("a", { href: "openapi.json", class: "button" }, "Interface (OpenAPI)"),
    h("span", { class: "quiet" }, `bridgehead ${facts.version}`),
  );
}

function measured(facts) {
  const rows = facts.measured?.rows ?? [];
  const said = facts.measured?.text || "Nothing was measured of this space.";
  if (!rows.length) return sheet("Measured", quiet(said));
  const numbers = ["value", "95\u00a0%", "chance", "queries", "candidates"].map((name) => [name, "n"]);
  const columns = ["direction", "metric", [h("span", { class: "unseen" }, "bar"), "wide"], ...numbers];
  const title = facts.heads === "refit" ? "Measured before refit" : "Measured";
  return sheet(title, h("p", {}, said), tableOf("Measured figures", columns, rows.map(measuredCells)));
}

// Ranks count, all other figures are shares.
const isRank = (row) => /rank/.test(row.metric);

function measuredCells(row) {
  const figure = (value) => (typeof value !== "number" ? "–" : value.toFixed(isRank(row) ? 1 : 3));
  const interval = typeof row.low === "number" && typeof row.high === "number";
  return [
    directed(row.direction),
    row.metric,
    isRank(row) ? null : bar(row.value, { chance: row.chance }),
    h("b", {}, figure(row.value)),
    interval ? `${figure(row.low)} to ${figure(row.high)}` : "–",
    figure(row.chance),
    count(row.n_queries),
    count(row.n_candidates),
  ];
}

function sides(facts) {
  const columns = ["side", "kind", ["items", "n"], "how it is searched", ["recall", "number"]];
  const cells = (side) => [side.name, side.kind, count(side.n_items), side.method, recalls(side)];
  return tableOf("Sides of the index", columns, facts.sides.map(cells));
}

function recalls(side) {
  const found = Object.entries(side.recall ?? {}).filter(([, value]) => typeof value === "number");
  return found.map(([queries, value]) => `${value.toFixed(4)} for queries of the ${queries}`).join("; ") || "exact";
}

function fields(side) {
  if (!side.fields.length) return null;
  const columns = [["field", "code"], "kind", ["items", "n"], ["values", "values"]];
  const cells = (field) => [field.name, field.kind, count(field.n_items), valuesOf(field)];
  return sheet(`Fields of ${side.name}`, tableOf(`Fields of ${side.name}`, columns, side.fields.map(cells)));
}

function valuesOf(field) {
  if (field.kind === "number") return `${field.least} to ${field.most}`;
  const common = field.common.filter(([, n]) => n > 1).slice(0, MOST_VALUES);
  if (!common.length) return h("span", { class: "quiet" }, "each its own");
  return common.map(([value, n], at) => [
    at ? ", " : null,
    shown(value),
    h("span", { class: "quiet" }, ` ${count(n)}`),
  ]);
}

/* The line at the foot of every view: what is searched, how good it was measured to be, whose data it is. */
export function showFoot(place) {
  const facts = known();
  if (!facts) return;
  const figure = headline();
  const recall = indexRecalls();
  const parts = [
    ...facts.sides.map((side) => `${count(side.n_items)} ${side.name}`),
    `${facts.heads} heads`,
    figure ? `${figure.metric} ${figure.value.toFixed(3)} (${directed(figure.direction)}, ${whenMeasured()})` : null,
    recall.length ? `index recall ${Math.min(...recall).toFixed(3)}` : "exact index",
    h("a", { href: "?tab=about", data: { link: "" } }, "About"),
    reportLink(facts, "Report"),
  ];
  fill(
    place,
    h(
      "p",
      {},
      h("b", {}, facts.name),
      parts.filter(Boolean).map((part) => [" · ", part]),
    ),
    facts.attribution ? h("p", {}, facts.attribution) : null,
  );
}
