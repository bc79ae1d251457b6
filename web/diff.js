// The difference of two texts by lines (Myers, "An O(ND) difference algorithm", 1986).

/** Lines of a text; what follows the last line break counts as a line only if there is something. */
export function linesOf(text) {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/**
 * Steps from a to b, lists of lines: [sign, i, j], where i and j count the lines of a and b before the step.
 * The sign is " ", "-" or "+". As few lines change as possible; deletions come before insertions.
 */
export function difference(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let tail = 0;
  while (tail < a.length - start && tail < b.length - start && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const signs = [
    ..." ".repeat(start),
    ...middle(a.slice(start, a.length - tail), b.slice(start, b.length - tail)),
    ..." ".repeat(tail),
  ];
  return placed(deletionsFirst(slid(deletionsFirst(signs), a, b)));
}

/** Lines that are added and removed on the way from one text to another. */
export function count(steps) {
  let added = 0;
  let removed = 0;
  for (const [sign] of steps) {
    if (sign === "+") added++;
    else if (sign === "-") removed++;
  }
  return { added, removed };
}

/** Signs of a shortest way from a to b: the furthest-reaching paths, then back along them. */
function middle(a, b) {
  const [n, m] = [a.length, b.length];
  const most = n + m;
  const reach = new Int32Array(2 * most + 3);
  const at = (k) => k + most + 1;
  const history = [];
  for (let d = 0; d <= most; d++) {
    history.push(reach.slice(at(-d) - 1, at(d) + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && reach[at(k - 1)] < reach[at(k + 1)]) ? reach[at(k + 1)] : reach[at(k - 1)] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      reach[at(k)] = x;
      if (x >= n && x - k >= m) return backwards(history, n, m);
    }
  }
  return [];
}

function backwards(history, x, y) {
  const signs = [];
  for (let d = history.length - 1; d > 0; d--) {
    const reach = history[d];
    const at = (k) => k + d + 1;
    const k = x - y;
    const down = k === -d || (k !== d && reach[at(k - 1)] < reach[at(k + 1)]);
    const from = reach[at(down ? k + 1 : k - 1)];
    const start = down ? from : from + 1;
    for (; x > start; x--, y--) signs.push(" ");
    signs.push(down ? "+" : "-");
    [x, y] = down ? [from, from - k - 1] : [from, from - k + 1];
  }
  for (; x > 0; x--) signs.push(" ");
  return signs.reverse();
}

function deletionsFirst(signs) {
  const sorted = [];
  let waiting = 0;
  for (const sign of signs) {
    if (sign === "+") waiting++;
    else {
      if (sign === " ") for (; waiting; waiting--) sorted.push("+");
      sorted.push(sign);
    }
  }
  return [...sorted, ..."+".repeat(waiting)];
}

/**
 * A run of one sign may often stand some lines higher or lower: `def` of the next function, or the blank line before it.
 * It goes where it begins with the least indented line, so that whole blocks are marked.
 */
function slid(signs, a, b) {
  let [i, j] = [0, 0];
  for (let start = 0; start < signs.length; start++) {
    const sign = signs[start];
    let end = start;
    while (end < signs.length && signs[end] === sign) end++;
    if (sign !== " " && signs[start - 1] !== "-" && signs[end] !== "+") {
      const [lines, first] = sign === "-" ? [a, i] : [b, j];
      const size = end - start;
      let [up, down] = [0, 0];
      while (signs[start - up - 1] === " " && lines[first - up - 1] === lines[first + size - up - 1]) up++;
      while (signs[end + down] === " " && lines[first + down] === lines[first + size + down]) down++;
      let best = 0;
      let least = Infinity;
      for (let shift = -up; shift <= down; shift++) {
        const found = depth(lines, first + shift, size);
        if (found <= least) [best, least] = [shift, found];
      }
      if (best) {
        signs.fill(" ", start, end).fill(sign, start + best, end + best);
        start += best;
        end += best;
        i += best;
        j += best;
      }
    }
    if (sign !== "+") i += end - start;
    if (sign !== "-") j += end - start;
    start = end - 1;
  }
  return signs;
}

/** How deep a run's first line that is not blank is indented, and the line behind it. */
function depth(lines, first, size) {
  const run = lines.slice(first, first + size);
  const inside = run.find((line) => line.trim()) ?? "";
  const behind = lines.slice(first + size).find((line) => line.trim()) ?? "";
  return indent(inside) + indent(behind);
}

const indent = (line) => line.length - line.trimStart().length;

function placed(signs) {
  let [i, j] = [0, 0];
  return signs.map((sign) => [sign, sign === "+" ? i : i++, sign === "-" ? j : j++]);
}
