/* Tables that scroll sideways by themselves where they are too wide. Not about what stands in them. */

import { h } from "./elements.js";

/* A table named `label`. `columns`: a text or [text, class]; `rows`: lists of cells, the first of each its head. */
export function tableOf(label, columns, rows) {
  const heads = columns.map((column) => [column].flat());
  const cell = (content, at) => {
    const look = { class: heads[at][1] };
    return at === 0 ? h("th", { scope: "row", ...look }, content) : h("td", look, content);
  };
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map(([name, look]) => h("th", { scope: "col", class: look }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) => h("tr", {}, row.map(cell))),
      ),
    ),
  );
}
