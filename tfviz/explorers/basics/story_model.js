// The story model in the open: a text, what every head does at one word, and a part to exchange.
const { el, clamp } = tf;
const { words: WORDS, kinds: KINDS, shelf: SHELF, scores: SCORES, chance: CHANCE } = tf.data;
const { base_name: BASE, longest: LONGEST, most: MOST, cold: COLD } = tf.data;
const [HEADS, BLOCKS] = tf.data.heads;
const STORIES = Object.fromEntries(tf.data.stories.map((story) => [story.skill, story]));
const VARIANTS = new Map(
  SHELF.flatMap(({ socket, parts }) => parts.map((x) => [x.name, { socket, ...x }])),
);
const NUMBER = new Map(WORDS.map((word, n) => [word, n]));
const END = NUMBER.get("|");
const DICE = Array.from(tf.uniforms(tf.data.dice, MOST), (x) => x / Math.sqrt(12) + 0.5);
const JOINED = new Set([",", ".", "?", ":", "”"]); // to the word before
const EARLY = tf.data.early; // the socket of the base on its way
const AWAKE = 0.1; // a feature that is larger
const TRAINED = SCORES[BASE].loss.length > 0; // else its weights are random
const SAME = 0.15; // nats: a smaller difference is not marked
const SKILLS = Object.fromEntries(tf.data.stories.map(({ skill, name }) => [skill, name]));

// --- models
// Other models come with the state, or from a file beside the page, on the first press.
const brought = (globalThis.tfvizStories ??= {});
const modelOf = (name, models) => (name === BASE ? tf.data.base : (models[name] ?? brought[name]));
const engines = new Map();
function engineOf(name, model) {
  if (!engines.has(name)) engines.set(name, Object.assign(alive(model), { model }));
  return engines.get(name);
}
const slug = (name) => name.replace(/[^a-z0-9]+/gi, "_");
/** @returns {HTMLScriptElement | null} */
const pageScript = () => document.querySelector('script[src*="js/tfviz-page.js"]');
function fetched(name, again) {
  const page = pageScript();
  return new Promise((/** @type {(x?: any) => void} */ done, failed) => {
    const node = document.createElement("script");
    const file = `explorers/story_model.${slug(name)}.js`;
    node.src = page.src.replace(/js\/tfviz-page\.js.*$/, file) + (again ? `?${again}` : "");
    node.onload = () => (brought[name] ? done() : failed(new Error(file)));
    node.onerror = () => failed(new Error(file));
    document.head.append(node);
  });
}
const pairOf = (head) => head.split(".").map((n) => n - 1);

// The traces of a text, of which the beginning was perhaps read before.
const runs = new Map();
function read(name, state, tokens, use = "") {
  const key = [name, state.story, state.off, use].join("|");
  let one = runs.get(key);
  if (!one?.tokens.every((token, n) => n >= tokens.length || token === tokens[n])) {
    const start = engineOf(name, modelOf(name, state.models));
    const blocks = modelOf(name, state.models).blocks;
    const off = state.off
      .map(pairOf)
      .filter(([n, m]) => n < blocks.length && m < blocks[n].mixer.h);
    one = { run: start({ off }), tokens: [], traces: [] };
    runs.delete(key);
    runs.set(key, one);
    if (runs.size > 16) runs.delete(runs.keys().next().value);
  }
  for (const token of tokens.slice(one.tokens.length)) {
    one.traces.push(one.run.step(token));
    one.tokens.push(token);
  }
  return one.traces;
}

function tokensOf({ story, changed }) {
  const tokens = STORIES[story].tokens.slice();
  for (const [place, word] of changed) if (place < tokens.length) tokens[place] = NUMBER.get(word);
  return tokens;
}
const lastOf = (story) => STORIES[story].tokens.length - 1;
// the model with another part, if there is one and its weights are here
const otherOf = ({ swap, models }) => (swap !== BASE && modelOf(swap, models) ? swap : null);

// So many words more; number k is chosen with random number k, whatever the model.
function writing(name, state, tokens) {
  const out = [];
  while (out.length < state.written && tokens.length + out.length < LONGEST) {
    const text = [...tokens, ...out];
    const { logits, p } = read(name, state, text, out.length ? "writes" : "")[text.length - 1];
    let k = tf.best(Array.from(p));
    if (state.heat >= COLD) {
      const shares = tf.softmax(Array.from(logits, (x) => x / state.heat));
      let left = DICE[out.length];
      for (k = 0; k < shares.length - 1 && (left -= shares[k]) > 0; k++);
    }
    out.push(k);
    if (k === END) break;
  }
  return out;
}

