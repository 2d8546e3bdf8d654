/* Keys: what each does, and whether those of one sign are on. A key never does anything while one types. */

import { byId } from "./elements.js";

const KEPT = "bridgehead.keys";
let on = true;
try {
  on = localStorage.getItem(KEPT) !== "off";
} catch {
  /* on, where nothing may be kept */
}

export const keysAreOn = () => on;
export function setKeys(value) {
  on = value;
  try {
    localStorage.setItem(KEPT, value ? "on" : "off");
  } catch {
    /* holds for this page */
  }
}

const cards = () => [...document.querySelectorAll("#results .card")];
export const cardOf = (element) => element?.closest?.(".card") ?? null;

export function focusCard(card, { preventScroll = false } = {}) {
  if (!card) return;
  cards().forEach((other) => (other.tabIndex = other === card ? 0 : -1));
  card.focus({ preventScroll });
  if (!preventScroll) card.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = cards();
  const at = all.indexOf(cardOf(document.activeElement));
  // From anywhere else, down is the first hit, and up leads to the box.
  if (at < 0) return by > 0 ? focusCard(all[0]) : toBox();
  if (at + by < 0) return toBox();
  focusCard(all[Math.min(at + by, all.length - 1)]);
}

export function toBox() {
  byId("q").focus();
  byId("q").select();
}

const press = (card, name) => card?.querySelector(`[data-does="${name}"]`)?.click();
const LETTERS = { s: "similar", t: "texts", e: "explain", c: "copy" };

/* Start listening; `does` has what belongs to others: showKeys, stop, page(by), toFilters. */
export function listen(does) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (byId("dialog").open || (byId("view-search").hidden && event.key !== "?")) return;
    if (handled(event, does)) event.preventDefault();
  });
}

function handled(event, does) {
  const target = event.target;
  const typing = target.matches("input:not([type=checkbox], [type=radio]), textarea, select");
  const card = cardOf(target);
  if (target.id === "q" && event.key === "ArrowDown") return (step(1), true);
  if (event.key === "Escape") return escape(target, card, does);
  if (typing || (target.matches("input[type=radio]") && event.key.startsWith("Arrow"))) return false;
  if (event.key === "ArrowDown" && (card || target === document.body)) return (step(1), true);
  if (event.key === "ArrowUp" && card) return (step(-1), true);
  if (event.key === "Enter" && target === card) return (card.dispatchEvent(new CustomEvent("all")), true);
  if (!on || event.key.length !== 1) return false;
  return letter(event.key, card, does);
}

function letter(key, card, does) {
  const anywhere = {
    "/": toBox,
    "?": does.showKeys,
    j: () => step(1),
    k: () => step(-1),
    n: () => does.page(1),
    p: () => does.page(-1),
    f: does.toFilters,
  };
  if (Object.hasOwn(anywhere, key)) return (anywhere[key](), true);
  if (card && Object.hasOwn(LETTERS, key)) return (press(card, LETTERS[key]), true);
  return false;
}

function escape(target, card, does) {
  if (does.stop()) return true;
  if (!card) return false;
  const open = card.querySelectorAll('[aria-expanded="true"]');
  if (open.length) {
    open.forEach((button) => button.click());
    focusCard(card);
  } else if (target === card) toBox();
  else focusCard(card);
  return true;
}
