/* An item wherever it is shown: its title, and its structure as a small link to what is similar. Cards are in `card.js`. */

import { h } from "./elements.js";
import { sideOf } from "./facts.js";
import { showPicture } from "./service.js";
import { linkTo } from "./state.js";

export const titleOf = (hit) => hit.name || (sideOf(hit.side)?.kind === "text" ? hit.item : "") || hit.id;

export function smallPicture(id, of, name = null) {
  const image = h("img", { alt: `Structure of ${name ?? `${of} ${id}`}`, loading: "lazy" });
  const link = h(
    "a",
    {
      class: "plate small",
      href: linkTo({ q: id, as: "id", of }),
      data: { link: "" },
      title: `${name ?? id}: similar ones`,
    },
    image,
  );
  image.addEventListener("error", () => link.replaceChildren(h("span", { class: "code" }, id)), { once: true });
  showPicture(image, id, of);
  return link;
}