// The head that takes most, at word i, from where the likeliest next word stands already; if it
// stands nowhere, the one that takes most from a single word.
function headOf(trace, tokens) {
  const said = tf.best(Array.from(trace.p));
  const there = tf.range(trace.i + 1, (j) => j).filter((j) => tokens[j] === said);
  let [most, head] = [-1, [0, 0]];
  trace.blocks.forEach(({ A }, n) =>
    A.forEach((row, m) => {
      const taken = there.length ? tf.sum(there.map((j) => row[j])) : Math.max(...row);
      if (taken > most) [most, head] = [taken, [n, m]];
    }),
  );
  return head;
}
const chosen = (state, i) => {
  const tokens = tokensOf(state);
  return state.head ? pairOf(state.head) : headOf(read(BASE, state, tokens)[i], tokens);
};
const wordOf = (state) => clamp(state.i, 1, lastOf(state.story));
const surpriseOf = (traces, tokens) =>
  tokens.slice(1).map((token, j) => -Math.log(traces[j].p[token]));
const rowOf = (trace, [n, m]) => trace.blocks[n].A[Math.min(m, trace.blocks[n].A.length - 1)];
const nodesOf = (trace) => trace.stream.filter((_, n) => n % 2 === 0);

function numbers(state) {
  const [tokens, i] = [tokensOf(state), wordOf(state)];
  const head = chosen(state, i);
  const of = (name) => {
    if (!name) return { surprise: [], p: [], weights: [], would: [], written: [] };
    const traces = read(name, state, tokens);
    const start = engineOf(name, modelOf(name, state.models));
    return {
      surprise: surpriseOf(traces, tokens),
      p: traces[i].p,
      weights: rowOf(traces[i], head),
      would: nodesOf(traces[i]).map((row) => Math.max(...start.lens(row).p)),
      written: writing(name, state, tokens),
    };
  };
  const other = Object.entries(of(otherOf(state))).map(([key, x]) => [`swap_${key}`, x]);
  return { head, ...of(BASE), ...Object.fromEntries(other) };
}

// --- words and numbers as they are said
const nameOf = (token) => (token === END ? "the end" : WORDS[token]);
// within a sentence; a mark of a text needs no quotation marks of its own
const quoted = (token) =>
  KINDS[token] === "mark" ? `the mark ${WORDS[token]}` : `“${WORDS[token]}”`;
// as it is printed after the word before
function printed(token, before) {
  const word = WORDS[token];
  if (token === END) return "¶";
  return before === END || [".", "?", "“"].includes(WORDS[before])
    ? word[0].toUpperCase() + word.slice(1)
    : word;
}
const isTight = (token, before) => JOINED.has(WORDS[token]) || WORDS[before] === "“";
const share = (p) => (p > 0 && p < 0.005 ? "< 1 %" : tf.percent(p));
const back = (many) => (many ? `${many} ${many > 1 ? "words" : "word"} back` : "itself");
const nats = (x) => `${tf.fixed(x, 2)} nats`;
const kept = (trace) => tf.sum(trace.blocks.map((block) => block.kept));
const likeliest = (p, many) =>
  tf
    .range(p.length, (n) => n)
    .sort((a, b) => p[b] - p[a])
    .slice(0, many);
const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

// What may be said of a variant: only what the stored results say of three seeds.
function verdictOf(name) {
  const { words, loss } = SCORES[name];
  const skills = Object.entries(words).filter(([key]) => key !== "loss");
  const few = !skills.length || skills.some(([, word]) => word === "too few seeds");
  if (few) return loss.length === 1 ? "One seed so far." : `${loss.length} seeds so far.`;
  const lost = skills.filter(([, word]) => word === "guesses").map(([key]) => SKILLS[key]);
  const luck = skills
    .filter(([, word]) => word === "depends on the seed")
    .map(([key]) => SKILLS[key]);
  const parts = [];
  if (lost.length) parts.push(`With all three seeds it only guesses at: ${lost.join(", ")}.`);
  if (luck.length) parts.push(`Whether it learns this depends on the seed: ${luck.join(", ")}.`);
  if (!parts.length) parts.push(`Its loss is ${words.loss} with all three seeds.`);
  return parts.join(" ");
}

// --- drawing
// small pictures whose cells are pixels: colour(x, y) is a number as `tf.word` gives it
function image(canvas, wide, high, colour) {
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  const context = canvas.getContext("2d");
  const data = context.createImageData(wide, high);
  const cells = new Uint32Array(data.data.buffer);
  for (let y = 0; y < high; y++) for (let x = 0; x < wide; x++) cells[y * wide + x] = colour(x, y);
  context.putImageData(data, 0, 0);
}
const STEPS = 48;
const inks = tf.keep((page, attention, query, value, ink, grid) => {
  const ramp = (to) => tf.range(STEPS + 1, (n) => tf.word(tf.mix(page, to, n / STEPS)));
  return {
    attention: ramp(attention),
    query: ramp(query),
    value: ramp(value),
    ink: ramp(ink),
    row: tf.range(STEPS + 1, (n) =>
      tf.word(tf.mix(tf.mix(page, query, 0.22), attention, n / STEPS)),
    ),
    hatch: tf.word(tf.mix(page, grid, 0.75)),
    never: tf.word(tf.mix(page, grid, 0.25)),
  };
}, 4);
const at = (ramp, x) => ramp[Math.round(STEPS * clamp(x, 0, 1))];

