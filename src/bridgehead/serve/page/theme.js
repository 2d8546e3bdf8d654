/* Light or dark, before the first paint: the choice that was kept, or what the system prefers. Not a module, so that it
   runs before the body is shown. The button that changes it is in `page.js`. */
"use strict";
(() => {
  try {
    const kept = localStorage.getItem("bridgehead.theme");
    if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  } catch {
    // Storage may be forbidden; the system's preference holds then.
  }
})();
