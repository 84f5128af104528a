// Python in a worker of its own, for try.js. It is started from a text (a data: address), so that it
// has no origin: what a reader writes reaches neither the site's storage nor a network.
(function () {
  "use strict";
  // What ends Python is said in the page; Pyodide would ask the reader to report it.
  self.console.error = () => {};

  // In a worker like this one WebKit reads no Blob and imports no blob: address.
  const unpacked = (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Response(bytes).body.pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  };
  const imported = async (text) => {
    const source = new TextDecoder().decode(await unpacked(text));
    return import(`data:text/javascript;charset=utf-8,${encodeURIComponent(source)}`);
  };
  let python;

  /** Start Python; the first time, give its memory, from which later ones start ten times faster. */
  async function start(held) {
    const [wasm, library] = await Promise.all([unpacked(held.wasm), unpacked(held.library)]);
    const files = {
      "pyodide.asm.wasm": [wasm, "application/wasm"],
      "python_stdlib.zip": [library, "application/zip"],
    };
    // what Pyodide fetches is here already, and nothing else may be fetched
    self.fetch = async (address) => {
      const [bytes, type] = files[String(address).split("/").pop()];
      return new Response(bytes, { headers: { "content-type": type } });
    };
    const { loadPyodide } = await imported(held.loader);
    const { snapshot } = held;
    python = await loadPyodide({
      ...(snapshot ? { _loadSnapshot: snapshot } : { _makeSnapshot: true }),
      indexURL: "https://python.invalid/",
      lockFileContents: held.lock,
      createPyodideModule: (await imported(held.module)).default,
      stdin: () => undefined,
    });
    const memory = snapshot ? null : python.makeMemorySnapshot();
    for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "WebTransport"])
      self[name] = () => {
        throw new Error("there is no network here");
      };
    python.runPython(held.judge);
    python.globals.get("start")(held.checks, held.lists);
    return memory;
  }

  function judged({ answer, given, tests, label }) {
    const verdict = python.globals.get("judged")(answer, given, tests, label);
    return verdict.toJs({ dict_converter: Object.fromEntries });
  }

  self.onmessage = async ({ data }) => {
    try {
      if (data.held) {
        const memory = await start(data.held);
        self.postMessage({ memory }, { transfer: memory ? [memory.buffer] : [] });
      } else self.postMessage({ verdict: judged(data) });
    } catch (error) {
      self.postMessage({ broken: String(error.message || error) });
    }
  };
})();
