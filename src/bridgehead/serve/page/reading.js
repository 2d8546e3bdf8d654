/* How the query was read, and the other ways to read it. */

import { button, fill, h, sentence } from "./elements.js";
import { go } from "./state.js";

const KINDS = { id: "an id", name: "a name", inchikey: "an InChIKey", smiles: "a structure", text: "words" };

/* The explanation without the part that speaks of arguments: the buttons beside it do that. */
export const plain = (explanation) => explanation.replace(/[;,]? ?(pass|leave) read_as[^;]*/g, "").trim();

export function showReading(place, answer, state) {
  if (!answer) return fill(place);
  const { reading } = answer;
  const others = (answer.readings ?? []).filter((kind) => kind !== reading.kind);
  return fill(
    place,
    h(
      "p",
      { class: "reading" },
      h("span", { class: "said" }, sentence(`${plain(reading.explanation)}; searching ${answer.of}`)),
      others.length
        ? h(
            "span",
            { class: "others" },
            "Read it as ",
            others.map((kind) => readButton(kind)),
          )
        : null,
      state.as
        ? h(
            "span",
            { class: "others" },
            button("as it comes", () => go({ as: "" })),
          )
        : null,
    ),
    answer.note ? h("p", { class: "callout" }, sentence(answer.note)) : null,
  );
}

/* Other ways to read a query that was refused as it was asked to be read. */
export const otherWays = (state) =>
  state.as
    ? [
        button("Read it as it comes", () => go({ as: "" }), { class: "main" }),
        state.as === "text" ? null : button("Read it as words", () => go({ as: "text" })),
      ].filter(Boolean)
    : [];

function readButton(kind) {
  return button(KINDS[kind] ?? kind, () => go({ as: kind }));
}
