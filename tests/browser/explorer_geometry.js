// What is wrong with the drawings of an explorer as they stand, one sentence each; see explorer_geometry.py.

const NEAR = 1; // pixels
const OFF = 2.5; // between the middle of a row and that of its label: faces sit higher or lower
const TOUCH = 2; // pixels by which words may meet
const SHAPES = "text, path, circle, ellipse, rect, line, polyline, polygon";

const seen = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
const clear = (colour) => colour === "none" || /^rgba\(.*, 0\)$/.test(colour);
const ends = (numbers, pick) => numbers.reduce((a, b) => pick(a, b)); // of very many, too

// The places between which a shape reaches, in its own units, with half of its line around them.
function reached(node, half) {
  const at = (...names) => names.map((name) => node.getAttribute(name));
  const d = node.localName === "line" ? `M${at("x1", "y1")}L${at("x2", "y2")}` : at("d")[0];
  if (!half || !/^[ML\d\s.,-]+L[ML\d\s.,-]+$/.test(d ?? "")) {
    const { x, y, width, height } = node.getBBox();
    return [
      [x - half, y - half],
      [x + width + half, y + height + half],
    ];
  }
  // the width of a straight line is across, and it ends where its ends are
  const strokes = d.split("M").slice(1);
  return strokes.flatMap((stroke) => {
    const places = stroke.split("L").map((place) =>
      place
        .trim()
        .split(/[\s,]+/)
        .map(Number),
    );
    return places.slice(1).flatMap(([x, y], n) => {
      const [a, b] = places[n];
      const long = Math.hypot(x - a, y - b) || 1;
      const [across, down] = [(half * (y - b)) / long, (half * (x - a)) / long].map(Math.abs);
      return [
        [Math.min(a, x) - across, Math.min(b, y) - down],
        [Math.max(a, x) + across, Math.max(b, y) + down],
      ];
    });
  });
}

// Where a shape or a text is painted in the window; null where it paints nothing.
function painted(node) {
  const { fill, stroke, strokeWidth, strokeLinecap } = getComputedStyle(node);
  const halo = node.localName === "text"; // the line around letters has the colour of the page
  const line = halo || clear(stroke) ? 0 : parseFloat(strokeWidth);
  if ((clear(fill) && !line) || node.getAttribute("d") === "") return null;
  const { width, height } = node.getBBox();
  if (!width && !height && strokeLinecap !== "round") return null; // a line of no length is a dot
  const places = reached(node, line / 2);
  const [[left, right], [top, bottom]] = [0, 1].map((n) => {
    const all = places.map((place) => place[n]);
    return [ends(all, Math.min), ends(all, Math.max)];
  });
  const to = node.getScreenCTM();
  const corners = [left, right].flatMap((x) =>
    [top, bottom].map((y) => [to.a * x + to.c * y + to.e, to.b * x + to.d * y + to.f]),
  );
  const [across, down] = [0, 1].map((n) => corners.map((corner) => corner[n]));
  return {
    left: Math.min(...across),
    right: Math.max(...across),
    top: Math.min(...down),
    bottom: Math.max(...down),
  };
}

// How far a box reaches out of another one, in pixels.
const out = (box, room) =>
  Math.max(
    room.left - box.left,
    box.right - room.right,
    room.top - box.top,
    box.bottom - room.bottom,
  );

const named = (node) => {
  const words = node.textContent.trim();
  if (words) return `“${words}”`;
  return `${node.localName} of ${node.closest("[class]").getAttribute("class")}`;
};

// The cells lie in their frame; heads and tails stand at their rows and columns.
function cells(svg, canvas) {
  const wrong = [];
  const rim = svg.querySelector(".tfx-rim");
  const [a, b] = [canvas, rim].map((node) => node.getBoundingClientRect());
  const off = Math.max(
    ...["left", "right", "top", "bottom"].map((side) => Math.abs(a[side] - b[side])),
  );
  if (off > NEAR) wrong.push(`the cells are ${off.toFixed(0)} px beside their frame`);
  const { rows, columns } = rim.dataset;
  for (const label of svg.querySelectorAll("[data-row], [data-column]")) {
    if (!label.textContent.trim()) continue;
    const { row, column } = label.dataset;
    const { top, bottom } = label.getBoundingClientRect();
    const to = label.getScreenCTM();
    const [x, y] = ["x", "y"].map((name) => Number(label.getAttribute(name)));
    const middle = (n, many, start, size) => start + ((Number(n) + 0.5) / many) * size;
    const far = row
      ? (top + bottom) / 2 - middle(row, rows, a.top, a.height)
      : to.a * x + to.c * y + to.e - middle(column, columns, a.left, a.width);
    if (Math.abs(far) > OFF)
      wrong.push(`${named(label)} is ${Math.abs(far).toFixed(0)} px beside what it names`);
  }
  return wrong;
}