const maskOf = tf.keep((name, n, m) => {
  const { masks } = engines.get(name).model.blocks[n].mixer.core ?? {};
  return masks ? formulaOf(masks[m % masks.length]) : () => true;
}, 64);
function drawMap(canvas, ink, { name, traces, many, n, m, row = -1 }) {
  const may = maskOf(name, n, m);
  const maps = traces.slice(0, many).map(({ blocks }) => blocks[n].A[m]);
  image(canvas, many, many, (x, y) => {
    if (x > y || !may(y, x)) return (x + y) % 4 ? ink.never : ink.hatch;
    return at(y === row ? ink.row : ink.attention, Math.sqrt(Math.max(0, maps[y][x])));
  });
}
function drawRow(canvas, ink, row, wide, high) {
  const most = Math.max(...row.map(Math.abs), 1e-9);
  image(canvas, wide, high, (x, y) => {
    const value = row[y * wide + x] ?? 0;
    return at(value > 0 ? ink.query : ink.value, Math.sqrt(Math.abs(value) / most));
  });
}
function drawFeed(canvas, ink, hidden) {
  const most = Math.max(...hidden.map(Math.abs), 1e-9);
  const high = Math.ceil(hidden.length / 32);
  image(canvas, 32, high, (x, y) => {
    const value = hidden[y * 32 + x] ?? 0;
    return at(ink.ink, value > AWAKE ? value / most : 0);
  });
}

// A node whose text is set as it is: words of a story are no formulas.
function node(tag, className, text, props = {}) {
  const made = el(tag, { className, ...props });
  if (text !== undefined) made.textContent = text;
  return made;
}
const picture = (className) => {
  const canvas = node("canvas", className);
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
};

// --- the parts of the page
function makeText(app) {
  const root = node("div", "sm-words", undefined, { tabIndex: 0, role: "listbox" });
  root.ariaLabel = "The words of the story. Arrow keys choose one, up and down another head.";
  Object.assign(root.dataset, { key: "i", lead: "", tall: "", lmSuppressShortcuts: "true" });
  const wrote = node("div", "sm-wrote");
  const choose = (i) => app.set({ i: clamp(i, 1, lastOf(app.get("story"))) });
  root.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey) return;
    app.settle();
    const i = wordOf(app.values());
    const places = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 1, End: 999 };
    const turn = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (key in places) choose(places[key]);
    else if (turn) app.turnHead(turn);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  root.addEventListener("click", ({ target }) => {
    const place = target.closest("[data-place]")?.dataset.place;
    if (place) choose(Number(place));
  });
  const line = (label, tokens, before, className) => {
    const text = node("span", "");
    let last = before;
    text.textContent = tokens
      .map((token) => {
        const tight = isTight(token, last);
        const word = printed(token, last);
        last = token;
        return (tight ? "" : " ") + word;
      })
      .join("");
    const row = node("div", className);
    row.append(node("b", "", label), text);
    return row;
  };
  return {
    root,
    wrote,
    show(state, numbers, i) {
      const tokens = tokensOf(state);
      const other = otherOf(state);
      const weights = other ? numbers.swap_weights : numbers.weights;
      const parts = [];
      let together;
      for (let j = 1; j < tokens.length; j++) {
        const word = node("span", "sm-w", printed(tokens[j], tokens[j - 1]), { role: "option" });
        word.id = app.id(`word-${j}`);
        word.dataset.place = String(j);
        word.ariaSelected = String(j === i);
        const surprise = numbers.surprise[j - 1];
        const more = other ? numbers.swap_surprise[j - 1] - surprise : 0;
        const taken = j <= i ? weights[j] : 0;
        if (j === i) word.classList.add("sm-here");
        if (JOINED.has(WORDS[tokens[j]])) word.classList.add("sm-after");
        if (WORDS[tokens[j]] === "“") word.classList.add("sm-before");
        word.style.setProperty("--a", String(Math.sqrt(Math.max(0, taken)) * 0.9));
        const bar = other ? (more > SAME ? 1.5 + 1.6 * more : 0) : 1.7 * surprise;
        word.style.setProperty("--s", `${Math.min(7, bar).toFixed(1)}px`);
        if (other && Math.abs(more) > SAME) word.classList.add(more > 0 ? "sm-worse" : "sm-better");
        const told = [WORDS[tokens[j]], nats(surprise)];
        if (other) told.push(`with ${state.swap} ${nats(surprise + more)}`);
        if (j <= i) told.push(`attention ${share(taken)}`);
        word.ariaLabel = told.join(", ");
        word.title = other ? `${nats(surprise)} → ${nats(surprise + more)}` : nats(surprise);
        if (isTight(tokens[j], tokens[j - 1])) together.append(word);
        else {
          together = node("span", "sm-g"); // a word, and the marks that do not leave it
          together.append(word);
          parts.push(" ", together);
        }
      }
      if (i === tokens.length - 1 && !state.written)
        parts.push(" ", node("span", "sm-blank", "?", { ariaHidden: "true" }));
      root.replaceChildren(...parts);
      root.setAttribute("aria-activedescendant", app.id(`word-${i}`));
      const { written, swap_written: again } = numbers;
      wrote.hidden = !state.written;
      const last = tokens.at(-1);
      const lines = state.written ? [line("base", written, last, "")] : [];
      if (state.written && other) lines.push(line(state.swap, again, last, "sm-b"));
      wrote.replaceChildren(...lines);
    },
  };
}

