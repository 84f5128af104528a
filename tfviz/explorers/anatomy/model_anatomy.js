// A public model, or a pasted configuration, from its name to its parts.
const { el, count, clamp } = tf;
const tell = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};
const { lessons: LESSONS, readings: READINGS, most: LONGEST } = tf.data;
const anatomy = anatomyOf({ models: tf.data.models, families: tf.data.families });
const PARTS = ["embedding", "position", "attention", "state", "feed", "norm", "head", "other"];
const GHOSTS = ["seeing_all", "with_every_head"];
const [SHORTEST, FURTHEST] = [256, 2 ** 20]; // the ends of the slider
const CELLS = 40; // of a mask that is drawn, to scale
const ENDLESS = 2 ** 30; // tokens that `longest` gives where a model names no longest text
const ROOMY = 15; // cells of a stack in which words have room

// --- what is shown: {a, error}
const known = new Map();
function modelOf(id) {
  if (!known.has(id)) known.set(id, anatomy.of(id));
  return known.get(id);
}
let pasted = ["", null];
function readOf(text) {
  if (pasted[0] !== text) pasted = [text, anatomy.read(text)];
  return pasted[1];
}
const shownOf = ({ model, config }) => (config ? readOf(config) : modelOf(model));

// What is counted; nothing where it is refused, with reasons that the page says.
function orNothing(counted) {
  try {
    return counted();
  } catch {
    return [];
  }
}
const bitsOf = ({ batch, bits, cache_bits, state_bits }) => ({
  batch,
  bits,
  cache_bits,
  state_bits,
});
const cacheOf = (a, { L, batch, cache_bits, state_bits }) =>
  a.cache(L, { batch, bits: cache_bits, state_bits });
const ghosts = new WeakMap();
function ghostsOf(a) {
  if (!ghosts.has(a))
    ghosts.set(
      a,
      GHOSTS.map((name) => a[name]()),
    );
  return ghosts.get(a);
}
const countsOf = (a, state) =>
  [
    () => {
      const { total, active, low, high, by_part } = a.parameters;
      return [total, active, low, high, ...PARTS.map((part) => by_part[part])];
    },
    () => Object.values(cacheOf(a, state).parts),
    () => [a.convolutions({ batch: state.batch, bits: state.cache_bits })],
    ...[0, 1].map((n) => () => [cacheOf(ghostsOf(a)[n], state).total]),
    () => [a.longest(anatomy.CARDS[state.card].memory, bitsOf(state))],
    ...["prefill", "decode"].map((phase) => () => {
      const p = a.point(phase, state.card, { L: state.L, ...bitsOf(state) });
      return [p.operations, p.bytes, p.seconds];
    }),
  ].map(orNothing);
const [PARAMETERS, CACHE, SHORT, ALL_FULL, EVERY_HEAD, LONG, PREFILL, DECODE] = tf.range(8);

// --- words
const units = (n, names, step) => {
  let k = 0;
  while (n >= 0.9995 * step && k < names.length - 1) {
    n /= step;
    k++;
  }
  return `${n >= 999.5 ? count(n) : k ? n.toPrecision(3) : tf.sig(n)}${names[k] && `\u00a0${names[k]}`}`;
};
const many = (n) => units(n, ["", "k", "M", "B", "T"], 1000);
const work = (n) => units(n, ["", "k", "M", "G", "T", "P", "E", "Z"], 1000).replace(/$/, "FLOP");
const time = (s) =>
  s < 1 ? units(s * 1e6, ["µs", "ms"], 1000) : s < 120 ? `${tf.sig(s)} s` : `${tf.sig(s / 60)} min`;
const tokens = (L) =>
  L >= 2 ** 20 && L % 2 ** 18 === 0
    ? `${L / 2 ** 20}M`
    : L >= 1024 && L % 512 === 0
      ? `${L / 1024}k`
      : count(L);
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const NAMED = {
  half: 2,
  third: 3,
  quarter: 4,
  fifth: 5,
  sixth: 6,
  seventh: 7,
  eighth: 8,
  tenth: 10,
};
function shareOf(part, whole) {
  const times = whole / part;
  for (const [name, n] of Object.entries(NAMED))
    if (Math.abs(times / n - 1) < 0.06) return `${n === 8 ? "an" : "a"} ${name} of what`;
  return times > 10 ? `${tf.sig(times, 2)} times less than` : `${tf.percent(part / whole)} of what`;
}
const joined = (list) =>
  list.length > 1 ? `${list.slice(0, -1).join(", ")} and ${list.at(-1)}` : (list[0] ?? "");

// --- layers
const kindOf = ({ mixer }) =>
  mixer === "latent" || mixer.includes("note")
    ? "note"
    : ["full", "both ways"].includes(mixer)
      ? "full"
      : /window|chunk/.test(mixer)
        ? "near"
        : ["none", "not known"].includes(mixer)
          ? "none"
          : "state";
