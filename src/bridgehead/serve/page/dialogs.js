/* The one dialog of the page: the keys, and a structure in large. Opening gives it the focus, closing gives the focus
   back; both are the browser's own. Not about what keys do. */

import { button, byId, copyButton, fill, h } from "./elements.js";
import { keysAreOn, setKeys } from "./keys.js";
import { showPicture } from "./service.js";

function open(title, ...content) {
  const dialog = byId("dialog");
  if (dialog.open) dialog.close();
  fill(
    dialog,
    h(
      "div",
      { class: "dialog-head" },
      h("h2", { id: "dialog-title" }, title),
      button("×", () => dialog.close(), { class: "plain", "aria-label": "Close" }),
    ),
    ...content,
  );
  // A click on the ground around it; a handler that returned false would undo clicks inside.
  dialog.onclick = (event) => void (event.target === dialog && dialog.close());
  dialog.showModal();
}

const KEYS = [
  [
    "Anywhere",
    [
      [["/"], "to the search box"],
      [["?"], "show these keys"],
      [["j", "↓"], "next hit"],
      [["k", "↑"], "hit before"],
      [["n"], "next ten"],
      [["p"], "ten before"],
      [["f"], "to the filters"],
      [["Esc"], "close what is open; from a hit to the search box; stop a search that runs"],
    ],
  ],
  [
    "On a hit",
    [
      [["Enter"], "open or close all about it"],
      [["s"], "similar ones"],
      [["t"], "its texts, or its structures"],
      [["e"], "explain why it is here"],
      [["c"], "copy its SMILES or text"],
      [["Tab"], "to its buttons"],
    ],
  ],
];

export function showKeys() {
  const box = h("input", {
    type: "checkbox",
    role: "switch",
    checked: keysAreOn(),
    on: { change: () => setKeys(box.checked) },
  });
  open(
    "Keys",
    h(
      "div",
      { class: "two" },
      KEYS.map(([title, rows]) =>
        h(
          "div",
          {},
          h("h3", {}, title),
          h(
            "dl",
            { class: "keys" },
            rows.map(([keys, does]) => [
              h(
                "dt",
                {},
                keys.map((key, at) => [at ? " or " : null, h("kbd", {}, key)]),
              ),
              h("dd", {}, does),
            ]),
          ),
        ),
      ),
    ),
    h("label", { class: "option switch" }, box, h("span", {}, "Keys of a single letter or sign are on")),
    h("p", { class: "quiet" }, "Off, arrows, Tab, Enter and Esc still work."),
  );
}

export function showStructure(hit, title) {
  const image = h("img", { class: "large", alt: `Structure of ${title}` });
  image.addEventListener("error", () => image.replaceWith(h("p", { class: "quiet" }, "It cannot be drawn.")), {
    once: true,
  });
  showPicture(image, hit.id, hit.side);
  open(
    title,
    h("div", { class: "plate" }, image),
    h("p", { class: "code" }, hit.item),
    h("div", { class: "actions" }, copyButton("Copy SMILES", hit.item, "SMILES")),
  );
}