function makeNext() {
  const root = node("div", "sm-next");
  const title = node("p", "sm-title");
  const rows = tf.range(6, () => {
    const row = node("div", "sm-row");
    const bars = node("span", "sm-bars");
    const made = { row, word: node("span", "sm-word"), bars: [node("i", ""), node("i", "sm-b")] };
    made.shares = [node("span", ""), node("span", "sm-b")];
    bars.append(...made.bars);
    const shares = node("span", "sm-shares");
    shares.append(...made.shares);
    row.append(made.word, bars, shares);
    return made;
  });
  root.append(title, ...rows.map(({ row }) => row));
  return {
    root,
    show(state, numbers, i) {
      const tokens = tokensOf(state);
      const both = Boolean(otherOf(state));
      const [p, q] = [numbers.p, numbers.swap_p];
      const first = likeliest(p, both ? 4 : 6);
      const list = [...new Set([...first, ...(both ? likeliest(q, 6) : [])])].slice(0, 6);
      const next = tokens[i + 1];
      const was = next === undefined ? "" : `; the story has ${quoted(next)}`;
      title.textContent = `Next word after ${quoted(tokens[i])}${was}`;
      list.forEach((token, n) => {
        const { row, word, bars, shares } = rows[n];
        row.classList.toggle("sm-two", both);
        word.textContent = nameOf(token);
        bars[0].style.width = `${100 * p[token]}%`;
        shares[0].textContent = share(p[token]);
        bars[1].hidden = shares[1].hidden = !both;
        if (!both) return;
        bars[1].style.width = `${100 * q[token]}%`;
        shares[1].textContent = share(q[token]);
      });
    },
  };
}

