/* Facets: what can be chosen of each field of the payload, as values or as a range. Each choice is one condition of the
   state; `updates` are called with the state whenever it changed. Not about conditions typed by hand. */

import { between, isOf, oneOf, rangeOf, valuesOf } from "./conditions.js";
import { count, h, submit } from "./elements.js";
import { current, go } from "./state.js";

// Values that occur once are shown only where there are few and short ones.
const FEW = 4;
const SHORT = 60;
const MOST_COMMON = 10;

const replaced = (field, condition) =>
  go({ filter: [...current().filter.filter((one) => !isOf(one, field)), ...(condition ? [condition] : [])] });

/* A field with its values or its range, folded unless `open`. */
export function facet(field, updates, open) {
  const content = field.kind === "number" ? range(field, updates) : values(field, updates);
  const panel = h(
    "details",
    { class: "facet", open },
    h(
      "summary",
      {},
      h("span", { class: "field" }, field.name),
      h("span", { class: "quiet number" }, count(field.n_items)),
    ),
    content,
  );
  updates.push((state) => {
    if (state.filter.some((condition) => isOf(condition, field.name))) panel.open = true;
  });
  return panel;
}

function values(field, updates) {
  const chosen = () =>
    current()
      .filter.map((condition) => valuesOf(condition, field.name))
      .find(Boolean) ?? [];
  const choose = (value, on) => {
    const now = chosen()
      .filter((one) => one !== value)
      .concat(on ? [value] : []);
    replaced(field.name, now.length ? oneOf(field.name, now) : null);
  };
  const isShown = ([value, n]) => n > 1 || (field.common.length < FEW && String(value).length < SHORT);
  const boxes = field.common.filter(isShown).map(([value, n]) => {
    const box = h("input", { type: "checkbox", on: { change: () => choose(value, box.checked) } });
    updates.push(() => (box.checked = chosen().includes(value)));
    return h(
      "label",
      { class: "value", title: String(value) },
      box,
      h("span", { class: "name" }, String(value)),
      h("span", { class: "quiet number" }, count(n)),
    );
  });
  const covered = field.common.reduce((sum, [, n]) => sum + n, 0);
  const whole = field.kind === "boolean" || (covered >= field.n_items && field.common.length < MOST_COMMON);
  return h("div", {}, boxes, whole ? null : another(field, (value) => choose(typed(field, value), true)));
}

/* A value that is not among the common ones. */
function another(field, choose) {
  const box = h("input", {
    type: "text",
    placeholder: "another value",
    "aria-label": `Another value of ${field.name}`,
    autocomplete: "off",
    spellcheck: "false",
  });
  return h(
    "form",
    {
      class: "box",
      on: {
        submit: (event) => {
          event.preventDefault();
          if (box.value.trim()) choose(box.value.trim(), true);
          box.value = "";
        },
      },
    },
    box,
    submit("Add"),
  );
}

// A field of numbers is asked with numbers; a text that reads as one may still be meant as a text.
const typed = (field, text) => (field.kind === "number" && Number.isFinite(Number(text)) ? Number(text) : text);

function range(field, updates) {
  const end = (name, shown) =>
    h("input", { type: "number", step: "any", placeholder: String(shown), "aria-label": `${field.name}, ${name}` });
  const least = end("at least", field.least);
  const most = end("at most", field.most);
  const number = (box) => (box.value.trim() === "" ? null : Number(box.value));
  updates.push((state) => {
    const now = state.filter.map((condition) => rangeOf(condition, field.name)).find(Boolean);
    if (document.activeElement !== least) least.value = now?.least ?? "";
    if (document.activeElement !== most) most.value = now?.most ?? "";
  });
  return h(
    "form",
    {
      class: "box range",
      on: {
        submit: (event) => {
          event.preventDefault();
          replaced(field.name, between(field.name, number(least), number(most)) || null);
        },
      },
    },
    least,
    h("span", { "aria-hidden": "true" }, "to"),
    most,
    submit("Set"),
  );
}

/* Fields that have no facet: a value of one of them, by hand. */
export function further(fields) {
  if (!fields.length) return null;
  const choice = h(
    "select",
    { "aria-label": "Field" },
    fields.map((field) => h("option", { value: field.name }, field.name)),
  );
  const box = h("input", {
    type: "text",
    placeholder: "value",
    "aria-label": "Its value",
    autocomplete: "off",
    spellcheck: "false",
  });
  return h(
    "details",
    { class: "facet" },
    h(
      "summary",
      {},
      h("span", { class: "field" }, "further fields"),
      h("span", { class: "quiet number" }, fields.length),
    ),
    h(
      "form",
      {
        class: "box",
        on: {
          submit: (event) => {
            event.preventDefault();
            if (!box.value.trim()) return;
            replaced(
              choice.value,
              oneOf(choice.value, [
                typed(
                  fields.find((field) => field.name === choice.value),
                  box.value.trim(),
                ),
              ]),
            );
            box.value = "";
          },
        },
      },
      choice,
      box,
      submit("Add"),
    ),
  );
}