const shortOf = ({ mixer, reach }) => {
  if (mixer === "latent") return "latent";
  if (mixer === "none") return "no mixer";
  const name = mixer.replace("delta rule, a gate for each feature", "delta rule");
  return (
    name.split(",")[0].replace("gated ", "").replace(" attention", "") +
    (reach ? ` ${tokens(reach)}` : "")
  );
};
const FORMULAS = {
  full: "softmax(𝐐𝐊ᵀ/√dₕ)𝐕",
  near: "softmax(𝐐𝐊ᵀ/√dₕ)𝐕",
  note: "𝐊 = 𝐂𝐖_k, 𝐕 = 𝐂𝐖_v",
  "gated delta rule": "𝐒ₜ = gₜ𝐒ₜ₋₁(𝐈 − βₜ𝐤ₜ𝐤ₜᵀ) + βₜ𝐯ₜ𝐤ₜᵀ",
  "delta rule, a gate for each feature": "𝐒ₜ = 𝐒ₜ₋₁𝐆ₜ(𝐈 − βₜ𝐤ₜ𝐤ₜᵀ) + βₜ𝐯ₜ𝐤ₜᵀ",
  state: "𝐒ₜ = gₜ 𝐒ₜ₋₁ + 𝐯ₜ𝐤ₜᵀ",
  none: "",
};
const formulaOf = (layer) => FORMULAS[layer.mixer] ?? FORMULAS[kindOf(layer)];
const allowed = ({ mask }, i, j) =>
  mask.every(([name, options]) => tf.data[`mask_${name}`](i, j, ...Object.values(options)));
const readingOf = ({ mask }) =>
  mask
    .map(([name, options]) =>
      Object.entries(options).reduce(
        (text, [key, value]) => text.replaceAll(key, count(value)),
        READINGS[name],
      ),
    )
    .join(" and ");

// Runs of layers that repeat, in the fewest cells: [{start, period, times}, …]
function foldedOf(layers) {
  const keys = layers.map((x) =>
    JSON.stringify([x.mixer, x.reach, x.positions, x.feed, x.borrows !== null, x.parameters]),
  );
  const n = keys.length;
  const best = [{ cost: 0, runs: [] }]; // from the end
  for (let start = n - 1; start >= 0; start--) {
    let top = null;
    for (let period = 1; period <= Math.min(16, n - start); period++) {
      let end = start + period;
      while (end < n && keys[end] === keys[end - period]) end++;
      const times = Math.floor((end - start) / period);
      if (times < 2 && period > 1) continue;
      const rest = best[n - start - period * times];
      const cost = period + (times > 1 ? 0.5 : 0) + rest.cost;
      if (!top || cost < top.cost) top = { cost, runs: [{ start, period, times }, ...rest.runs] };
    }
    best.push(top);
  }
  return best[n].runs;
}
const placesOf = ({ start, period, times }, k) => tf.range(times, (m) => start + k + m * period);
function whichOf(places) {
  if (places.length < 4) return `${places.length > 1 ? "layers" : "layer"} ${joined(places)}`;
  const step = places[1] - places[0];
  return step === 1
    ? `layers ${places[0]} to ${places.at(-1)}`
    : `layers ${places.slice(0, 2).join(", ")}, … ${places.at(-1)}`;
}

// --- mechanisms, with this model's numbers
const statesOf = (f) => Object.values(f.states ?? {});
const headsOf = (a) => a.layers.find((x) => x.heads)?.heads;
const windowsOf = (a) =>
  [...new Set(a.layers.filter((x) => x.reach).map((x) => count(x.reach)))].join(", ");
const howMany = (a, test) => a.layers.filter(test).length;
const ropes = (f) => Object.values(f.rope ?? {});
const TOLD = {
  token_embedding: (f) =>
    `${count(f.vocabulary)} × ${count(f.table_width ?? f.width)}${f.tied ? ", also reads out" : ""}`,
  learned_pe: (f) => f.position_rows && `${count(f.position_rows)} rows`,
  rope: (f) => {
    const bases = [...new Set(ropes(f).map((x) => count(x.base)))];
    return `base ${joined(bases)}`;
  },
  rope_scaling: (f) => {
    const scaled = ropes(f).find((x) => x.scaling);
    return scaled && `${scaled.scaling}${scaled.factor ? `, factor ${scaled.factor}` : ""}`;
  },
  partial_rope: (f) =>
    f.latent
      ? `${f.latent.turned} of ${f.latent.turned + f.latent.unturned} features turn`
      : ropes(f).some((x) => x.partial) &&
        `${tf.percent(ropes(f).find((x) => x.partial).partial)} of a head turns`,
  nope_layers: (f, a) =>
    plural(
      howMany(a, (x) => x.positions === "none"),
      "layer",
    ),
  multi_head_attention: (f, a) =>
    headsOf(a) && `${headsOf(a).queries} heads of ${headsOf(a).key_width}`,
  grouped_query_attention: (f, a) =>
    `${headsOf(a).queries} query heads share ${headsOf(a).keys} KV heads`,
  multi_query_attention: (f, a) => `${headsOf(a).queries} query heads share 1 KV head`,
  latent_attention: (f) =>
    `${count(f.latent.note)} + ${f.latent.turned} numbers a token, for ${f.latent.heads} heads`,
  decoupled_head_size: (f, a) =>
    `${headsOf(a).queries} × ${headsOf(a).key_width} = ${count(headsOf(a).queries * headsOf(a).key_width)}, width ${count(f.width)}`,
  shared_layer_cache: (f) => `the last ${f.borrowers} layers keep no keys of their own`,
  local_global_layers: (f, a) =>
    `${howMany(a, (x) => x.reach)} see ${windowsOf(a)} tokens, ${howMany(a, (x) => ["full", "both ways"].includes(x.mixer))} see all`,
  atomic_patterns: (f, a) => `${windowsOf(a)} tokens`,
  lightning_indexer: (f) => {
    const x = f.latent ?? f.compressed;
    return `${x.index_heads} heads choose ${count(x.index_keys)} keys`;
  },
  bounded_scores: (f) =>
    joined(
      [
        f.attention?.qk_norm && "queries and keys are normalized",
        f.score_cap && `scores capped at ${f.score_cap}`,
        f.logit_cap && `logits at ${f.logit_cap}`,
      ].filter(Boolean),
    ),
  gated_linear_attention: (f) => joined(statesOf(f).map((x) => x.kind)),
  delta_rule: (f) => joined(statesOf(f).map((x) => x.kind)),
  hybrid_layers: (f, a) =>
    `${howMany(a, (x) => kindOf(x) === "state")} with a state, ${howMany(a, (x) => x.heads)} with attention`,
  pointwise_mlp: (f) =>
    f.feed_width &&
    `${count(f.width)} → ${count(f.feed_width)}${/[gs]?e?[rsg][ei]lu/.test(f.activation) ? `, ${f.activation.match(/[a-z]*lu/)[0]}` : ""}`,
  mixture_of_experts: (f) =>
    `${f.experts.chosen} of ${f.experts.count}, each ${count(f.experts.width)} wide${f.experts.shared ? `, and ${count(f.experts.shared)} always` : ""}`,
  layer_norm_pre_post: (f) =>
    `${{ rms: "RMSNorm", none: "nothing learned" }[f.norm ?? "rms"] ?? "LayerNorm"}, ${f.place ?? "pre"}`,
  speculative_decoding: (f) => `${plural(f.drafts, "layer")} ahead`,
};

