// What happens in time: a knob that can be played, stepped and scrubbed.
//   app.motion("merges", {last: () => 12, every: 700, verbs: ["undo", "merge"], glide})
//   -> {slider, share(), play(), stop()}
// `every` is the time of a step in milliseconds. With `glide`, share() runs from 0 to 1 in 200 ms
// after each step, for what slides from one place to the next. With reduced motion nothing plays by
// itself and nothing glides: it is stepped.
function motion(app, key, /** @type {any} */ options = {}) {
  const { last, every = 700, verbs = ["back", "on"], glide = false, ...words } = options;
  const { of } = app.about[key]; // of a list, the place in it is the time
  const { step = 1 } = of ? {} : app.about[key];
  const begin = () => (of ? 0 : app.ends(key).low);
  const end = () => last?.() ?? (of ? of.length - 1 : app.ends(key).high);
  const now = () => clamp(of ? nearestIn(of, app.get(key)) : app.get(key), begin(), end());
  const slider = app.knob(key, of ? words : { read: now, ...words });
  const at = (n) => (of ? of[n] : n);
  const go = (to) => app.set(key, at(clamp(to, begin(), end())));
  let timer;
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
    show();
  };
  const play = () => {
    if (now() >= end()) go(begin());
    timer = setInterval(() => {
      go(now() + step);
      if (now() >= end()) stop();
    }, every);
    show();
  };
  const row = el("div", { className: "tfx-motion", role: "group", ariaLabel: `${key}, in time` });
  (words.into ?? app.controls).append(row);
  slider.more = row;
  const put = (text, title, action) => app.button(text, action, { into: row, title });
  const back = put(`← ${verbs[0]}`, "one step back", () => {
    stop();
    go(now() - step);
  });
  const button = put("▶ play", "", () => (timer ? stop() : play()));
  const on = put(`${verbs[1]} →`, "one step on", () => {
    stop();
    go(now() + step);
  });
  function show() {
    button.textContent = timer ? "❚❚ pause" : "▶ play";
    button.hidden = app.still;
    back.disabled = now() <= begin();
    on.disabled = now() >= end();
  }
  // whoever takes hold of something wants it to stand still
  const held = ({ target }) => {
    if (timer && !row.contains(target)) stop();
  };
  app.root.addEventListener("pointerdown", held);
  app.root.addEventListener("keydown", held);
  const hidden = () => document.hidden && timer && stop();
  document.addEventListener("visibilitychange", hidden);
  app.cleanup.push(() => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", hidden);
  });

  let before;
  let since = 0;
  app.fields.push(() => {
    if (!of) slider.limit?.(begin(), end());
    slider.update();
    show();
  });
  const share = () => {
    if (!glide || app.still || app.rehearsing) return 1;
    const value = now();
    if (value !== before) {
      since = before !== undefined && Math.abs(value - before) === step ? performance.now() : 0;
      before = value;
    }
    const part = since ? clamp((performance.now() - since) / 200, 0, 1) : 1;
    if (part < 1) requestAnimationFrame(() => app.redraw("motion"));
    return part * part * (3 - 2 * part);
  };
  return { slider, share, play, stop };
}