// Words that lie over other words. What is slanted leaves its neighbours room, though boxes meet.
function crowded(svg) {
  const words = [...svg.querySelectorAll("text:not(.tfx-sign, [transform])")].filter(
    (node) => seen(node) && node.textContent.trim(),
  );
  const boxes = words.map((node) => {
    const { left, right, top, bottom } = node.getBoundingClientRect();
    const middle = (top + bottom) / 2;
    const half = 0.375 * parseFloat(getComputedStyle(node).fontSize); // of the height of a digit
    return { left, right, top: middle - half, bottom: middle + half };
  });
  return boxes.flatMap((a, n) =>
    boxes.slice(0, n).flatMap((b, m) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across <= TOUCH || down <= TOUCH) return [];
      const size = `${across.toFixed(0)} × ${down.toFixed(0)} px`;
      return [`${named(words[m])} and ${named(words[n])} overlap by ${size}`];
    }),
  );
}

function look(host) {
  const whole = host.querySelector(".tfx").getBoundingClientRect();
  const pictures = [...host.querySelectorAll(".tfx svg")];
  return pictures.flatMap((svg) => {
    if (svg.ownerSVGElement || !seen(svg)) return [];
    const wrong = [];
    const room = svg.getBoundingClientRect();
    const canvas = svg.closest(".tfx-frame")?.querySelector("canvas");
    if (canvas) wrong.push(...cells(svg, canvas));
    for (const node of svg.querySelectorAll(SHAPES)) {
      const box = seen(node) && painted(node);
      const far = box ? out(box, room) : 0;
      if (far > NEAR) wrong.push(`${named(node)} is ${far.toFixed(1)} px outside of the picture`);
    }
    wrong.push(...crowded(svg));
    // what is scrolled may be wider than its place
    let place = svg;
    for (let node = svg.parentElement; !node.matches(".tfx"); node = node.parentElement)
      if (/auto|scroll|hidden/.test(getComputedStyle(node).overflowX)) place = node;
    const { left, right } = place.getBoundingClientRect();
    if (left < whole.left - NEAR || right > whole.right + NEAR)
      wrong.push("is wider than the explorer");
    const title = svg.closest(".tfx-figure")?.querySelector(".tfx-title")?.textContent;
    const name = title || svg.getAttribute("aria-label") || "a picture";
    return wrong.map((what) => `${name.slice(0, 50)}: ${what}`);
  });
}

// Two frames draw what is new for the width that it has made itself; then a third one is at rest.
async function rest() {
  for (let n = 0; n < 3; n++) await new Promise(requestAnimationFrame);
}

// The state at hand; for paper also on a sheet that is narrower, where nothing is drawn anew.
async function standing(host, paper) {
  for (const fold of host.querySelectorAll("details")) fold.open = true;
  await document.fonts.ready;
  if (!paper) host.tfviz.paint();
  await rest();
  const wrong = look(host);
  if (!paper) return wrong;
  host.style.width = `${0.7 * host.clientWidth}px`;
  const narrower = look(host);
  host.style.width = "";
  return [...wrong, ...narrower];
}

// From the first state: each slider and handle at both ends, each box, each entry of a menu.
async function moving(host) {
  const found = [];
  const controls = () =>
    [...host.querySelectorAll("input:not([type=text]), select, .tfx-handle")].filter(
      (node) => !node.closest(".tfx-ask"),
    );
  const valuesOf = (node) => {
    if (node.matches(".tfx-handle")) return ["Home", "End"];
    if (node.localName === "select") return [...node.options].map((one) => one.value);
    if (node.type === "range") return [node.min, node.max];
    return [node.type === "radio" || !node.checked];
  };
  const move = (node, value) => {
    if (node.matches(".tfx-handle"))
      return node.dispatchEvent(new KeyboardEvent("keydown", { key: value, bubbles: true }));
    if (typeof value === "boolean") node.checked = value;
    else node.value = value;
    for (const type of ["input", "change"]) node.dispatchEvent(new Event(type, { bubbles: true }));
  };
  const show = () => {
    host.dispatchEvent(new CustomEvent("tfviz:show", { detail: {} }));
    host.tfviz.paint();
  };
  show();
  const plan = controls().flatMap((node, n) => valuesOf(node).map((value) => [n, value]));
  for (const [n, value] of plan) {
    show();
    const node = controls()[n];
    if (!node) continue; // another one has taken it away
    const name = node.dataset.key ?? node.dataset.name;
    const to = node.type === "radio" ? node.labels[0].textContent : value;
    move(node, value);
    host.tfviz.paint();
    await rest();
    found.push(...look(host).map((what) => [`${name} = ${to}`, what]));
  }
  show();
  return found;
}