function makeMachine(app) {
  const root = node("div", "sm-machine");
  const flow = node("div", "sm-flow");
  const close = node("div", "sm-close");
  root.append(flow, close);
  const nodes = tf.range(BLOCKS + 1, (n) => {
    const made = { root: node("div", "sm-node"), line: picture("sm-line"), says: node("p", "") };
    made.root.append(made.line, made.says);
    made.root.style.setProperty("--step", String(2 * n + 1));
    return made;
  });
  const entry = { root: node("div", "sm-box"), title: node("p", "sm-title") };
  const strips = ["row of the table", "enters block 1"].map((text) => {
    const strip = picture("sm-strip");
    entry.root.append(node("p", "sm-small", text), strip);
    return strip;
  });
  entry.root.prepend(entry.title);
  const blocks = tf.range(BLOCKS, (n) => {
    const box = node("div", "sm-box");
    const what = node("span", "");
    const title = node("p", "sm-title", `Block ${n + 1} `);
    title.append(what);
    const group = node("div", "sm-heads", undefined, { role: "group" });
    group.ariaLabel = `heads of block ${n + 1}`;
    const heads = tf.range(HEADS, (m) => {
      const button = node("button", "sm-head", undefined, { type: "button" });
      const map = picture("sm-map");
      const word = node("span", "sm-look");
      button.append(map, word);
      button.addEventListener("click", () => app.set({ head: `${n + 1}.${m + 1}` }));
      group.append(button);
      return { button, map, word };
    });
    const feed = picture("sm-feed");
    const awake = node("p", "sm-small");
    awake.title = `awake: a feature of the feed-forward network that is larger than ${AWAKE}`;
    box.append(title, group, awake, feed);
    box.style.setProperty("--step", String(2 * n + 2));
    return { box, what, heads, feed, awake };
  });
  flow.append(...nodes.map(({ root }) => root), entry.root, ...blocks.map(({ box }) => box));

  const title = node("p", "sm-title");
  const off = app.button(
    "switch it off",
    () => {
      const head = chosen(app.values(), wordOf(app.values()))
        .map((n) => n + 1)
        .join(".");
      const now = app.get("off");
      const next = now.includes(head) ? now.filter((x) => x !== head) : [...now, head].sort();
      app.set({ off: next, head });
    },
    { into: node("span", "") },
  );
  const bar = node("div", "sm-bar");
  bar.append(title, off);
  const figures = [node("figure", ""), node("figure", "sm-b")].map((figure) => {
    const caption = node("figcaption", "sm-small");
    const map = picture("sm-large");
    figure.append(caption, map);
    return { figure, caption, map };
  });
  const maps = node("div", "sm-maps");
  maps.append(...figures.map(({ figure }) => figure));
  const said = node("p", "sm-read");
  close.append(bar, maps, said);

  app.turnHead = (by) => {
    const [n, m] = chosen(app.values(), wordOf(app.values()));
    const next = (n * HEADS + m + by + BLOCKS * HEADS) % (BLOCKS * HEADS);
    app.set({ head: `${Math.floor(next / HEADS) + 1}.${(next % HEADS) + 1}` });
  };
  let thumbnails = "";
  return {
    root,
    show(state, numbers, i) {
      const { page, attention, query, value, ink: black, grid } = app.colours;
      const ink = inks(page, attention, query, value, black, grid);
      const tokens = tokensOf(state);
      const other = otherOf(state);
      const name = other ?? BASE;
      const traces = read(name, state, tokens);
      const start = engineOf(name, modelOf(name, state.models));
      const trace = traces[i];
      const [n0, m0] = numbers.head;
      const told = other ? VARIANTS.get(other) : undefined;
      // the stream
      nodesOf(trace).forEach((row, n) => {
        drawRow(nodes[n].line, ink, Array.from(row), row.length, 1);
        const { p } = start.lens(row);
        const k = tf.best(Array.from(p));
        const verb = n === 0 ? "word" : n === BLOCKS ? "predicts" : "would predict";
        const word = node("b", "", n ? nameOf(k) : WORDS[tokens[i]]);
        nodes[n].says.replaceChildren(`${verb} `, word, n ? ` ${share(p[k])}` : "");
      });
      const table = start.weights["embed.weight"];
      const wide = trace.stream[0].length;
      entry.title.textContent = `Word ${i}: ${quoted(tokens[i])}`;
      const row = table.slice(trace.token * wide, (trace.token + 1) * wide);
      drawRow(strips[0], ink, Array.from(row), 16, wide / 16);
      drawRow(strips[1], ink, Array.from(trace.stream[0]), 16, wide / 16);
      entry.root.classList.toggle("sm-swapped", told?.socket === "position");
      // the blocks
      const drawn = [name, state.story, state.off, tokens, page].join("|");
      const anew = drawn !== thumbnails;
      thumbnails = drawn;
      blocks.forEach(({ box, what, heads, feed, awake }, n) => {
        const { A, hidden } = trace.blocks[n];
        const inside = told && !["position", EARLY].includes(told.socket);
        box.classList.toggle("sm-swapped", Boolean(inside));
        what.textContent = inside ? other : "";
        heads.forEach(({ button, map, word }, m) => {
          button.hidden = m >= A.length;
          if (m >= A.length) return;
          const label = `${n + 1}.${m + 1}`;
          const silent = state.off.includes(label);
          if (anew) drawMap(map, ink, { name, traces, many: tokens.length, n, m });
          const j = tf.best(Array.from(A[m]));
          word.textContent = silent ? "off" : nameOf(tokens[j]);
          word.style.setProperty("--a", String(silent ? 0 : clamp(A[m][j], 0, 1)));
          button.ariaPressed = String(n === n0 && m === Math.min(m0, A.length - 1));
          button.classList.toggle("sm-off", silent);
          const most = `attends most to ${quoted(tokens[j])}, ${back(i - j)}: ${share(A[m][j])}`;
          button.ariaLabel = `head ${label}: ${silent ? "switched off" : most}`;
          button.title = button.ariaLabel;
        });
        feed.hidden = !hidden.length;
        if (hidden.length) drawFeed(feed, ink, Array.from(hidden));
        const many = hidden.filter((x) => x > AWAKE).length;
        awake.textContent = hidden.length
          ? `feed-forward: ${many} of ${hidden.length} awake`
          : "no feed-forward";
      });
      // the chosen head, large
      const label = `${n0 + 1}.${m0 + 1}`;
      title.textContent = `Head ${label}: block ${n0 + 1}, head ${m0 + 1}`;
      off.textContent = state.off.includes(label) ? "switch it on" : "switch it off";
      const looks = (one, model) => {
        const row = rowOf(one[i], [n0, m0]);
        const j = tf.best(Array.from(row));
        const m = Math.min(m0, one[i].blocks[n0].A.length - 1);
        return { j, text: `${quoted(tokens[j])}, ${back(i - j)} (${share(row[j])})`, m, model };
      };
      const whole = { many: tokens.length, n: n0, row: i };
      const base = read(BASE, state, tokens);
      const first = looks(base, BASE);
      figures[0].caption.textContent = other ? "base" : "each row attends to the columns";
      drawMap(figures[0].map, ink, { ...whole, name: BASE, traces: base, m: first.m });
      figures[1].figure.hidden = !other;
      const words = [`At ${quoted(tokens[i])} this head attends most to ${first.text}`];
      if (other) {
        const second = looks(traces, other);
        figures[1].caption.textContent = other;
        drawMap(figures[1].map, ink, { ...whole, name: other, traces, m: second.m });
        words.push(`; with ${other}, to ${second.text}`);
      }
      said.textContent = state.off.includes(label)
        ? `Head ${label} is switched off: it adds nothing to any word.`
        : `${words.join("")}.`;
    },
  };
}

