// Answers files: written as PyYAML does it for Copier (`to_nice_yaml`), and read, as far as answers files go.

const WIDTH = 80; // PyYAML breaks a line at the first space behind this column

// Plain words that YAML takes for something else than text.
const IMPLICIT = [
  /^(yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/,
  /^([-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$/,
  /^([-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+)$/,
  /^(~|null|Null|NULL|)$/,
  /^([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?([Tt]|[ \t]+)[0-9][0-9]?:[0-9]{2}:[0-9]{2}(\.[0-9]*)?([ \t]*(Z|[-+][0-9][0-9]?(:[0-9]{2})?))?)$/,
  /^(<<|=)$/,
];
const ESCAPES = { "\0": "0", "\x07": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", "\x1b": "e", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P", '"': '"', "\\": "\\" };

/** yaml.dump(value, indent=4, allow_unicode=True, default_flow_style=False) of a mapping of booleans, lists, and texts of one line. */
export function dump(mapping) {
  const names = Object.keys(mapping).sort();
  return names.length ? names.map((name) => entry(name, mapping[name])).join("") : "{}\n";
}

function entry(name, value) {
  if (!Array.isArray(value)) return `${name}: ${scalar(value, name.length + 2)}\n`;
  return value.length ? `${name}:\n${value.map((item) => `- ${scalar(item, 2)}\n`).join("")}` : `${name}: []\n`;
}

function scalar(value, column) {
  if (value === null) return "null";
  if (typeof value !== "string") return String(value);
  const letters = [...value];
  const found = analyse(value, letters);
  if (found.special) return double(letters, column);
  return found.plain && !IMPLICIT.some((pattern) => pattern.test(value)) ? folded(letters, column, false) : folded(letters, column + 1, true);
}

/** Whether a text of one line may stand without quotes, and whether it needs escapes. Line breaks count as special. */
function analyse(value, letters) {
  const blank = (letter) => letter === undefined || "\0 \t\r\n\x85\u2028\u2029".includes(letter);
  let plain = value !== "" && !/^(---|\.\.\.)|^ | $/.test(value);
  let special = false;
  letters.forEach((letter, index) => {
    const code = letter.codePointAt(0);
    const shown = (code >= 0x20 && code <= 0x7e) || (code >= 0xa0 && code <= 0xd7ff && code !== 0x2028 && code !== 0x2029)
      || (code >= 0xe000 && code <= 0xfffd && code !== 0xfeff) || (code >= 0x10000 && code < 0x10ffff);
    special ||= !shown;
    if (index === 0 && "#,[]{}&*!|>'\"%@`".includes(letter)) plain = false;
    if (index === 0 && "?-".includes(letter) && blank(letters[1])) plain = false;
    if (letter === ":" && blank(letters[index + 1])) plain = false;
    if (letter === "#" && index && blank(letters[index - 1])) plain = false;
  });
  return { plain, special };
}

/** A text without quotes, or in single ones, broken at single spaces. */
function folded(letters, column, quoted) {
  let out = quoted ? "'" : "";
  for (let index = 0; index < letters.length;) {
    let end = index;
    const space = letters[index] === " ";
    while (end < letters.length && (letters[end] === " ") === space) end++;
    const part = letters.slice(index, end);
    if (space && part.length === 1 && column > WIDTH && index > 0 && end < letters.length) {
      out += "\n    ";
      column = 4;
    } else {
      const written = part.flatMap((letter) => (quoted && letter === "'" ? ["'", "'"] : [letter]));
      out += written.join("");
      column += written.length;
    }
    index = end;
  }
  return out + (quoted ? "'" : "");
}

/** A text in double quotes, the loop of PyYAML's write_double_quoted. */
function double(letters, column) {
  let out = '"';
  column += 1;
  let start = 0;
  for (let end = 0; end <= letters.length; end++) {
    const letter = letters[end];
    const code = letter?.codePointAt(0);
    const kept = letter !== undefined && !'"\\\x85\u2028\u2029\ufeff'.includes(letter)
      && ((code >= 0x20 && code <= 0x7e) || (code >= 0xa0 && code <= 0xd7ff) || (code >= 0xe000 && code <= 0xfffd));
    if (!kept) {
      out += letters.slice(start, end).join("");
      column += end - start;
      start = end;
      if (letter !== undefined) {
        const data = `\\${ESCAPES[letter] ?? hexadecimal(code)}`;
        out += data;
        column += data.length;
        start = end + 1;
      }
    }
    if (end > 0 && end < letters.length - 1 && (letter === " " || start >= end) && column + end - start > WIDTH) {
      out += `${letters.slice(start, end).join("")}\\\n    `;
      start = Math.max(start, end);
      column = 4;
      if (letters[start] === " ") {
        out += "\\";
        column += 1;
      }
    }
  }
  return `${out}"`;
}

function hexadecimal(code) {
  const [letter, digits] = code <= 0xff ? ["x", 2] : code <= 0xffff ? ["u", 4] : ["U", 8];
  return letter + code.toString(16).toUpperCase().padStart(digits, "0");
}

// ----------------------------------------------------------------------------------------------------------- reading

const UNESCAPED = { ...Object.fromEntries(Object.entries(ESCAPES).map(([letter, name]) => [name, letter])), "/": "/", " ": " ", "\t": "\t" };
const BOOLEANS = /^(yes|true|on)$/i;

/**
 * What an answers file holds: a mapping of texts, booleans and lists of them; numbers and dates stay texts.
 * Throws an Error whose message names the line that is none of this.
 */
export function read(source) {
  const lines = source.replace(/^\ufeff/, "").split(/\r\n|\n|\r/);
  const found = {};
  let list = null;
  for (let number = 0; number < lines.length; number++) {
    const line = lines[number];
    if (/^[ \t]*(#.*)?$/s.test(line) || /^(---|\.\.\.)\s*$/.test(line)) continue;
    const place = number + 1;
    const fail = (what) => new Error(`Line ${place} ${what}: “${line.trim().slice(0, 60)}”.`);
    const item = list && line.match(/^([ \t]*)-(?:[ \t]+(.*))?$/s);
    const pair = !item && line.match(/^()([A-Za-z_][\w.-]*|"[\w.-]+"|'[\w.-]+')[ \t]*:(?:[ \t]+(.*))?$/s);
    if (!item && !pair) throw fail("is not `name: value`, nor an entry of a list");
    let rest = trimmed((item || pair).at(-1) ?? "");
    for (; number + 1 < lines.length && goesOn(rest, lines[number + 1], (item || pair)[1].length); number++) {
      rest = joined(rest, trimmed(lines[number + 1]));
    }
    let value;
    try {
      value = valueOf(rest);
    } catch (error) {
      throw fail(error.message);
    }
    if (item) {
      list.push(value);
    } else {
      const name = pair[2].replace(/["']/g, "");
      if (Object.hasOwn(found, name)) throw fail(`gives ${name} a second time`);
      list = rest === "" ? [] : null;
      Object.defineProperty(found, name, { value: list ?? value, enumerable: true });
    }
  }
  return found;
}

const trimmed = (text) => text.replace(/^[ \t]+|[ \t]+$/g, "");

/** Whether what a line begins is not at its end: open quotes, an open list, or a text with a deeper indented line behind it. */
function goesOn(rest, next, indent) {
  if (/^["']/.test(rest)) return closing(rest, 0) < 0;
  if (rest.startsWith("[")) return !/\][ \t]*(#.*)?$/s.test(rest);
  return rest !== "" && next.match(/^[ \t]*/)[0].length > indent && /^[ \t]+[^\s#]/.test(next);
}

/** A line break in a text is a space; in double quotes a backslash before it takes it away. */
function joined(rest, next) {
  if (rest.startsWith('"') && /(^|[^\\])(\\\\)*\\$/.test(rest)) return rest.slice(0, -1) + next;
  return rest === "" || /^["'[]/.test(rest) ? `${rest} ${next}` : `${rest.replace(/[ \t]+#.*$/s, "")} ${next}`;
}

/** Where the quotes end that begin at a place; -1: nowhere. */
function closing(rest, at) {
  const quote = rest[at];
  for (at++; at < rest.length; at++) {
    if (rest[at] === "\\" && quote === '"') at++;
    else if (rest[at] === quote && quote === "'" && rest[at + 1] === "'") at++;
    else if (rest[at] === quote) return at;
  }
  return -1;
}

function valueOf(rest) {
  if (rest.startsWith("[")) {
    const [values, end] = flow(rest, 1);
    if (!/^[ \t]*(#.*)?$/s.test(rest.slice(end))) throw new Error("goes on after its list");
    return values;
  }
  if (rest.startsWith('"') || rest.startsWith("'")) {
    const [value, end] = quotedFrom(rest, 0);
    if (!/^[ \t]*(#.*)?$/s.test(rest.slice(end))) throw new Error("goes on after its quotes");
    return value;
  }
  if (/^[{&*!|>%@`]/.test(rest)) throw new Error("is written in a way that answers files are not");
  return plainValue(rest.replace(/[ \t]+#.*$/s, ""));
}

function plainValue(word) {
  if (/^(~|null|Null|NULL|)$/.test(word)) return null;
  return IMPLICIT[0].test(word) ? BOOLEANS.test(word) : word;
}

function flow(rest, at) {
  const values = [];
  for (;;) {
    while (" \t,".includes(rest[at] ?? "\n")) at++;
    if (at >= rest.length) throw new Error("begins a list that does not end");
    if (rest[at] === "]") return [values, at + 1];
    if (rest[at] === '"' || rest[at] === "'") {
      const [value, end] = quotedFrom(rest, at);
      values.push(value);
      at = end;
    } else {
      const word = rest.slice(at).match(/^[^,\]]*/)[0];
      values.push(plainValue(word.trim()));
      at += word.length;
    }
  }
}

function quotedFrom(rest, at) {
  const end = closing(rest, at);
  if (end < 0) throw new Error("begins quotes that do not end");
  const inside = rest.slice(at + 1, end);
  const value = rest[at] === "'" ? inside.replaceAll("''", "'") : inside.replace(/\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^]|$)/g, unescaped);
  return [value, end + 1];
}

function unescaped(_, name) {
  const code = name.length > 1 ? Number.parseInt(name.slice(1), 16) : -1;
  if (code > 0x10ffff || (code < 0 && !Object.hasOwn(UNESCAPED, name))) throw new Error("holds a broken escape");
  return code < 0 ? UNESCAPED[name] : String.fromCodePoint(code);
}
