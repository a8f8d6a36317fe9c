"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
  label();
  for (const drawing of document.querySelectorAll("figure.graphs")) {
    for (const node of drawing.querySelectorAll("[data-pair]")) {
      const both = drawing.querySelectorAll(`[data-pair="${node.dataset.pair}"]`);
      const light = (on) => both.forEach((one) => one.classList.toggle("lit", on));
      node.addEventListener("pointerenter", () => light(true));
      node.addEventListener("pointerleave", () => light(false));
    }
  }
})();