function makeShelf(app, press) {
  const root = node("div", "sm-shelf");
  const chips = [];
  // a part whose weights are nowhere to be found is not offered
  const atHand = (name) => name in app.model.get("models") || name in brought || app.canBring;
  for (const { socket, label, base, parts } of SHELF) {
    const group = node("div", "sm-socket", undefined, { role: "group" });
    group.ariaLabel = label;
    const row = node("div", "sm-chips");
    group.append(node("p", "sm-small", label), row);
    const there = parts.filter(({ name }) => atHand(name));
    if (!there.length) row.append(node("span", "sm-chip sm-in", base));
    else {
      for (const { name, text } of [
        { name: BASE, text: base },
        ...there.map(({ name }) => ({ name, text: name })),
      ]) {
        const chip = node("button", "sm-chip", text, { type: "button" });
        if (name !== BASE) {
          const more = middle(SCORES[name].loss) - middle(SCORES[BASE].loss);
          const sign = more < 0 ? "−" : "+";
          chip.append(node("span", "sm-delta", ` ${sign}${Math.abs(more).toFixed(2)}`));
          chip.title =
            "nats a word more (+) or fewer (−) than the base, on stories not read before";
        }
        chip.addEventListener("click", () => press(name));
        row.append(chip);
        chips.push({ chip, name, socket });
      }
    }
    row.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const mine = [...row.querySelectorAll("button")];
      const next = mine[mine.indexOf(document.activeElement) + by];
      if (!by || !next) return;
      event.preventDefault();
      event.stopPropagation();
      next.focus();
    });
    root.append(group);
  }
  const verdict = node("p", "sm-verdict");
  const trouble = node("p", "sm-trouble", undefined, { role: "alert", hidden: true });
  root.append(verdict, trouble);
  return {
    root,
    trouble,
    show(state) {
      const now = otherOf(state) ?? BASE;
      const socket = VARIANTS.get(now)?.socket;
      for (const { chip, name, socket: mine } of chips) {
        const used = name === now || (name === BASE && mine !== socket);
        chip.ariaPressed = String(used);
        chip.classList.toggle("sm-on", used && name !== BASE);
        chip.tabIndex = used ? 0 : -1;
      }
      const part = VARIANTS.get(now);
      if (part) {
        const book = app.book;
        const said = part.socket === EARLY ? part.about : `${part.about} ${verdictOf(now)}`;
        verdict.replaceChildren(node("b", "", `${part.name}: `), said);
        if (book && part.chapter)
          verdict.append(" ", el("a", { href: `${book}${part.chapter}.html` }, "The chapter"));
      } else if (chips.some((chip) => chip.name !== BASE && chip.socket !== EARLY))
        verdict.textContent =
          "Exchange a part. Predict first: which skill will the model lose? Every variant was trained from the same first weights on the same stories; two parts cannot be exchanged at once.";
      else
        verdict.textContent = TRAINED
          ? `These are the parts of the base. Variants with another part appear here once they are trained. ${verdictOf(BASE)}`
          : "These are the parts of the base. It has not been trained yet: its weights are random.";
    },
  };
}

function makeTiles() {
  const root = node("dl", "sm-tiles");
  const tiles = new Map();
  const tile = (key, label) => {
    const made = {
      root: node("div", "sm-tile"),
      value: node("dd", ""),
      bars: node("dd", "sm-two"),
    };
    made.root.append(node("dt", "sm-small", label), made.value, made.bars);
    root.append(made.root);
    tiles.set(key, made);
  };
  const skills = Object.keys(SCORES[BASE].skills);
  tile("loss", "nats a word");
  for (const key of skills) tile(key, SKILLS[key] ?? key);
  tile("kept", "cache for this text");
  tile("parameters", "parameters");
  const put = (key, values, format, most, /** @type {any} */ { ticks = [], chance } = {}) => {
    const { value, bars, root: box } = tiles.get(key);
    const known = values.filter((x) => x !== undefined); // what is not trained has no score
    const texts = known.length ? known.map(format) : ["–"];
    value.replaceChildren(texts[0]);
    if (texts.length > 1 && (texts[1] !== texts[0] || most === 1))
      value.append(" → ", node("b", "", texts[1]));
    const drawn = known.map((x, n) => {
      const bar = node("i", n ? "sm-b" : "");
      bar.style.width = `${100 * clamp(x / most, 0, 1)}%`;
      return bar;
    });
    const marks = [...ticks.map((x) => [x, "sm-tick"]), ...(chance ? [[chance, "sm-chance"]] : [])];
    for (const [x, className] of marks) {
      const mark = node("s", className);
      mark.style.left = `${100 * clamp(x / most, 0, 1)}%`;
      drawn.push(mark);
    }
    bars.replaceChildren(...drawn);
    if (chance)
      box.title = `guessing among the words that fit is right in ${share(chance)} of the cases`;
  };
  return {
    root,
    show(state) {
      const other = otherOf(state);
      const there = [BASE, ...(other ? [other] : [])];
      const scores = there.map((name) => SCORES[name]);
      const losses = scores.map(({ loss }) => middle(loss));
      const ticks = (values) => (values.length > 1 ? values : []);
      const most = Math.max(...losses, ...scores.flatMap(({ loss }) => loss));
      put("loss", losses, (x) => tf.fixed(x, 3), most, { ticks: ticks(scores.at(-1).loss) });
      for (const key of skills)
        put(
          key,
          scores.map(({ skills }) => middle(skills[key])),
          (x) => tf.percent(x),
          1,
          { ticks: ticks(scores.at(-1).skills[key]), chance: CHANCE[key] },
        );
      const tokens = tokensOf(state);
      const bytes = there.map((name) => kept(read(name, state, tokens)[tokens.length - 1]));
      put("kept", bytes, tf.bytes, Math.max(...bytes));
      const sizes = scores.map(({ parameters }) => parameters);
      put("parameters", sizes, tf.count, Math.max(...sizes));
    },
  };
}

