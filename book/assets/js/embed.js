// A page that holds one explorer, for a frame in somebody else's page:
//
//   embed.html?explorer=low_rank_map&label=…&state=…&from=chapters/…#low_rank_map=…
//
// `state` is the JSON of what the explorer is given and begins with, `from` the place in the course
// that it was taken from, and what follows # the state of its controls, as in any link of ours.
(function () {
  "use strict";
  const asked = new URLSearchParams(location.search);
  const [name, label, state] = ["explorer", "label", "state"].map((key) => asked.get(key) ?? "");
  const main = document.querySelector("main");
  const from = asked.get("from") ?? "";
  // of this course, and nowhere else
  if (/^[\w/-]+\.html(#[\w-]+)?$/.test(from)) document.querySelector("a").href = from;
  let known = /^[a-z_]+$/.test(name);
  try {
    JSON.parse(state);
  } catch {
    known = false;
  }
  if (!known) {
    main.textContent = "This address names no explorer. Copy it again: press “embed” below one.";
    return;
  }
  document.title = label;
  const host = document.createElement("div");
  const body = document.createElement("div");
  const begins = document.createElement("script");
  host.className = "tfviz-explorer";
  host.role = "group";
  host.ariaLabel = label;
  host.style.containerType = "inline-size";
  Object.assign(host.dataset, { explorer: name, embed: location.href.split("#")[0] });
  begins.type = "application/json";
  begins.textContent = state;
  body.className = "tfviz-explorer-body";
  host.append(begins, body);
  main.replaceChildren(host);
})();
