// Colours as numbers, the theme, and state in an address.

const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const known = new Map();
function rgb(colour) {
  if (!known.has(colour)) {
    probe.canvas.width = probe.canvas.height = 1;
    probe.fillStyle = colour;
    probe.fillRect(0, 0, 1, 1);
    known.set(colour, [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)]);
  }
  return known.get(colour);
}
const mix = (a, b, share) => {
  const [x, y] = [rgb(a), rgb(b)];
  return `rgb(${x.map((v, k) => Math.round(v + (y[k] - v) * share)).join(" ")})`;
};
// So many per cent of a role's colour, and the rest of the page's: paler, in both themes.
const faint = (role, share) => `color-mix(in srgb, var(--tfx-${role}) ${share}%, var(--tfx-page))`;
const word = (colour) => {
  // a pixel of ImageData seen as Uint32 (little-endian)
  const [r, g, b] = rgb(colour);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
};

function isDark() {
  const html = document.documentElement,
    body = document.body;
  if (html.dataset.theme === "dark" || html.dataset.theme === "light")
    return html.dataset.theme === "dark";
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  if (html.hasAttribute("theme")) return html.getAttribute("theme") === "dark"; // Colab
  if (/\bvscode-(dark|light)/.test(body.className)) return body.classList.contains("vscode-dark");
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function onTheme(callback) {
  const watch = new MutationObserver(callback);
  const media = matchMedia("(prefers-color-scheme: dark)");
  watch.observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme", "theme", "class"],
  });
  watch.observe(document.body, {
    attributes: true,
    attributeFilter: ["data-jp-theme-light", "class"],
  });
  media.addEventListener("change", callback);
  return () => {
    watch.disconnect();
    media.removeEventListener("change", callback);
  };
}

// State in the address: base64url of the JSON of what differs from the first state.
const pack = (value) =>
  btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
const unpack = (text) =>
  JSON.parse(
    new TextDecoder().decode(
      Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0)),
    ),
  );

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // not a secure page, or not allowed
    const area = el("textarea", { value: text, style: "position:fixed;opacity:0" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