function makeTable() {
  const fold = node("details", "sm-fold");
  const table = node("table", "tfx-table");
  const skills = Object.keys(SCORES[BASE].skills);
  const names = Object.keys(SCORES);
  const head = node("tr", "");
  const columns = [
    "model",
    "nats a word",
    ...skills.map((key) => SKILLS[key] ?? key),
    "parameters",
  ];
  head.append(...columns.map((text) => node("th", "", text, { scope: "col" })));
  const all = (values, format) => values.map(format).join(" · ") || "–";
  const rows = names.map((name) => {
    const { loss, skills: shares, parameters } = SCORES[name];
    const row = node("tr", "");
    const cells = [all(loss, (x) => tf.fixed(x, 3))];
    cells.push(
      ...skills.map((key) => all(shares[key], (x) => tf.percent(x))),
      tf.count(parameters),
    );
    row.append(node("th", "", name, { scope: "row" }), ...cells.map((x) => node("td", "", x)));
    return row;
  });
  const [top, body] = [node("thead", ""), node("tbody", "")];
  top.append(head);
  body.append(...rows);
  const seeds = Math.max(...names.map((name) => SCORES[name].loss.length));
  const many = { 0: "not trained yet", 1: "one seed so far" }[seeds] ?? `${seeds} seeds, in order`;
  const words = `Right answers to questions about stories not read before; ${many}; ${tf.count(tf.data.steps)} steps of training.`;
  const scroll = node("div", "sm-scroll", undefined, { tabIndex: 0, role: "region" });
  scroll.ariaLabel = "scores of all models";
  table.append(node("caption", "", words), top, body);
  scroll.append(table);
  fold.append(node("summary", "", `All scores in a table (${many})`), scroll);
  return fold;
}

// --- addresses that people write: #swap=last-8&story=colour&i=76&head=3.2
function asked(app) {
  const given = new URLSearchParams(location.hash.slice(1));
  if ([...given.keys()].some((key) => key.startsWith("story_model")))
    return { state: {}, wrong: "" };
  const state = {};
  const wrong = [];
  const skills = Object.keys(STORIES);
  const story = given.get("story");
  if (story !== null) {
    const key = skills[Number(story)] && story.trim() ? skills[Number(story)] : story;
    if (key in STORIES) Object.assign(state, { story: key, i: lastOf(key) });
    else wrong.push(`There is no story “${story}”; this is “${STORIES[app.get("story")].name}”.`);
  }
  const i = given.get("i");
  if (i !== null && (state.story || given.has("head") || given.has("swap"))) {
    const last = lastOf(state.story ?? app.get("story"));
    const place = Number(i);
    if (Number.isInteger(place) && place >= 1 && place <= last) state.i = place;
    else wrong.push(`The story has no word ${i}; its words are 1 to ${last}.`);
  }
  const head = given.get("head");
  if (head !== null) {
    const [n, m] = pairOf(head);
    if (n >= 0 && n < BLOCKS && m >= 0 && m < HEADS) state.head = `${n + 1}.${m + 1}`;
    else wrong.push(`There is no head “${head}”; heads are 1.1 to ${BLOCKS}.${HEADS}.`);
  }
  const swap = given.get("swap");
  if (swap !== null && swap !== BASE) {
    const name = [...VARIANTS.keys()].find((x) => slug(x) === slug(swap));
    if (name) state.swap = name;
    else wrong.push(`There is no trained part “${swap}”; this is the base.`);
  }
  return { state, wrong: wrong.join(" ") };
}

