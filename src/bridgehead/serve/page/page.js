/* The entry of the page: starts the parts, and shows the view that the address asks for. */

import { showAbout, showFoot } from "./about.js";
import { showClassify } from "./classify.js";
import { showKeys } from "./dialogs.js";
import { byId, fill, h } from "./elements.js";
import { asFault, faultPanel } from "./faults.js";
import { known, load } from "./facts.js";
import { listen, toBox } from "./keys.js";
import { search, stop } from "./searching.js";
import { addressOf, current, go, onChange, start, stateOf } from "./state.js";

const TABS = ["search", "classify", "about"];
const last = {};

function show(state, why) {
  const tabChanged = last.tab !== undefined && last.tab !== state.tab;
  last.tab = state.tab;
  last[state.tab] = state;
  for (const tab of TABS) byId(`view-${tab}`).hidden = tab !== state.tab;
  for (const link of document.querySelectorAll("nav a[data-tab]")) {
    if (link.dataset.tab === state.tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (last[link.dataset.tab]) link.href = addressOf(last[link.dataset.tab]);
  }
  titled(state);
  if (!known()) return;
  if (state.tab === "search") {
    controls(state);
    if (!(tabChanged && why === "tab" && byId("results").hasChildNodes())) search(state, why);
  } else {
    stop();
    if (state.tab === "classify") showClassify(byId("view-classify"), state);
    else showAbout(byId("view-about"));
  }
}

function titled(state) {
  const name = known()?.name ?? "bridgehead";
  const what = state.tab === "search" ? state.q.slice(0, 80) : state.tab === "classify" ? "Classify" : "About";
  document.title = what ? `${what} · ${name}` : name;
}

function controls(state) {
  if (document.activeElement !== byId("q") || byId("q").value.trim() !== state.q.trim()) byId("q").value = state.q;
  byId("of").value = state.of;
  byId("distinct").checked = state.distinct;
  document.querySelectorAll("input[name=mode]").forEach((radio) => (radio.checked = radio.value === state.mode));
}

/* What stands in the box; another text than before is read anew. */
function asked() {
  const q = byId("q").value.trim();
  return q === current().q ? { q } : { q, as: "" };
}

function form() {
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    go(asked());
  });
  // Fields belong to a side: conditions on one mean nothing on another.
  byId("of").addEventListener("change", () => go({ ...asked(), of: byId("of").value, filter: [], sub: "", near: "" }));
  byId("distinct").addEventListener("change", () => go({ ...asked(), distinct: byId("distinct").checked }));
  document
    .querySelectorAll("input[name=mode]")
    .forEach((radio) => radio.addEventListener("change", () => go({ ...asked(), mode: radio.value })));
}

/* Links within the page change its state; with a modifier they open elsewhere, as any link. */
function links() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-link]");
    if (
      !link ||
      event.defaultPrevented ||
      event.button ||
      event.ctrlKey ||
      event.metaKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    event.preventDefault();
    const tab = link.dataset.tab;
    go((tab && last[tab]) ?? stateOf(new URL(link.href).search), tab ? "tab" : "link");
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    const view = byId(`view-${current().tab}`);
    (view.querySelector("#results-title") ?? view.querySelector("h2, #results"))?.focus();
  });
}

function theme() {
  const NAMES = { "": "System", light: "Light", dark: "Dark" };
  const root = document.documentElement;
  const button = byId("theme");
  const label = () => fill(button, h("span", { class: "prefix" }, "Theme: "), NAMES[root.dataset.theme ?? ""]);
  button.addEventListener("click", () => {
    const next = { "": "light", light: "dark", dark: "" }[root.dataset.theme ?? ""];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    try {
      localStorage.setItem("bridgehead.theme", next);
    } catch {
      /* holds for this page */
    }
    label();
  });
  label();
}

function page(by) {
  byId(by > 0 ? "next" : "before")?.click();
}

function toFilters() {
  const panel = byId("filters").querySelector("details");
  if (!panel || byId("filters").hidden) return;
  panel.open = true;
  byId("where").focus();
}

/* Ask what is being served; nothing can be shown without it. */
async function begin() {
  try {
    const facts = await load();
    byId("space-name").textContent = facts.name;
    fill(
      byId("of"),
      h("option", { value: "" }, "automatic"),
      facts.sides.map((side) => h("option", { value: side.name }, side.name)),
    );
    showFoot(byId("foot"));
    show(current(), "start");
  } catch (error) {
    const place = { search: "results", classify: "view-classify", about: "view-about" }[current().tab];
    fill(byId(place), faultPanel(asFault(error), begin));
  }
}

theme();
form();
links();
listen({ showKeys, stop, page, toFilters });
byId("show-keys").addEventListener("click", showKeys);
onChange(show);
start();
begin();
if (current().tab === "search" && !current().q && window.matchMedia("(pointer: fine)").matches) toBox();
