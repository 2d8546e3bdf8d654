/* Elements of the page, made without markup: every text enters as a text node, so nothing that the service returns can
   become an element, an attribute that runs, or a style. Not about what is shown. */

const SVG = "http://www.w3.org/2000/svg";

function put(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, does] of Object.entries(value)) element.addEventListener(event, does);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else if (/^(on|style$|srcdoc$)/.test(name)) throw new TypeError(`${name} is not set on elements`);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/* An element with properties (attributes, and `on`, `data`, `value`) and children (elements, texts; null is left out). */
export function h(name, properties = {}, ...children) {
  return put(document.createElement(name), properties, children);
}

export function svg(name, properties = {}, ...children) {
  return put(document.createElementNS(SVG, name), properties, children);
}

export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

export const byId = (id) => document.getElementById(id);

export function count(number) {
  return Number(number).toLocaleString("en-US");
}

/* A cosine or score with digits that line up, and a true minus sign; scores of words go beyond 10. */
export function score(value, digits = 3) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  return value.toFixed(Math.abs(value) >= 10 ? 1 : digits).replace("-", "\u2212");
}

/* A value of a payload as one text: lists with semicolons, objects as JSON. */
export function shown(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(shown).join("; ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function shortened(text, most) {
  const letters = Array.from(text);
  return letters.length <= most
    ? text
    : `${letters
        .slice(0, most - 1)
        .join("")
        .trimEnd()}…`;
}

/* A text of the service as a sentence: a great letter first, a stop at the end. */
export function sentence(text) {
  const clean = text.trim();
  return clean ? `${clean[0].toUpperCase()}${clean.slice(1)}${/[.!?…]$/.test(clean) ? "" : "."}` : "";
}

/* Say a sentence to screen readers; the same sentence twice is said twice. */
export function say(sentence) {
  const region = byId("said");
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = sentence));
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without a secure context there is no clipboard object: the old way still works.
    const field = h("textarea", { class: "unseen", "aria-hidden": "true" });
    field.value = text;
    const before = document.activeElement;
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    before?.focus();
    return done;
  }
}

export const button = (label, click, properties = {}) =>
  h("button", { type: "button", ...properties, on: { click } }, label);

export const submit = (label, properties = {}) => h("button", { type: "submit", ...properties }, label);

export const quiet = (...children) => h("p", { class: "quiet" }, ...children);

/* A button that copies `text` when pressed and says so in its place. */
export function copyButton(label, text, what) {
  const copier = button(label, async () => {
    const done = await copy(typeof text === "function" ? text() : text);
    say(done ? `${what} copied` : `${what} could not be copied`);
    copier.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => (copier.textContent = label), 1600);
  });
  return copier;
}
