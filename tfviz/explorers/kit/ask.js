// A question that is answered before the explorer shows it: the picture shows a solved case and hides one
// thing, the reader says what it is, and the picture goes to the state that holds the answer.
//   const q = app.ask({name, question, about: picture, hides: [part or readout, …],
//     chips: [text, …] | ruler: {low, high, step, first} | number: {hint} | curve: {at: [x, …], log}
//       | ghost: {first, at(value) -> [x, y], to(x, y) -> value, draw(value) -> marks, by, label},
//     unit, near, format, truth: (numbers, state) => index | number | [y, …],
//     then: {knob: value}, guards: [knob, …], because})
//   q.open                    true until it is answered or passed over
//   q.tell(text, instead)     the text, or what stands for it ("?") while the question is open
// `hides` names parts: marks, frames, cells of a matrix or a table with this `part`, and readouts by their
// labels. They are not drawn, or shown as "?", while the question is open; nothing else is missing.
// `about` is the picture in which the answer is given (a ghost, a curve), and which a phone keeps in view.
// `truth` is worked out from numbers() at the first state with `then`, which the answer also sets. Nothing
// is shut: a reader who moves one of the guards (without them, the knobs of `then`) has looked. Then the
// answer is shown, and the state stays the reader's own.
// The answer is kept with the reader's progress (event "tfviz:answer"); without such a page, until reload.
// Passed over, it says what it is, too. Without a question, q is one that is not open.
function ask(app, spec) {
  if (!spec) return { open: false, sketch: null, marks: () => [], tell: (text) => text };
  const { name, question, about, chips, ruler, number, curve, ghost, truth, because = "" } = spec;
  const { then = {}, guards = Object.keys(then), hides = [], unit = "", near = 0 } = spec;
  const spoken = (value) => (Number.isInteger(value) ? count(value) : short(value));
  const format = spec.format ?? ((value) => `${spoken(value)}${unit && ` ${unit}`}`);
  const box = el("div", { className: "tfx-ask", role: "group", ariaLabel: "Your prediction" });
  const turn = el("div", { className: "tfx-turn" });
  const answers = el("div", { className: "tfx-answers" });
  const how = el("span", { className: "tfx-how" });
  const verdict = el("p", { className: "tfx-verdict", role: "status" });
  turn.append(answers, verdict);
  box.append(el("p", { className: "tfx-question" }, `${question} `, how), turn);
  app.questions.append(box);
  // the name of the answer, and the one that it had when the explorer was called otherwise
  const [key, ...before] = [app.tf.name, ...app.formerly].map((place) => `${place}/${name}`);
  const q = {
    open: true,
    said: undefined,
    peeked: false,
    node: box,
    spec,
    hides: (part) => q.open && hides.includes(part),
    tell: (text, instead = "?") => (q.open ? instead : text),
  };
  const ys = curve ? curve.at.map(() => undefined) : null;
  let guess = ghost?.first ?? ruler?.first; // where the ghost stands, or the ruler's thumb
  const dispatched = (type, said, named = key) => {
    const detail = { name: named, said };
    app.host.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
    return detail.said;
  };
  // the state that the answer speaks of
  const target = () => ({ ...app.values(), ...structuredClone(app.first), ...then });
  const right = () => truth(app.spec.numbers(target()), target());
  const shown = (value) => (chips ? chips[value] : format(value));
  const far = (a, b) => Math.hypot(...[a].flat().map((x, n) => x - [b].flat()[n]));

  const again = el(
    "button",
    { type: "button", className: "tfx-again", onclick: reopen },
    "ask me again",
  );
  // what the box says of an answer, undefined where none was given
  function judged(said) {
    const is = right();
    if (curve) return `${said ? "The dashed line is yours. " : ""}${because}`;
    if (said === undefined)
      return `${q.peeked ? "You looked: it is" : "It is"}: ${shown(is)}. ${because}`;
    if (chips ? said !== is : far(said, is) > near)
      return `✗ You said: ${shown(said)}; it is: ${shown(is)}. ${because}`;
    const exactly = shown(said) === shown(is);
    return `✓ You said: ${shown(said)}. ${exactly ? "So it is" : `Near enough: it is ${shown(is)}`}. ${because}`;
  }
  // the longest that the box may come to say: its room is kept from the start
  function longest() {
    const wrong = chips?.map((text, n) => [text.length, n]).sort(([a], [b]) => b - a)[0][1];
    const is = right();
    return [judged(undefined), judged(curve ? ys : (wrong ?? is)), judged(is)]
      .map((text) => `${text} ${app.next()} ask me again`)
      .sort((a, b) => b.length - a.length)[0];
  }
  // how it is answered, for a finger or for a mouse and keys
  q.help = () => {
    const touch = app.touched();
    const move = touch ? "with a finger, or tap where it belongs" : "or press the arrow keys";
    const ways = [
      ghost && `Drag the dashed ring in the picture${touch ? "" : ","} ${move}.`,
      curve &&
        `Draw the curve in the dashed field${touch ? " with a finger" : ", or point by point with the arrow keys"}.`,
      number?.hint,
    ];
    tell(how, ways.filter(Boolean).join(" "));
    how.hidden = !how.textContent;
  };

  function write() {
    box.toggleAttribute("data-open", q.open);
    app.redraw("asked");
    q.help();
    turn.dataset.room = plainly(longest());
    verdict.textContent = "";
    if (!q.open) verdict.append(...worded(`${judged(q.said)} ${app.next()} `), again);
  }
  function closed(said, peeked = false) {
    Object.assign(q, { open: false, said, peeked });
  }
  // asks whether a guard has moved since the state `before`
  q.looked = (before) => {
    const moved = (knob) => String(before[knob]) !== String(app.model.get(knob));
    if (!q.open || !guards.some(moved)) return;
    closed(undefined, true);
    write();
  };
  function settle(said) {
    closed(said);
    if (said !== undefined) dispatched("tfviz:answer", said);
    app.glide({ ...structuredClone(app.first), ...then });
    write();
  }
  function reopen() {
    q.open = true;
    q.said = undefined;
    ys?.fill(undefined);
    guess = ghost?.first ?? ruler?.first;
    if (give) give.disabled = true;
    if (output) tell(output, "not yet");
    for (const named of [key, ...before]) dispatched("tfviz:answer", null, named);
    app.bring(structuredClone(app.first));
    write();
    app.keepRoom();
    answers.querySelector("button, input")?.focus();
  }

  const put = (text, action) => app.button(text, action, { into: answers });
  let give; // the button that takes what was dragged or drawn
  const output = ruler || ghost ? el("output", { className: "tfx-guess" }, "not yet") : null;
  const guessed = (value) => {
    guess = value;
    give.disabled = false;
    tell(output, format(value));
    app.redraw("guess");
  };
  if (chips) chips.forEach((text, n) => put(text, () => settle(n)));
  if (number) {
    const input = el("input", { type: "text", inputMode: "decimal", ariaLabel: question });
    input.dataset.lmSuppressShortcuts = "true";
    const take = () => {
      const value = Number(input.value.replace(",", ".").replace("−", "-"));
      if (input.value.trim() && Number.isFinite(value)) settle(value);
      else input.focus();
    };
    input.addEventListener("keydown", (event) => event.key === "Enter" && take());
    answers.append(input);
    if (unit) answers.append(unit);
    put("that is my answer", take);
  }
  if (ruler) {
    const { low: min, high: max, step = 1 } = ruler;
    const input = el("input", { type: "range", min, max, step, ariaLabel: question });
    input.dataset.lmSuppressShortcuts = "true";
    const moved = () => {
      input.style.setProperty("--fill", `${(100 * (input.value - min)) / (max - min)}%`);
      input.setAttribute("aria-valuetext", format(Number(input.value)));
    };
    const ends = [min, max].map((end) => el("span", { className: "tfx-end" }, format(end)));
    input.value = guess ?? (min + max) / 2;
    moved();
    input.addEventListener("input", () => {
      moved();
      guessed(Number(input.value));
    });
    answers.append(el("span", { className: "tfx-ruler" }, ends[0], input, ends[1]));
  }
  if (ghost || ruler) {
    answers.append(el("span", {}, "your answer: ", output));
    give = put("that is my answer", () => settle(guess));
    give.disabled = true;
  }
  if (curve) {
    give = put("that is my curve", () => settle(filled()));
    give.disabled = true;
  }
  put("just show me", () => settle(undefined)).classList.add("tfx-quiet");
  // between the points that were drawn, straight
  function filled() {
    const some = ys.flatMap((y, k) => (y === undefined ? [] : [k]));
    return ys.map((y, k) => {
      if (y !== undefined) return y;
      const a = some.filter((n) => n < k).at(-1) ?? some[0];
      const b = some.find((n) => n > k) ?? some.at(-1);
      if (a === b) return ys[a];
      const share = (k - a) / (b - a);
      return curve.log ? ys[a] * (ys[b] / ys[a]) ** share : ys[a] + (ys[b] - ys[a]) * share;
    });
  }
  // --- what the picture asks for
  Object.defineProperty(q, "sketch", {
    get: () => {
      const changed = () => {
        give.disabled = !ys.some((y) => y !== undefined);
      };
      return curve && q.open ? { at: curve.at, ys, changed } : null;
    },
  });
  // the reader's answer: the curve, or the shape of the ghost
  q.marks = () => {
    if (q.open) return ghost?.draw ? [ghost.draw(guess)].flat() : [];
    if (curve && q.said)
      return [{ line: q.said, at: curve.at, colour: "key", dash: "6 4", name: "you" }];
    return ghost?.draw && q.said !== undefined && far(q.said, right()) > near
      ? [ghost.draw(q.said)].flat()
      : [];
  };
  q.to = (x, y) => guessed(ghost.to(x, y));
  q.handles = () =>
    ghost && q.open
      ? [
          {
            handle: ghost.at(guess),
            name: "your answer",
            label: ghost.label ?? "your answer",
            text: format(guess),
            shape: ghost.shape,
            by: ghost.by,
            ghost: true,
            put: q.to,
          },
        ]
      : [];
  q.picks = () => Boolean(ghost) && q.open;
  q.target = target;
  // for the tests: what the box names, and what the state at hand makes of it
  q.facts = () => ({
    name,
    question,
    open: q.open,
    truth: right(),
    text: plainly(shown(right())),
    now: truth(app.numbers(), app.values()),
    kind: Object.keys({ chips, ruler, number, curve, ghost }).find((kind) => spec[kind]),
  });
  q.start = () => {
    const said = [key, ...before]
      .map((named) => dispatched("tfviz:asked", undefined, named))
      .find((answer) => answer !== undefined);
    const many = [curve ? ys : (ghost?.first ?? 0)].flat().length;
    const fine = [said].flat().length === many && [said].flat().every(Number.isFinite);
    if (fine && (!chips || chips[said] !== undefined)) closed(said);
    write();
    q.looked(app.first); // a link may have moved them
  };
  if (about) {
    about.question = q;
    about.lead();
  }
  app.asked.push(q);
  return q;
}
