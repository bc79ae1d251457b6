// Shows files with what changed in them.

import { difference, linesOf } from "./diff.js";

const LANGUAGES = { py: "python", md: "markdown", toml: "ini", cfg: "ini", yml: "yaml", yaml: "yaml", sh: "bash" };
const AROUND = 3; // unchanged lines around a change, where all changes are shown

let highlighter = null;

/** Loads the colours; until then code is shown without. */
export async function loadColours() {
  const { default: found } = await import("./vendor/core.min.js");
  const names = [...new Set(Object.values(LANGUAGES))];
  const grammars = await Promise.all(names.map((name) => import(`./vendor/languages/${name}.min.js`)));
  names.forEach((name, index) => found.registerLanguage(name, grammars[index].default));
  highlighter = found;
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const kept = new Map();

/** The lines of a file as HTML, coloured; an element that goes over several lines is closed and opened again in each. */
function coloured(path, text) {
  const language = LANGUAGES[path.split(".").pop()];
  if (!highlighter || !language) return linesOf(text).map(escaped);
  const key = `${language} ${text}`;
  if (!kept.has(key)) {
    if (kept.size > 100) kept.clear();
    const open = [];
    const lines = linesOf(highlighter.highlight(text, { language }).value).map((line) => {
      const before = open.join("");
      for (const [tag] of line.matchAll(/<span[^>]*>|<\/span>/g)) {
        if (tag === "</span>") open.pop();
        else open.push(tag);
      }
      return before + line + "</span>".repeat(open.length);
    });
    kept.set(key, lines);
  }
  return kept.get(key);
}

const NAMES = { " ": "span", "+": "ins", "-": "del" };

function row([sign, i, j], before, after, number) {
  const name = NAMES[sign];
  const html = sign === "-" ? before[i] : after[j];
  return `<${name} class="row" data-n="${number}">${html}\n</${name}>`;
}

/** One file as HTML. `old` and `now` are its texts; null: it is not there. */
export function file(path, old, now) {
  if (now === null) return rows(path, linesOf(old).map((_, index) => ["-", index, 0]), old, "");
  if (old === null || old === now) {
    const sign = old === null ? "+" : " ";
    return rows(path, linesOf(now).map((_, index) => [sign, 0, index]), "", now);
  }
  return rows(path, difference(linesOf(old), linesOf(now)), old, now);
}

function rows(path, steps, old, now) {
  const [before, after] = [coloured(path, old), coloured(path, now)];
  return steps.map((step) => row(step, before, after, step[0] === "-" ? "" : step[2] + 1)).join("");
}

/** Every changed file as a heading and its changes with some lines around them. */
export function changes(list) {
  return list.map(({ path, old, now, badge }) => {
    const [before, after] = [coloured(path, old ?? ""), coloured(path, now ?? "")];
    const steps = difference(linesOf(old ?? ""), linesOf(now ?? ""));
    const near = new Uint8Array(steps.length);
    steps.forEach(([sign], index) => {
      if (sign !== " ") near.fill(1, Math.max(0, index - AROUND), index + AROUND + 1);
    });
    let html = "";
    steps.forEach((step, index) => {
      if (!near[index] && !(near[index - 1] && near[index + 1])) return;
      if (index && !near[index - 1] && !near[index - 2]) html += '<span class="gap">⋯</span>';
      html += row(step, before, after, step[0] === "-" ? "" : step[2] + 1);
    });
    return `<section class="changed"><h2><button type="button" data-open="${escaped(path).replaceAll('"', "&quot;")}">${escaped(path)}</button> <span class="badge">${escaped(badge)}</span></h2><div class="lines">${html}</div></section>`;
  }).join("");
}

/** Marks the words that differ between a deleted line and the inserted one that replaces it. */
export function markWords(root) {
  if (!globalThis.Highlight || !CSS.highlights) return;
  const ranges = { "word-del": [], "word-ins": [] };
  for (const first of root.querySelectorAll("del.row")) {
    if (first.previousElementSibling?.matches("del.row")) continue;
    const [gone, come] = [run(first, "DEL"), run(run(first, "DEL").at(-1).nextElementSibling, "INS")];
    if (gone.length !== come.length) continue;
    gone.forEach((line, index) => {
      const found = inner(line.textContent, come[index].textContent);
      if (!found) return;
      ranges["word-del"].push(range(line, found[0], found[1]));
      ranges["word-ins"].push(range(come[index], found[0], found[2]));
    });
  }
  for (const [name, list] of Object.entries(ranges)) CSS.highlights.set(name, new Highlight(...list.filter(Boolean)));
}

function run(element, tag) {
  const found = [];
  for (let at = element; at?.tagName === tag; at = at.nextElementSibling) found.push(at);
  return found;
}

/** Where two lines differ, at whole words: start, end in the first, end in the second; null where most of it does. */
function inner(a, b) {
  const word = /\w/;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  while (start > 0 && word.test(a[start - 1])) start--;
  let tail = 0;
  while (tail < Math.min(a.length, b.length) - start && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  while (tail > 0 && word.test(a.at(-tail))) tail--;
  return start + tail > Math.max(a.trim().length, b.trim().length) / 3 ? [start, a.length - tail, b.length - tail] : null;
}

function range(element, start, end) {
  if (start >= end) return null;
  const made = document.createRange();
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let at = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const next = at + node.length;
    if (at <= start && start < next) made.setStart(node, start - at);
    if (at < end && end <= next) made.setEnd(node, end - at);
    at = next;
  }
  return made;
}