function setup(app) {
  const page = pageScript();
  const isWidget = Boolean(app.model.widget_manager);
  app.canBring = Boolean(page) || isWidget;
  app.book = page?.src.includes("/_static/") ? page.src.replace(/_static\/.*$/, "") : "";

  const { state, wrong } = asked(app);
  const { swap, ...rest } = state;
  if (Object.keys(rest).length) app.bring(rest);

  // a part is put in when its weights are here
  let tries = 0;
  async function press(name) {
    shelf.trouble.hidden = true;
    const { models } = app.values();
    if (name !== BASE && !modelOf(name, models) && !isWidget) {
      try {
        if (!page) throw new Error("this file holds one model alone");
        await fetched(name, tries);
      } catch (error) {
        tries++;
        const again = node("button", "tfx-button", "try again", { type: "button" });
        again.addEventListener("click", () => press(name));
        shelf.trouble.replaceChildren(
          `The weights of “${name}” could not be loaded (${error.message}); this is still the base. `,
          page ? again : "",
        );
        shelf.trouble.hidden = false;
        return;
      }
    }
    app.stale = true;
    app.redraw("swap");
    app.set({ swap: name });
  }

  const text = makeText(app);
  const next = makeNext();
  const machine = makeMachine(app);
  const shelf = makeShelf(app, press);
  const tiles = makeTiles();
  const talk = node("div", "sm-talk");
  const said = node("div", "sm-said");
  const legend = node("p", "sm-legend");
  app.knob("story", {
    into: app.questions,
    write: (story) => app.set({ story, i: lastOf(story), changed: [], written: 0, head: "" }),
  });
  const write = (many) => app.set({ written: clamp(many, 0, MOST) });
  const tools = app.controls;
  const one = app.button("write a word", () => write(app.get("written") + 1), { into: tools });
  one.classList.add("sm-main");
  one.append(" ", node("kbd", "", "w"));
  app.button("write on", () => write(MOST), { into: tools });
  app.knob("written", { into: tools });
  app.knob("heat", { into: tools, format: (x) => x.toFixed(1) });
  const editId = app.id("edit");
  const edit = node("select", "", undefined, { id: editId });
  const editLabel = el("label", { htmlFor: editId }, "replace this word by");
  const field = node("div", "tfx-field tfx-select");
  field.append(editLabel, edit);
  tools.append(field);
  edit.addEventListener("change", () => {
    const i = wordOf(app.values());
    const rest = app.get("changed").filter(([place]) => place !== i);
    const isAsIs = STORIES[app.get("story")].tokens[i] === NUMBER.get(edit.value);
    app.set({ changed: isAsIs ? rest : [...rest, [i, edit.value]] });
  });
  tools.append(legend);
  said.append(text.root, text.wrote, tools);
  talk.append(said, next.root);
  app.picture.append(talk, machine.root);
  app.status.before(shelf.root);
  app.readouts.before(tiles.root);
  app.footer.prepend(makeTable());
  const notice = node("p", "sm-trouble", wrong, { role: "alert", hidden: !wrong });
  app.questions.after(notice);
  app.root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "w") write(app.get("written") + 1);
    else if (event.key === "Escape" && app.get("swap") !== BASE) press(BASE);
    else return;
    event.preventDefault();
  });
  if (swap) press(swap);
  else if (app.get("swap") !== BASE && !otherOf(app.values())) press(app.get("swap"));

  let kind;
  return (now, numbers) => {
    const i = wordOf(now);
    const tokens = tokensOf(now);
    const other = otherOf(now);
    text.show(now, numbers, i);
    next.show(now, numbers, i);
    machine.show(now, numbers, i);
    shelf.show(now);
    tiles.show(now);
    if (kind !== KINDS[tokens[i]]) {
      kind = KINDS[tokens[i]];
      const alike = WORDS.filter((word, n) => KINDS[n] === kind && n !== END);
      edit.replaceChildren(...alike.map((word) => node("option", "", word, { value: word })));
    }
    edit.value = WORDS[tokens[i]];
    const count = numbers.written.length;
    const stop = count > 0 && tokens.length + count >= LONGEST;
    const ended = numbers.written.at(-1) === END;
    legend.textContent = stop
      ? `It stops here: it has read stories of at most ${LONGEST - 1} words.`
      : ended && now.written
        ? "¶: the story ends here."
        : other
          ? "solid bar: more surprised than the base · dotted: less"
          : "bar under a word: how surprised the model was · violet: what the head attends to";
    const [n0, m0] = numbers.head;
    const weights = other ? numbers.swap_weights : numbers.weights;
    const p = Array.from(other ? numbers.swap_p : numbers.p);
    const j = tf.best(Array.from(weights));
    const model = other ? `the model with ${other}` : "the model";
    app.say(
      `After ${quoted(tokens[i])} ${model} predicts ${quoted(tf.best(p))} with probability ${share(Math.max(...p))}. Head ${n0 + 1}.${m0 + 1} attends most to ${quoted(tokens[j])}, ${back(i - j)}: ${share(weights[j])}.`,
    );
  };
}

export default tf.explorer({
  ends: () => ({ i: { high: Math.max(...Object.keys(STORIES).map(lastOf)) } }),
  // the word stands in the story that is told
  fit(values, app) {
    const { story, models } = { ...app.values(), ...app.first, ...values };
    if (values.i > lastOf(story)) delete values.i;
    if ("story" in values && !("i" in values)) values.i = lastOf(story);
    const isHead = (head) =>
      /^[1-9]\.[1-9]$/.test(head) && pairOf(head)[0] < BLOCKS && pairOf(head)[1] < HEADS;
    if (values.head && !isHead(values.head)) delete values.head;
    if (values.off && !values.off.every(isHead)) delete values.off;
    const known = ([place, word]) => place >= 1 && place <= lastOf(story) && NUMBER.has(word);
    if (values.changed && !values.changed.every(known)) delete values.changed;
    if ("swap" in values && values.swap !== BASE && !VARIANTS.has(values.swap)) delete values.swap;
    return values;
  },
  numbers,
  setup,
});