// --- names that are near to what is typed
const bare = (text) => text.toLowerCase().replace(/[^a-z0-9.]/g, "");
const pairs = (text) =>
  new Set(tf.range(Math.max(1, text.length - 1), (k) => text.slice(k, k + 2)));
function ranked(query) {
  const listed = anatomy.names(true);
  const rest = anatomy.names().filter((id) => !listed.includes(id));
  const wanted = bare(query);
  const all = [...[...listed].reverse(), ...[...rest].reverse()];
  if (!wanted) return { near: false, ids: all, listed: listed.length };
  const words = query.toLowerCase().split(/\s+/).map(bare).filter(Boolean);
  const scored = all.map((id, place) => {
    const texts = [bare(id), bare(modelOf(id).name)];
    const starts = texts.some((text) => text.startsWith(wanted));
    const holds = texts.some((text) => words.every((word) => text.includes(word)));
    const alike = Math.max(
      ...texts.map((text) => {
        const [one, other] = [pairs(wanted), pairs(text)];
        const both = [...one].filter((x) => other.has(x)).length;
        return (2 * both) / (one.size + other.size);
      }),
    );
    return { id, score: (starts ? 3 : 0) + (holds ? 2 : 0) + alike, holds: starts || holds, place };
  });
  const found = scored.filter((x) => x.holds);
  const some = (found.length ? found : scored).sort(
    (x, y) => y.score - x.score || x.place - y.place,
  );
  return { near: !found.length, ids: some.slice(0, found.length || 5).map((x) => x.id) };
}

// A field with a list of names: typed into, moved in and chosen from by keys.
function finder(app, /** @type {any} */ { key, label, hint, into, large, take, text }) {
  const id = app.id(key);
  const list = el("ul", { className: "ma-list", role: "listbox", id: `${id}-list`, hidden: true });
  list.setAttribute("aria-label", "models");
  const input = el("input", { type: "text", id, autocomplete: "off", spellcheck: false });
  input.placeholder = hint;
  input.dataset.lmSuppressShortcuts = "true";
  for (const [name, value] of Object.entries({
    role: "combobox",
    "aria-expanded": "false",
    "aria-controls": list.id,
    "aria-autocomplete": "list",
  }))
    input.setAttribute(name, value);
  const clear = el(
    "button",
    { type: "button", className: "ma-clear", ariaLabel: `clear: ${label}` },
    "×",
  );
  const box = el(
    "div",
    { className: "ma-find" },
    el("label", { htmlFor: id }, label),
    input,
    clear,
    list,
  );
  box.toggleAttribute("data-large", Boolean(large));
  into.append(box);
  let options = [];
  let at = -1;
  const mark = (n) => {
    options[at]?.setAttribute("aria-selected", "false");
    at = n;
    options[at]?.setAttribute("aria-selected", "true");
    if (options[at]) {
      input.setAttribute("aria-activedescendant", options[at].id);
      options[at].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    at = -1;
  };
  const open = (query) => {
    const { near, ids, listed } = ranked(query);
    const entry = (model) => {
      const a = modelOf(model);
      const about = `${many(a.parameters.total)} · ${a.year}`;
      const props = { role: "option", id: `${id}-list-${model}`, "aria-selected": "false" };
      const node = el("li", props, el("span", {}, a.name), el("span", {}, about));
      node.dataset.model = model;
      return node;
    };
    const heading = (words) => el("li", { role: "presentation" }, words);
    options = ids.map(entry);
    const rows = [...options];
    if (near) rows.unshift(heading("No model has this name. The nearest:"));
    if (listed) rows.splice(listed, 0, heading("more models"));
    list.replaceChildren(...rows);
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    at = -1;
    if (query) mark(0);
  };
  const choose = (model) => {
    close();
    take(model);
    input.value = text();
  };
  const typed = () => (input.value === text() ? "" : input.value);
  input.addEventListener("focus", () => {
    input.select();
  });
  input.addEventListener("click", () => open(typed()));
  input.addEventListener("input", () => open(input.value));
  input.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    if (event.key in moves) {
      event.preventDefault();
      if (list.hidden) open(typed());
      mark(
        at < 0
          ? moves[event.key] > 0
            ? 0
            : options.length - 1
          : clamp(at + moves[event.key], 0, options.length - 1),
      );
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (input.value.trim().startsWith("{")) take(input.value);
      else if (!list.hidden && options[at]) choose(options[at].dataset.model);
    } else if (event.key === "Escape") {
      if (!list.hidden) event.stopPropagation();
      close();
      input.value = text();
    } else return;
  });
  input.addEventListener("paste", (event) => {
    const data = event.clipboardData?.getData("text") ?? "";
    if (!data.trim().startsWith("{")) return;
    event.preventDefault();
    close();
    take(data);
    input.value = text();
  });
  input.addEventListener("blur", () => {
    close();
    input.value = text();
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) choose(option.dataset.model);
  });
  clear.addEventListener("click", () => {
    input.value = "";
    if (key === "beside") {
      take("");
      input.focus();
    } else {
      input.focus();
      open("");
    }
  });
  const update = () => {
    if (document.activeElement !== input || list.hidden) input.value = text();
    clear.hidden = !input.value;
  };
  return { input, update };
}

