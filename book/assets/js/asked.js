// A short number that an exercise asks for: answered here, kept with the reader's progress. What a
// typical mistake gives may have words of its own: data-slips='[[number, "what was forgotten"]]'.
(function () {
  "use strict";
  for (const box of document.querySelectorAll(".tf-ask")) {
    const name = `${box.dataset.ask}/asked`,
      is = Number(box.dataset.is),
      near = Number(box.dataset.near),
      slips = JSON.parse(box.dataset.slips ?? "[]");
    const form = document.createElement("form"),
      input = document.createElement("input");
    const button = document.createElement("button"),
      verdict = document.createElement("span");
    Object.assign(input, {
      type: "text",
      inputMode: "decimal",
      autocomplete: "off",
      ariaLabel: box.textContent.trim(),
    });
    Object.assign(button, { type: "submit", textContent: "check" });
    verdict.setAttribute("role", "status");
    form.append(input, button, verdict);
    box.append(form);
    const judge = (said) => {
      const off = Math.abs(said - is);
      if (off <= near + 1e-9) return "✓ so it is";
      const slip = slips.find(([number]) => Math.abs(said - number) <= 0.01 * Math.abs(number));
      if (slip) return `✗ ${slip[1]}`;
      return off <= Math.max(10 * near, 0.1 * Math.abs(is))
        ? "✗ close, but not near enough"
        : "✗ that is not it";
    };
    const kept = { name };
    document.dispatchEvent(new CustomEvent("tfviz:asked", { detail: kept }));
    if (Number.isFinite(kept.said))
      [input.value, verdict.textContent] = [String(kept.said), judge(kept.said)];
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const said = Number(input.value.trim().replace(",", ".").replace("−", "-"));
      if (!input.value.trim() || !Number.isFinite(said)) {
        verdict.textContent = "a number, please";
        input.focus();
        return;
      }
      verdict.textContent = judge(said);
      document.dispatchEvent(new CustomEvent("tfviz:answer", { detail: { name, said } }));
    });
  }
})();
