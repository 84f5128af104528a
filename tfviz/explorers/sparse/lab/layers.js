// What the layers bring, and whether that meets a goal.

// Row `query` of the product of ½ (I + D⁻¹ M) over the layers, from the top layer down.
function influenceOf(stack, layers, query) {
  let share = new Float64Array(stack[0].L);
  share[query] = 1;
  for (let n = layers - 1; n >= 0; n--) {
    const { starts, keys, L } = stack[n % stack.length],
      next = new Float64Array(L);
    for (let i = 0; i < L; i++) {
      const mine = share[i];
      if (!mine) continue;
      const [a, b] = [starts[i], starts[i + 1]];
      next[i] += a === b ? mine : mine / 2;
      for (let k = a; k < b; k++) next[keys[k]] += mine / 2 / (b - a);
    }
    share = next;
  }
  return share;
}

// Which positions matter to `query`, layer by layer from the top; and one shortest way to `token`.
function coneOf(stack, layers, query, token) {
  const { L } = stack[0];
  const layer = (n) => stack[(n - 1) % stack.length];
  const cone = Array.from({ length: layers + 1 }, () => new Uint8Array(L));
  const looked = new Map(stack.map((one) => [one, new Uint8Array(L)])); // rows that were followed
  cone[layers][query] = 1;
  for (let n = layers; n > 0; n--) {
    const { starts, keys } = layer(n);
    const done = looked.get(layer(n));
    cone[n - 1].set(cone[n]);
    for (let i = 0; i < L; i++) {
      if (!cone[n][i] || done[i]) continue;
      done[i] = 1;
      for (let k = starts[i]; k < starts[i + 1]; k++) cone[n - 1][keys[k]] = 1;
    }
  }
  const hears = [Uint8Array.from({ length: L }, (_, j) => Number(j === token))];
  for (let n = 1, quiet = 0; n <= layers; n++) {
    const { starts, keys } = layer(n);
    const below = hears[n - 1];
    hears[n] = below.slice();
    let more = false;
    for (let i = 0; quiet < stack.length && i < L; i++) {
      for (let k = starts[i]; !hears[n][i] && k < starts[i + 1]; k++) hears[n][i] = below[keys[k]];
      more ||= hears[n][i] !== below[i];
    }
    quiet = more ? 0 : quiet + 1; // a whole cycle of layers that adds nothing: nothing will
  }
  if (!hears[layers][query]) return { cone, path: null };
  const path = [query];
  for (let n = layers, at = query; n > 0; n--) {
    if (!hears[n - 1][at])
      at = layer(n)
        .keysOf(at)
        .find((j) => hears[n - 1][j]);
    path.unshift(at);
  }
  return { cone, path };
}

// The same verdict, in the same words, as SparseLab.goal_report().
function verdict(goal, L, stack, reach) {
  const why = [],
    ahead = stack.find((p) => p.ahead)?.ahead;
  const worst = stack.reduce((a, b) =>
    b.most > a.most || (b.most === a.most && b.row < a.row) ? b : a,
  );
  const pairs = Math.max(...stack.map((p) => p.pairs));
  if ((goal.L ?? L) !== L) why.push(`L is ${L}, but the goal is for L = ${goal.L}`);
  if (goal.causal && ahead)
    why.push(`query ${ahead[0]} sees token ${ahead[1]}, which is in its future`);
  if (worst.most > (goal.max_keys ?? L))
    why.push(`query ${worst.row} has ${worst.most} keys (${goal.max_keys} are allowed)`);
  if (pairs > (goal.max_pairs ?? L * L))
    why.push(`${pairs} pairs are used (${goal.max_pairs} are allowed)`);
  if (goal.max_hops !== undefined && reach.unreachable) {
    why.push(
      `${reach.unreachable} ${reach.unreachable === 1 ? "pair is" : "pairs are"} never connected (first: query ${reach.lost[0]}, token ${reach.lost[1]})`,
    );
  } else if (goal.max_hops !== undefined && reach.far > goal.max_hops) {
    why.push(
      `query ${reach.farthest[0]} needs ${reach.far} hops to token ${reach.farthest[1]} (${goal.max_hops} are allowed)`,
    );
  }
  return {
    met: !why.length,
    message: why.length ? `Goal not met: ${why.join("; ")}.` : "Goal met.",
  };
}
