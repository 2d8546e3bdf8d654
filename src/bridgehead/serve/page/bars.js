/* Bars of shares, drawn with attributes alone: the policy of the page allows no style on an element. They are for the
   eye; the number stands beside each as text. */

import { svg } from "./elements.js";

const NINES = 5;

/* A bar of `share` in [0, 1]; `marks` are shares with a gap, `chance` one with a line of another colour. */
export function bar(share, { marks = [], chance = null } = {}) {
  const at = (value) => (100 * Math.min(Math.max(value, 0), 1)).toFixed(2);
  const look = { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" };
  return svg(
    "svg",
    { ...look, focusable: "false" },
    svg("rect", { class: "ground", width: 100, height: 8 }),
    svg("rect", { class: "value", width: at(share), height: 8 }),
    marks.map((mark) => svg("rect", { class: "tick", x: at(mark), width: 0.8, height: 8 })),
    typeof chance === "number" ? svg("rect", { class: "chance", x: at(chance), width: 0.8, height: 8 }) : null,
  );
}

/* The share of random pairs that are further apart, on a scale where each fifth is ten times rarer: marks at 90, 99,
   99.9 and 99.99 %. On an even scale all hits of a large index would look alike. */
export function percentileBar(percentile) {
  const rare = -Math.log10(Math.max(1 - percentile / 100, 1e-9)) / NINES;
  return bar(rare, { marks: [0.2, 0.4, 0.6, 0.8] });
}

/* A percentile with as many digits as it has nines, never rounded up to what it is not. */
function percent(p) {
  if (p >= 99.999) return "over 99.999";
  const digits = p < 99.9 ? 1 : p < 99.99 ? 2 : 3;
  return (Math.floor(p * 10 ** digits) / 10 ** digits).toFixed(digits);
}

export const percentileText = (p) => `closer than ${percent(p)}\u00a0% of random pairs`;
