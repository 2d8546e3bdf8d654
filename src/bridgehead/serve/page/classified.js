/* What a classification gave: a bar for each label of each item, and what the answers hang on. Not about asking. */

import { bar } from "./bars.js";
import { copyButton, count, h, score } from "./elements.js";
import { sideOf } from "./facts.js";
import { tableOf } from "./tables.js";

const WARNING =
  "Shares are among these labels alone and no probabilities: leave one out, or add one, and they are others. " +
  "The cosine does not depend on the other labels.";

/* The elements that show an answer of `/classify`. */
export function classifiedParts(found) {
  const n = count(Object.keys(found.candidates).length);
  const title = `${count(found.items.length)} ${found.items_are} items among ${n} labels`;
  const unread = found.unread.map((one) => [h("span", { class: "code" }, one.item || "(empty)"), `: ${one.reason}`]);
  return [
    h(
      "div",
      { class: "results-head" },
      h("h2", { tabindex: -1 }, title),
      copyButton("Copy link", () => location.href, "Link"),
    ),
    h("p", { class: "callout" }, WARNING),
    h(
      "ol",
      { class: "answers" },
      found.items.map((item) => answer(item, found)),
    ),
    listed("Not read", unread),
    listed("Notes", found.notes),
    found.sensitivity.length
      ? h("div", { class: "sheet" }, h("h3", {}, "With other candidates"), moves(found.sensitivity))
      : null,
  ];
}

function listed(title, entries) {
  if (!entries.length) return null;
  return h(
    "div",
    { class: "sheet" },
    h("h3", {}, title),
    h(
      "ul",
      {},
      entries.map((entry) => h("li", {}, entry)),
    ),
  );
}

function answer(item, found) {
  const none = item.answer === null;
  const drawn = sideOf(found.items_are)?.kind === "molecule";
  return h(
    "li",
    { class: "sheet" },
    h("p", { class: drawn ? "item code" : "item" }, item.item),
    h(
      "h3",
      { class: none ? "none" : null },
      item.answer ?? "None of these",
      h("span", { class: "quiet" }, remark(item, found)),
    ),
    shares(item.labels),
  );
}

function remark(item, found) {
  if (item.answer === null) return ` nearest: ${item.labels[0].label}, under the cosine ${score(found.abstain_below)}`;
  return item.n_tied > 1 ? ` tied with ${item.n_tied - 1} more: the first one given is named` : "";
}

function shares(labels) {
  const heads = ["label", "bar", "share among these labels", "cosine"];
  const row = (one) => [
    h("th", { scope: "row" }, one.label),
    h("td", { class: "barcell" }, bar(one.share_among_candidates)),
    h("td", { class: "n strong" }, shareText(one.share_among_candidates)),
    h("td", { class: "n quiet" }, `cosine ${score(one.score)}`),
  ];
  return h(
    "table",
    { class: "shares" },
    h(
      "thead",
      { class: "unseen" },
      h(
        "tr",
        {},
        heads.map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      labels.map((one) => h("tr", {}, row(one))),
    ),
  );
}

// Never rounded to all or to none.
function shareText(share) {
  if (share > 0.9995 && share < 1) return "> 99.9\u00a0%";
  if (share < 0.0005 && share > 0) return "< 0.1\u00a0%";
  return `${(100 * share).toFixed(1)}\u00a0%`;
}

/* How the answers move with another set of candidates: what a claim about them has to be stated with. */
function moves(sensitivity) {
  const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(0)}\u00a0%`);
  const numbers = ["candidates", "other answers", "of those still there", "mean first share"];
  const cells = (one) => [
    one.name,
    count(one.n_candidates),
    percent(one.changed),
    percent(one.changed_of_kept),
    `${one.mean_top_share_before.toFixed(2)} → ${one.mean_top_share_after.toFixed(2)}`,
  ];
  const columns = ["change", ...numbers.map((name) => [name, "n"])];
  return tableOf("Answers with other candidates", columns, sensitivity.map(cells));
}