// The root of the book, where links lead; "" in a notebook or a saved file.
function bookOf() {
  const script = document.querySelector('script[src*="js/tfviz-page.js"]');
  return script
    ? /** @type {HTMLScriptElement} */ (script).src.replace(/_static\/js\/.*$/, "")
    : "";
}

export default tf.explorer({
  // What a link brings: models that are known, a configuration that can be read.
  fit(values) {
    const fine = { ...values };
    const tries = {
      model: (id) => modelOf(id),
      beside: (id) => id && modelOf(id),
      config: (text) => text && readOf(text),
      layer: (n) => {
        if (!(Number.isInteger(n) && n >= 0)) throw new Error("no layer");
      },
    };
    for (const [name, check] of Object.entries(tries)) {
      try {
        if (name in fine) check(fine[name]);
      } catch {
        delete fine[name];
      }
    }
    return fine;
  },
  numbers(state) {
    const a = shownOf(state);
    const both = [a, ...(state.beside ? [modelOf(state.beside)] : [])];
    return {
      layer: Math.min(state.layer, a.layers.length - 1),
      layers: a.layers.map((x) => x.parameters),
      kept: a.layers.map((x) => (a.refused ? 0 : a.cache_of(x.n, state.L))),
      models: both.map((one) => countsOf(one, state)),
    };
  },
  setup(app) {
    // --- above: what is typed and moved
    const top = el("div", { className: "ma-top" });
    const wrong = el("p", { className: "ma-wrong", role: "status" });
    const refuse = (message) => {
      wrong.textContent = message;
    };
    const take = (text) => {
      const config = text.trim().startsWith("{") ? text : "";
      try {
        if (config.length > LONGEST)
          throw new Error(
            `config has ${count(config.length)} characters; paste at most ${count(LONGEST)}: remove its entry id2label`,
          );
        const a = config ? readOf(config) : modelOf(text);
        const context = a.fields.context || Number.POSITIVE_INFINITY;
        /** @type {any} */
        const changes = { config, ...(config ? {} : { model: text }) };
        const { L } = app.all();
        const whole = shownOf(app.all()).fields.context === L; // as long as the last one is made for
        if (Number.isFinite(context) && (whole || L > context)) changes.L = context;
        changes.layer = Math.max(
          0,
          a.layers.findLastIndex((x) => kindOf(x) === "full"),
        );
        app.set(changes);
        refuse("");
        return true;
      } catch (error) {
        refuse(error.message);
        return false;
      }
    };
    const name = () => {
      const a = shownOf(app.all());
      return app.get("config") ? `config.json: ${a.name}` : a.name;
    };
    const first = finder(app, {
      key: "model",
      label: "model: type a name",
      hint: "such as Qwen3 or DeepSeek",
      into: top,
      large: true,
      take,
      text: name,
    });
    const second = finder(app, {
      key: "beside",
      label: "compare with",
      hint: "a second model",
      into: top,
      take: (id) => app.set("beside", id),
      text: () => (app.get("beside") ? modelOf(app.get("beside")).name : ""),
    });
    const paste = el("div", { className: "ma-paste", hidden: true });
    const toggle = app.button(
      "paste a config.json",
      () => {
        paste.hidden = !paste.hidden;
        toggle.setAttribute("aria-expanded", String(!paste.hidden));
        if (!paste.hidden) area.focus();
      },
      { into: top },
    );
    toggle.setAttribute("aria-expanded", "false");
    const area = el("textarea", { id: app.id("config"), spellcheck: false, placeholder: "{ … }" });
    area.dataset.lmSuppressShortcuts = "true";
    const words = "config.json: read in this page, never executed, never sent";
    paste.append(el("label", { htmlFor: area.id }, words), area);
    app.button(
      "take it apart",
      () => {
        const text = area.value.trim();
        if (!text.startsWith("{"))
          refuse("What you pasted does not begin with {. Paste the whole file.");
        else if (take(text)) toggle.click();
      },
      { into: paste },
    );
    top.append(el("div", { className: "ma-drop" }, paste, wrong));
    app.questions.after(top);
    top.after(app.controls);
    app.controls.after(app.status);
    app.knob("L", { format: tokens });
    app.knob("batch", { format: count });
    for (const key of ["bits", "cache_bits", "state_bits"]) app.knob(key, { as: "select" });
    app.knob("card", { as: "select" });

    // --- below: three columns
    const columns = app.split("17rem minmax(0, 1fr) 18rem");
    columns.classList.add("ma-columns");
    const left = el("div", { className: "ma-left" });
    columns.append(left);
    const middle = app.split("minmax(0, 1fr)", { into: columns });
    const right = el("div", { className: "ma-right" });
    columns.append(right);
    const title = (text, into) => {
      const node = el("p", { className: "ma-name" }, text);
      into.append(node);
      return node;
    };

    const stackName = title("", left);
    const body = el("div", { className: "ma-body" });
    const stack = el("div", { className: "ma-stack", role: "listbox", tabIndex: 0 });
    stack.setAttribute("aria-label", "layers, the first one on top");
    stack.dataset.lmSuppressShortcuts = "true";
    const about = el("div", { className: "ma-layer" });
    const which = el("p", { className: "ma-which" });
    about.append(which);
    const mask = app.matrix({ tall: 108, into: about, bare: true, lead: false, most: 4 });
    const formula = el("div");
    const facts = el("div", { className: "ma-facts" });
    about.append(formula);
    body.append(stack, about);
    left.append(body, facts);
    const table = app.table({ columns: ["counted", "", ""], widths: ["7.25rem"], into: left });

    let cells = []; // {node, places}
    let peek; // the layer that is pointed at
    const look = (layer) => {
      if (layer === peek) return;
      peek = layer;
      app.redraw("peek");
    };
    const cellOf = (event) => cells.find(({ node }) => node === event.target.closest(".ma-cell"));
    stack.addEventListener("pointerover", (event) => look(cellOf(event)?.places[0]));
    stack.addEventListener("pointerleave", () => look(undefined));
    stack.addEventListener("click", (event) => {
      const cell = cellOf(event);
      if (cell) app.set("layer", cell.places[0]);
    });
    stack.addEventListener("keydown", (event) => {
      const to = tf.keyed(
        event,
        [cells.findIndex((x) => x.node.ariaSelected === "true"), 0],
        cells.length,
        1,
      );
      if (!to) return;
      look(undefined);
      app.set("layer", cells[to[0]].places[0]);
      app.settle();
    });
    let stacked;
    function showStack(a, layer) {
      if (stacked !== a) {
        stacked = a;
        const runs = foldedOf(a.layers);
        const total = tf.sum(runs.map((x) => x.period));
        const dense = total > ROOMY;
        cells = [];
        stack.toggleAttribute("data-dense", dense);
        stack.style.setProperty("--ma-touch", dense ? "14px" : "44px");
        stack.replaceChildren(
          ...runs.map((run) => {
            const nodes = tf.range(run.period, (k) => {
              const one = a.layers[run.start + k];
              const places = placesOf(run, k);
              const node = el("div", {
                className: "ma-cell",
                role: "option",
                id: app.id(`layer-${run.start + k}`),
              });
              node.dataset.kind = kindOf(one);
              node.setAttribute("aria-label", `${whichOf(places)}: ${shortOf(one)}`);
              if (!dense) node.append(shortOf(one));
              cells.push({ node, places });
              return node;
            });
            const times = el(
              "div",
              { className: "ma-times", ariaHidden: "true" },
              run.times > 1 ? `×${run.times}` : "",
            );
            const inner = el("div", { className: "ma-cells", role: "presentation" }, ...nodes);
            const root = el("div", { className: "ma-run", role: "presentation" }, inner, times);
            root.toggleAttribute("data-many", run.times > 1);
            root.style.flex = `${run.period} 1 0`;
            root.style.maxHeight = `${run.period * (total > 3 ? 2.8 : 4.4)}rem`;
            return root;
          }),
        );
      }
      for (const { node, places } of cells) {
        const mine = places.includes(layer);
        node.setAttribute("aria-selected", String(mine));
        if (mine) stack.setAttribute("aria-activedescendant", node.id);
      }
    }

    // --- the middle: weights, cache, roofline
    const weights = el("div");
    const weightsName = title("", weights);
    const bars = el("div", { className: "ma-bars", role: "img" });
    const parts = el("p", { className: "ma-parts" });
    weights.append(bars, parts);
    middle.append(weights);
    const grows = app.plane({ height: () => 190, into: middle, lead: true });
    const roof = app.plane({ height: () => 150, into: middle, lead: false });
    const barOf = (counts, width, ghost) => {
      const [total, active, , , ...by] = counts;
      const bar = el("div", { className: "ma-bar" });
      bar.toggleAttribute("data-ghost", ghost);
      bar.style.width = `${100 * width}%`;
      const idle = total - active;
      by.forEach((n, k) => {
        const pieces = PARTS[k] === "feed" ? [n - idle, idle] : [n];
        pieces.forEach((piece, m) => {
          if (!piece) return;
          const share = piece / total;
          const part = el("span", {
            className: "ma-part",
            title: `${PARTS[k]}${m ? ", not used by a token" : ""}: ${many(piece)}`,
          });
          part.dataset.part = PARTS[k];
          part.toggleAttribute("data-idle", m === 1);
          part.style.width = `${100 * share}%`;
          const text = m ? "idle experts" : PARTS[k];
          const room = share * width * (weights.clientWidth || 340);
          if (!ghost && room > 7 * text.length + 12) part.append(text);
          else part.toggleAttribute("data-small", true);
          bar.append(part);
        });
      });
      return bar;
    };

    // --- the right: mechanisms
    const lessonsName = title("", right);
    const lessonList = el("div", { className: "ma-lessons", tabIndex: 0, role: "region" });
    lessonList.setAttribute("aria-label", "mechanisms in the order of the forward pass");
    const guess = el("p", { className: "ma-guess", hidden: true });
    right.append(guess, lessonList);
    const book = bookOf();
    let taught;
    function showLessons(a) {
      if (taught === a) return;
      taught = a;
      const linked = (id) => {
        const [label, address] = LESSONS[id];
        if (book && address) return el("a", { href: `${book}${address}` }, label);
        return el(
          "b",
          {},
          label,
          address ? "" : el("span", { className: "ma-told" }, " (no lesson yet)"),
        );
      };
      const stages = new Map();
      for (const id of a.uses) {
        const stage = LESSONS[id][2];
        stages.set(stage, [...(stages.get(stage) ?? []), id]);
      }
      const rows = [];
      for (const [stage, ids] of stages) {
        const said = ids.map((id) => [id, orNothing(() => TOLD[id]?.(a.fields, a) || [])]);
        const own = said.filter(([, text]) => text.length);
        const plain = said.filter(([, text]) => !text.length).map(([id]) => linked(id));
        const items = own.map(([id, text]) =>
          el("li", {}, linked(id), el("span", { className: "ma-told" }, `: ${text}`)),
        );
        if (plain.length)
          items.push(
            el("li", {}, ...plain.flatMap((node, n) => (n ? ["\u00a0· ", node] : [node]))),
          );
        rows.push(el("p", { className: "ma-stage" }, stage), el("ul", {}, ...items));
      }
      if (a.beyond.length)
        rows.push(
          el("p", { className: "ma-stage" }, "not in this course"),
          el("ul", {}, ...a.beyond.map((text) => el("li", { className: "ma-told" }, text))),
        );
      lessonList.replaceChildren(...rows);
      lessonList.scrollTop = 0;
      lessonsName.textContent = `${plural(a.uses.length, "mechanism")}, in forward order`;
    }
    const published = el("summary", {});
    const sources = el("p");
    app.footer.before(el("details", { className: "ma-foot" }, published, sources));
    function showFoot(a, counts) {
      const { facts } = a;
      const bits = [];
      const say = (head, text) => text && bits.push(el("b", {}, `${head} `), `${text}. `);
      const total = counts[PARAMETERS][0];
      const apart = facts.published && total ? total / facts.published - 1 : 0;
      const about =
        Math.abs(apart) < 5e-5
          ? "the same"
          : `${tf.percent(Math.abs(apart), 2)} ${apart > 0 ? "more" : "less"}`;
      tell(
        published,
        facts.published && total
          ? `Published: ${many(facts.published)} parameters. Counted: ${count(total)}, ${about}. Sources${facts.conflict ? ", which disagree" : ""}`
          : total
            ? `Counted: ${count(total)} parameters. What was read`
            : "What was read",
      );
      if (facts.published_as) say("Published as", facts.published_as);
      say("Why they differ:", facts.why);
      say("Sources disagree:", facts.conflict);
      say("Sizes from", facts.source);
      say("Positions from", facts.positions_source);
      say("Note:", facts.note);
      const towers = Object.entries(facts.beside ?? {}).map(([name, n]) => `${name} ${many(n)}`);
      say("Not counted:", joined(towers));
      if (a.unread.length)
        say(
          `${plural(a.unread.length, "key")} of the file not read:`,
          `${a.unread.slice(0, 12).join(", ")}${a.unread.length > 12 ? ", …" : ""}`,
        );
      if (a.assumed.length)
        say(
          "Not in the file, so the defaults of its class are used:",
          a.assumed.slice(0, 12).join(", "),
        );
      sources.replaceChildren(...bits);
    }

    return (state, numbers, changed) => {
      const a = shownOf(state);
      const other = state.beside ? modelOf(state.beside) : null;
      const [mine, theirs] = numbers.models;
      const card = anatomy.CARDS[state.card];
      const context = a.fields.context;
      first.update();
      second.update();
      showStack(a, Math.min(peek ?? numbers.layer, a.layers.length - 1));
      showLessons(a);
      showFoot(a, mine);

      // --- a guess, or a refusal
      const span = (x) =>
        x[PARAMETERS][2] < x[PARAMETERS][3]
          ? `${many(x[PARAMETERS][2])} to ${many(x[PARAMETERS][3])}`
          : many(x[PARAMETERS][0]);
      guess.hidden = !a.guess && !a.refused;
      right.toggleAttribute("data-guess", !guess.hidden);
      const sizes = {
        width: "width",
        vocabulary: "vocabulary",
        context: "context",
        window: "window",
      };
      const told = Object.keys(sizes).filter((name) => Number.isFinite(a.fields[name]));
      tell(
        guess,
        [
          a.refused ? "A total would be a guess, so none is given." : "This is a guess.",
          `The file says: ${told.map((name) => `${sizes[name]} ${count(a.fields[name])}`).join(", ")}.`,
          a.doubts.length ? `It does not say: ${a.doubts.join("; ")}.` : "",
          a.unread.length
            ? `Not read: ${a.unread.slice(0, 6).join(", ")}${a.unread.length > 6 ? `, and ${a.unread.length - 6} more` : ""}.`
            : "",
        ].join(" "),
      );

      // --- the layer
      const layer = a.layers[Math.min(peek ?? numbers.layer, a.layers.length - 1)];
      const cell = cells.find(({ places }) => places.includes(layer.n));
      stackName.textContent = `${plural(a.layers.length, "layer")}, the first on top`;
      which.textContent = `${whichOf(cell.places)}: ${layer.mixer === "none" ? "no mixer" : layer.mixer}${layer.reach ? `, ${count(layer.reach)} tokens` : ""}`;
      mask.box.hidden = !layer.mask;
      const side = Math.min(CELLS, state.L);
      const token = (n) => Math.floor(((n + 0.5) * state.L) / side);
      if (layer.mask)
        mask.show({
          label: `Mask of ${whichOf([layer.n])} over ${count(state.L)} tokens: query i attends to key j where ${readingOf(layer)}.`,
          rows: side,
          bits: (r, c) => Number(allowed(layer, token(r), token(c))),
        });
      const text = formulaOf(layer);
      if (formula.dataset.text !== text + layer.n) {
        formula.dataset.text = text + layer.n;
        formula.replaceChildren();
        if (text) app.formula(text, { into: formula });
        if (layer.mask) app.formula(readingOf(layer), { into: formula });
      }
      const kept = numbers.kept[layer.n];
      const bits = kindOf(layer) === "state" ? state.state_bits : state.cache_bits;
      const { heads } = layer;
      const width =
        heads &&
        `${heads.key_width}${heads.value_width !== heads.key_width ? ` and ${heads.value_width}` : ""}`;
      tell(
        facts,
        [
          heads &&
            `${heads.queries} query heads, ${heads.keys} KV ${heads.keys === 1 ? "head" : "heads"}, ${width} wide`,
          heads && `positions: ${layer.positions}`,
          `feed-forward: ${layer.feed}`,
          layer.parameters && `${many(layer.parameters)} parameters`,
          layer.borrows !== null && `reads the keys of layer ${layer.borrows}`,
          !a.refused && `keeps ${tf.bytes((kept * bits * state.batch) / 8)}`,
        ]
          .filter(Boolean)
          .join(" · "),
      );

      // --- the weights
      const most = Math.max(...numbers.models.map((x) => x[PARAMETERS][0] ?? 0));
      const [total, active] = mine[PARAMETERS];
      weights.hidden = !total;
      if (total) {
        weightsName.textContent = `${span(mine)} parameters${active < total ? `, ${many(active)} for each token` : ""}`;
        const shown = numbers.models.filter((x) => x[PARAMETERS].length);
        bars.replaceChildren(
          ...shown.map((x, n) => barOf(x[PARAMETERS], x[PARAMETERS][0] / most, n > 0)),
        );
        const by = PARTS.map((part, k) => [part, mine[PARAMETERS][k + 4]]).filter(([, n]) => n);
        bars.setAttribute("aria-label", by.map(([part, n]) => `${part} ${many(n)}`).join(", "));
        parts.replaceChildren(
          ...by
            .filter(([, n]) => n > 0.02 * total)
            .flatMap(([part, n]) => {
              const node = el("span", {}, `${part} ${many(n)}`);
              node.dataset.part = part;
              return [node, " "];
            }),
        );
      }

      // --- the cache
      const furthest = Math.max(FURTHEST, context ?? 0, state.L);
      const shortest = Math.min(SHORTEST, state.L);
      const at = tf.range(49, (k) => shortest * (furthest / shortest) ** (k / 48)).map(Math.round);
      const curve = (one) => at.map((L) => [L, cacheOf(one, { ...state, L }).total]);
      const drawn = (of, look) => orNothing(() => ({ line: curve(of), ...look }));
      const cache = tf.sum(mine[CACHE]);
      const differs = (n) => mine[n].length && Math.abs(mine[n][0] / cache - 1) > 0.005;
      const room = total ? card.memory - (total * state.bits) / 8 : 0;
      const fits = room > 0 && cache > 0;
      const lines = a.refused
        ? []
        : [
            differs(EVERY_HEAD) &&
              drawn(ghostsOf(a)[1], { colour: "muted", dash: "2 4", name: "MHA", wide: 1.5 }),
            differs(ALL_FULL) &&
              drawn(ghostsOf(a)[0], { colour: "muted", dash: "7 4", name: "all full", wide: 1.5 }),
            other &&
              drawn(other, { colour: "key", dash: "1 0", name: other.name.split(" ")[0], wide: 2 }),
            cache > 0 && drawn(a, { colour: "attention", name: "kept", wide: 3, bold: true }),
          ];
      grows.show({
        title: `cache at ${tokens(state.L)}: ${tf.bytes(cache)}${fits ? `, free: ${tf.bytes(room)}` : ""}`,
        label: `Bytes that are kept of ${plural(state.batch, "text")}, against the length. At ${count(state.L)} tokens ${tf.bytes(cache)}.`,
        x: {
          from: shortest,
          to: furthest,
          log: true,
          label: "tokens (log axes)",
          ticks: [128, 1024, 8192, 65536, 524288, 2 ** 22].filter(
            (x) => x >= shortest && x <= furthest,
          ),
          format: tokens,
        },
        y: { log: true, ticks: tf.range(8, (k) => 2 ** (10 + 5 * k)), format: tf.bytes },
        marks: [
          context && context >= shortest && { rule: { x: context }, colour: "muted", dash: "3 3" },
          context > shortest &&
            lines.some(Boolean) && {
              text: `made for ${tokens(context)}`,
              at: [context, Math.min(...lines.filter(Boolean).map((x) => x.line[0][1]))],
              dx: 8 * context < furthest ? 5 : -5,
              align: 8 * context < furthest ? "start" : "end",
              colour: "muted",
            },
          fits && { rule: { y: room }, colour: "query", dash: "6 3", wide: 1.5 },
          lines,
          cache > 0 && {
            handle: [state.L, cache],
            knob: "L",
            label: "context",
            text: `${count(state.L)} tokens, ${tf.bytes(cache)}`,
          },
        ],
        hover: (L, n, m) => `${m.name}: ${tf.bytes(n)} at ${tokens(L)}`,
      });

      // --- the roofline
      const phases = [PREFILL, DECODE];
      const dot = ([flops, moved], name, colour, dy) => {
        const intensity = flops / moved;
        const place = [intensity, Math.min(card.operations, card.bandwidth * intensity)];
        return [
          { points: [place], colour, size: 5, name },
          {
            text: name,
            at: place,
            dy,
            dx: dy > 0 ? 8 : -8,
            align: dy > 0 ? "start" : "end",
            colour,
          },
        ];
      };
      const counted = numbers.models
        .flatMap((x) => phases.map((p) => x[p]))
        .filter((x) => x.length);
      const busy = counted.map(([flops, moved]) => flops / moved);
      const ends = [Math.min(0.3, ...busy) / 1.5, Math.max(2e4, ...busy) * 1.5];
      roof.show({
        title: `what limits one ${card.name}: FLOP/s (log axes)`,
        label: `Roofline of ${card.name}. ${phases
          .map(
            (p, n) =>
              mine[p].length &&
              `${["prefill", "decode"][n]}: ${tf.sig(mine[p][0] / mine[p][1])} operations a byte`,
          )
          .filter(Boolean)
          .join(", ")}. It turns at ${tf.sig(card.ridge)}.`,
        x: {
          from: ends[0],
          to: ends[1],
          log: true,
          label: "operations for each byte moved",
          ticks: tf.range(9, (k) => 10 ** (k - 1)),
          format: (v) => units(v, ["", "k", "M"], 1000).replace(/\.0+/, ""),
        },
        y: {
          from: (card.bandwidth * ends[0]) / 2,
          to: card.operations * 4,
          log: true,
          ticks: [1e12, 1e13, 1e14, 1e15],
          format: (v) => units(v, ["", "k", "M", "G", "T", "P"], 1000).replace(/\.0+/, ""),
        },
        marks: [
          {
            line: [
              [ends[0], card.bandwidth * ends[0]],
              [card.ridge, card.operations],
              [ends[1], card.operations],
            ],
            colour: "ink",
            wide: 1.5,
          },
          { rule: { x: card.ridge }, colour: "muted", dash: "3 3" },
          other &&
            phases.map((p, n) => theirs[p].length && dot(theirs[p], "", "key", n ? 14 : -14)[0]),
          phases.map(
            (p, n) =>
              mine[p].length && dot(mine[p], ["prefill", "decode"][n], "attention", n ? 14 : -14),
          ),
        ],
        hover: false,
      });

      // --- the numbers
      const long = (x) => {
        if (!x[LONG].length) return "–";
        if (x[LONG][0] >= ENDLESS) return "any";
        return x[LONG][0] ? count(x[LONG][0]) : "none";
      };
      const rows = [
        ["parameters", (x) => (x[PARAMETERS].length ? span(x) : "–")],
        mine[PARAMETERS][1] < total && [
          "for each token",
          (x) => (x[PARAMETERS].length ? many(x[PARAMETERS][1]) : "–"),
        ],
        [
          `cache at ${tokens(state.L)}`,
          (x) => (x[CACHE].length ? tf.bytes(tf.sum(x[CACHE])) : "–"),
        ],
        [`longest on ${card.name}`, long],
        ...[
          ["prefill", PREFILL],
          ["decode, a token", DECODE],
        ].flatMap(([head, phase]) => {
          const flops = (x) => (x[phase].length ? work(x[phase][0]) : "–");
          const least = (x) => (x[phase].length ? `≥ ${time(x[phase][2])}` : "–");
          return other
            ? [
                [head, flops],
                [`${head.split(",")[0]} time`, least],
              ]
            : [[head, (x) => (x[phase].length ? `${flops(x)}, ${least(x)}` : "–")]];
        }),
      ];
      const columnHeads = table.node.querySelectorAll("thead th");
      if (other) {
        const [one, two] = [a.name, other.name].map((text) => text.split(" ")[0]);
        const names = one === two ? [a.name, other.name] : [one, two];
        names.forEach((text, n) => tell(columnHeads[n + 1], text));
      }
      columnHeads[2].hidden = !other;
      columnHeads[0].parentNode.hidden = !other;
      left.toggleAttribute("data-two", Boolean(other));
      table.show(
        rows.filter(Boolean).map(([head, cell]) => ({ head, cells: numbers.models.map(cell) })),
      );

      // --- the sentence
      const sentences = [];
      if (a.refused) sentences.push(`${a.name} is not counted: ${a.refused}.`);
      else {
        const beyond =
          context && state.L > context
            ? `, more than the ${tokens(context)} that it is made for,`
            : "";
        const keeps = cache
          ? `keeps ${tf.bytes(cache)}`
          : "keeps no cache, because it reads both ways";
        const compared = differs(ALL_FULL)
          ? `, ${shareOf(cache, mine[ALL_FULL][0])} it would keep if every layer saw everything`
          : differs(EVERY_HEAD)
            ? `, ${shareOf(cache, mine[EVERY_HEAD][0])} it would keep if every head had keys of its own`
            : "";
        const where =
          state.batch > 1
            ? `Of ${count(state.batch)} texts of ${tokens(state.L)} tokens${beyond || ","}`
            : `At ${tokens(state.L)} tokens${beyond}`;
        const name = a.guess ? `${a.family}, if it is an ordinary decoder,` : a.name;
        sentences.push(`${where} ${name} ${keeps}${compared}.`);
        const size = tf.bytes((total * state.bits) / 8);
        if (room <= 0) sentences.push(`Its weights, ${size}, do not fit on one ${card.name}.`);
        else if (mine[LONG].length && cache)
          sentences.push(
            `With ${size} of weights, ${mine[LONG][0] >= ENDLESS ? "texts of any length fit" : mine[LONG][0] ? `texts of up to ${count(mine[LONG][0])} tokens fit` : "no text fits"} on one ${card.name}.`,
          );
      }
      if (other && theirs[CACHE].length)
        sentences.push(`${other.name} keeps ${tf.bytes(tf.sum(theirs[CACHE]))}.`);
      app.say(sentences.join(" "));
    };
  },
});
