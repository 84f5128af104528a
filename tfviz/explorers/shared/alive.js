// A GPT that runs in the page, and whose parts can be exchanged. `model` is what
// `tfviz.stored.page_gpt.handed_over` gives: its sizes, the names of its parts, formulas, weights.
//
//   const start = alive(model)
//   const run = start({off: [[block, head], …]})     a text begins; these heads find nothing
//   const trace = run.step(token)                     all that the model does with this token
//   start.lens(row)                                   {logits, p}, had the stream stopped at this row
//
// A trace holds the place i, the token, the logits of the next token and their probabilities p;
// `stream`, the 2 N + 1 rows before the first block and after each half of a block; and of each block
//   q, k, v        rows of the token, heads side by side; q and k as they meet, after any turn
//   A[head][j]     what the token takes from token j
//   alpha, beta    of each head, where a gated delta rule has them
//   out, said      what the heads find, side by side, and what is added to the stream for it
//   hidden, fed    the row between the feed-forward layers, and what is added to the stream for it
//   kept           how many bytes the layer has to keep for the next token
// Blocks, heads, places and tokens are numbered from 0.
function alive(model) {
  const weights = unpacked(model.weights);
  const table = weights["embed.weight"];
  const { d, vocab } = model;
  const product = (x, M) => tf.product(x, M, 1, x.length, M.length / x.length, { right: true });
  const owned = (at) => ({
    numbers: (name) => weights[`${at}.${name}`],
    inside: (name) => owned(`${at}.${name}`),
    times: (x, name) => {
      const y = product(x, weights[`${at}.${name}.weight`]);
      const b = weights[`${at}.${name}.bias`];
      return b ? tf.plus(y, b) : y;
    },
  });
  const place = partOf("positions", model.positions, owned("embed.positions"));
  const last = partOf("norms", model.norm, owned("stack.norm"));
  const blocks = model.blocks.map(({ at, order, norms, mixer, feed }) => {
    const own = owned(at);
    return {
      h: mixer.h,
      order: partOf("orders", order),
      norms: norms.map((told, n) => partOf("norms", told, own.inside(`norms.${n}`))),
      mixer: partOf("mixers", mixer, own.inside("attend")),
      feed: partOf("feeds", feed, own.inside("feed")),
    };
  });
  const lens = (row) => {
    const logits = product(last(row), table);
    return { logits, p: tf.softmax(logits) };
  };

  function start({ off = [] } = {}) {
    for (const [n, m] of off) {
      if (blocks[n] && m >= 0 && m < blocks[n].h) continue;
      throw new Error(`There is no head ${m} in a block ${n} that could be switched off.`);
    }
    const silent = blocks.map((_, n) => off.filter(([block]) => block === n).map(([, m]) => m));
    const states = blocks.map(({ mixer }) => mixer.begin());
    let i = 0;
    const step = (token) => {
      if (!(Number.isInteger(token) && token >= 0 && token < vocab)) {
        throw new Error(`Token ${token} is none of 0 … ${vocab - 1}, which the model can read.`);
      }
      if (model.longest !== null && i >= model.longest) {
        throw new Error(`The model has learned ${model.longest} places, and all of them are used.`);
      }
      let x = table.slice(token * d, (token + 1) * d).map((y) => model.scale * y);
      x = place(x, i);
      const stream = [x];
      const traces = blocks.map(({ order, norms, mixer, feed }, n) => {
        let mixed, thought;
        x = order(x, (row) => (mixed = mixer.ask(states[n], row, i, silent[n])).said, norms[0]);
        stream.push(x);
        x = order(x, (row) => (thought = feed(row)).fed, norms[1]);
        stream.push(x);
        return { ...mixed, ...thought, kept: model.bytes * mixer.kept(states[n]) };
      });
      return { i: i++, token, stream, blocks: traces, ...lens(x) };
    };
    return { step };
  }
  return Object.assign(start, { lens, weights });
}
