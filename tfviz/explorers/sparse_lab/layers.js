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
  const { L } = stack[0],
    layer = (n) => stack[(n - 1) % stack.length];
  const cone = Array.from({ length: layers + 1 }, () => new Uint8Array(L)),
    hears = cone.map((row) => row.slice());
  cone[layers][query] = 1;
  for (let n = layers; n > 0; n--) {
    const { starts, keys } = layer(n),
      [above, below] = [cone[n], cone[n - 1]];
    for (let i = 0; i < L; i++) {
      if (!above[i]) continue;
      below[i] = 1;
      for (let k = starts[i]; k < starts[i + 1]; k++) below[keys[k]] = 1;
    }
  }
  hears[0][token] = 1;
  for (let n = 1; n <= layers; n++) {
    const { starts, keys } = layer(n),
      [below, above] = [hears[n - 1], hears[n]];
    for (let i = 0; i < L; i++) {
      let heard = below[i];
      for (let k = starts[i]; !heard && k < starts[i + 1]; k++) heard = below[keys[k]];
      above[i] = heard;
    }
  }
  let path = null;
  if (hears[layers][query]) {
    path = [query];
    for (let n = layers, at = query; n > 0; n--) {
      if (!hears[n - 1][at])
        at = layer(n)
          .keysOf(at)
          .find((j) => hears[n - 1][j]);
      path.unshift(at);
    }
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
  if ((goal.L ?? L) !== L) why.push(`L is ${L}, the goal is for L = ${goal.L}`);
  if (goal.causal && ahead)
    why.push(`query ${ahead[0]} sees token ${ahead[1]}, which is in its future`);
  if (worst.most > (goal.max_keys ?? L))
    why.push(`query ${worst.row} has ${worst.most} keys, ${goal.max_keys} are allowed`);
  if (pairs > (goal.max_pairs ?? L * L))
    why.push(`${pairs} pairs are used, ${goal.max_pairs} are allowed`);
  if (goal.max_hops !== undefined && reach.unreachable) {
    why.push(
      `${reach.unreachable} ${reach.unreachable === 1 ? "pair is" : "pairs are"} never connected, the first: query ${reach.lost[0]}, token ${reach.lost[1]}`,
    );
  } else if (goal.max_hops !== undefined && reach.far > goal.max_hops) {
    why.push(
      `query ${reach.farthest[0]} needs ${reach.far} hops to token ${reach.farthest[1]}, ${goal.max_hops} are allowed`,
    );
  }
  return {
    met: !why.length,
    message: why.length ? `Goal not met: ${why.join("; ")}.` : "Goal met.",
  };
}
