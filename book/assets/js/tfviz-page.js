// The page shim: brings explorers to life in a page without a kernel.
//
// Expects beside itself (…/_static/js/tfviz-page.js): …/_static/explorers/kit.js and .css, <name>.js,
// .css, .reg.js, fetched when the first explorer of its kind comes near the screen. From file:// a
// module may not be imported: <name>.reg.js carries its text instead.
(function () {
  "use strict";
  const root = /** @type {HTMLScriptElement} */ (document.currentScript).src.replace(
    /js\/tfviz-page\.js.*$/,
    "",
  );
  const texts = {},
    modules = {},
    scripts = {};
  let kit;
  window.tfvizPage = {
    define: (name, text) => {
      texts[name] = text;
    },
  };

  function script(address) {
    return (scripts[address] ??= new Promise((done, failed) => {
      const node = document.createElement("script");
      node.src = address;
      node.onload = done;
      node.onerror = () => failed(new Error(`cannot load ${address}`));
      document.head.append(node);
    }));
  }

  function style(address) {
    return new Promise((done) => {
      const node = document.createElement("link");
      node.rel = "stylesheet";
      node.href = address;
      node.onload = node.onerror = done;
      document.head.append(node);
    });
  }

  function load(name) {
    return (modules[name] ??= (async () => {
      // one kit for all explorers of the page; its sheet stands before theirs
      kit ??= [style(`${root}explorers/kit.css`), script(`${root}explorers/kit.js`)];
      const styled = Promise.all([kit[0], style(`${root}explorers/${name}.css`)]);
      await kit[1];
      let module;
      if (location.protocol === "file:") {
        await script(`${root}explorers/${name}.reg.js`);
        module = await import(
          URL.createObjectURL(new Blob([texts[name]], { type: "text/javascript" }))
        );
      } else module = await import(`${root}explorers/${name}.js`);
      await styled; // before the first picture: its sizes and colours are in there
      return module.default;
    })());
  }

  // The address of an explorer on a page of its own (embed.js), for a frame in somebody else's page.
  function framed(host, state) {
    const site = new URL("..", root).href;
    const section = host.closest("section[id]")?.id;
    const from = location.href.split(/[?#]/)[0].replace(site, "") + (section ? `#${section}` : "");
    const said = { explorer: host.dataset.explorer, label: host.ariaLabel, from, state };
    return `${site}embed.html?${new URLSearchParams(said)}`;
  }

  async function mountExplorer(host) {
    if (host.dataset.mounting) return;
    host.dataset.mounting = "true";
    try {
      const widget = await load(host.dataset.explorer);
      const text = host.querySelector("script").textContent;
      const state = JSON.parse(text);
      if (location.protocol !== "file:") host.dataset.embed ??= framed(host, text);
      const model = new tfvizKit.Model(state);
      host.tfvizModel = model; // for tests and for the curious at the console
      await widget.render({ model, el: host });
    } catch (error) {
      const place = host.querySelector(".tfviz-explorer-body") || host;
      place.textContent = `The explorer could not start: ${error.message}`;
      console.error(error);
    }
  }

  // --- when
  function start() {
    const hosts = [...document.querySelectorAll(".tfviz-explorer")];
    const watch = new IntersectionObserver(
      (seen) => {
        for (const { target, isIntersecting } of seen)
          if (isIntersecting) {
            watch.unobserve(target);
            mountExplorer(target);
          }
      },
      { rootMargin: "300px" },
    );
    for (const host of hosts) watch.observe(host);
    // a link to a state: bring its explorer into view
    const linked = /^#([a-z_]+)(?:-(\d+))?=/.exec(location.hash);
    if (linked) {
      const kin = hosts.filter(({ dataset }) =>
        [dataset.explorer, dataset.formerly].includes(linked[1]),
      );
      const host = kin[Number(linked[2] || 1) - 1];
      if (host) {
        mountExplorer(host);
        host.scrollIntoView({ block: "center" });
      }
    }
    addEventListener("beforeprint", () => hosts.forEach(mountExplorer));
  }
  // deferred scripts behind this one, such as the progress, must hear what an explorer asks
  if (document.readyState === "complete") start();
  else {
    const once = new AbortController();
    const begin = () => {
      once.abort();
      start();
    };
    document.addEventListener("DOMContentLoaded", begin, once);
    addEventListener("load", begin, once);
  }
})();
