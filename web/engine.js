// Answers, refusals and texts of a project, from what web/build.py has translated; equal to Copier's, byte for byte.
// It knows no file, no technique and no page: everything is data.

import { dump } from "./yaml.js";

// ------------------------------------------------------------------------------------------------- values of Jinja

// What Python's str.strip() takes away; JavaScript's trim() differs by a few.
const SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const ENDS = new RegExp(`^${SPACE}|${SPACE}$`, "g");

const isList = Array.isArray;
const isMapping = (value) => typeof value === "object" && value !== null && !isList(value);

export function truth(value) {
  if (isList(value)) return value.length > 0;
  return isMapping(value) ? Object.keys(value).length > 0 : Boolean(value);
}

/** A value as Python's str() writes it; only what templates print. */
function text(value) {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value === null) return "None";
  if (Number.isInteger(value)) return String(value);
  throw new Error(`a template prints ${JSON.stringify(value)}, which is no plain text`);
}

function equal(a, b) {
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, index) => equal(item, b[index]));
  return a === b;
}

function contains(container, item) {
  if (typeof container === "string") return container.includes(item);
  if (isList(container)) return container.some((other) => equal(other, item));
  return Object.hasOwn(container, item);
}

/** json.dumps of Python: a space after each comma and colon, and by default nothing but ASCII. */
export function json(value, ascii) {
  if (isList(value)) return `[${value.map((item) => json(item, ascii)).join(", ")}]`;
  if (isMapping(value)) {
    return `{${Object.entries(value).map(([key, item]) => `${json(key, ascii)}: ${json(item, ascii)}`).join(", ")}}`;
  }
  if (typeof value !== "string") return JSON.stringify(value);
  let quoted = "";
  for (const unit of value.split("")) {
    const code = unit.charCodeAt(0);
    if (ascii && code > 126) quoted += `\\u${code.toString(16).padStart(4, "0")}`;
    else quoted += code > 126 ? unit : JSON.stringify(unit).slice(1, -1);
  }
  return `"${quoted}"`;
}

const items = (value) => (isList(value) ? value : typeof value === "string" ? [...value] : Object.keys(value));

const patterns = new Map();
function pattern(source) {
  if (!patterns.has(source)) patterns.set(source, new RegExp(source, "gu"));
  return patterns.get(source);
}

function replaced(value, source, groups, template) {
  return text(value).replace(pattern(source), (...found) =>
    template.map((part) => (typeof part === "string" ? part : part > groups ? "" : (found[part] ?? ""))).join(""));
}

const OPERATIONS = {
  "=": (_, value) => value,
  list: (values, ...parts) => parts.map((part) => evaluate(part, values)),
  and: (values, a, b) => { const left = evaluate(a, values); return truth(left) ? evaluate(b, values) : left; },
  or: (values, a, b) => { const left = evaluate(a, values); return truth(left) ? left : evaluate(b, values); },
  not: (values, a) => !truth(evaluate(a, values)),
  "==": (values, a, b) => equal(evaluate(a, values), evaluate(b, values)),
  "!=": (values, a, b) => !equal(evaluate(a, values), evaluate(b, values)),
  ">": (values, a, b) => evaluate(a, values) > evaluate(b, values),
  ">=": (values, a, b) => evaluate(a, values) >= evaluate(b, values),
  "<": (values, a, b) => evaluate(a, values) < evaluate(b, values),
  "<=": (values, a, b) => evaluate(a, values) <= evaluate(b, values),
  in: (values, a, b) => contains(evaluate(b, values), evaluate(a, values)),
  notin: (values, a, b) => !contains(evaluate(b, values), evaluate(a, values)),
  "?": (values, test, a, b) => evaluate(truth(evaluate(test, values)) ? a : b, values),
  "+": (values, a, b) => {
    const [left, right] = [evaluate(a, values), evaluate(b, values)];
    return isList(left) ? [...left, ...right] : left + right;
  },
  "~": (values, ...parts) => parts.map((part) => text(evaluate(part, values))).join(""),
  item: (values, a, b) => {
    const [object, key] = [evaluate(a, values), evaluate(b, values)];
    if (!Object.hasOwn(object, key)) throw new Error(`a template reads ${key}, which is not there`);
    return object[key];
  },
  get: (values, a, b) => {
    const [object, key] = [evaluate(a, values), evaluate(b, values)];
    return Object.hasOwn(object, key) ? object[key] : null;
  },
  defined: (values, name) => Object.hasOwn(values, name),
  default: (values, name, other) => (Object.hasOwn(values, name) ? values[name] : evaluate(other, values)),
  mapping: (values, a) => isMapping(evaluate(a, values)),
  text: (values, body) => render(body, values),
  trim: (values, a) => text(evaluate(a, values)).replace(ENDS, ""),
  lower: (values, a) => text(evaluate(a, values)).toLowerCase(),
  length: (values, a) => items(evaluate(a, values)).length,
  all: (values, a) => items(evaluate(a, values)),
  join: (values, a, between) => items(evaluate(a, values)).map(text).join(between),
  reject: (values, a, b) => {
    const container = evaluate(b, values);
    return items(evaluate(a, values)).filter((item) => !contains(container, item));
  },
  json: (values, a, ascii) => json(evaluate(a, values), ascii),
  yaml: (values, a) => dump(evaluate(a, values)),
  replace: (values, a, how) => replaced(evaluate(a, values), ...evaluate(how, values)),
  search: (values, a, source) => text(evaluate(a, values)).match(pattern(source))?.[0] ?? null,
};

function evaluate(expression, values) {
  if (typeof expression === "string") {
    if (!Object.hasOwn(values, expression)) throw new Error(`a template reads ${expression}, which has no value`);
    return values[expression];
  }
  return OPERATIONS[expression[0]](values, ...expression.slice(1));
}

/** The text of translated parts. */
export function render(parts, values) {
  let out = "";
  for (const part of parts) {
    if (typeof part === "string") out += part;
    else if (part[0] === "if") out += render(truth(evaluate(part[1], values)) ? part[2] : part[3], values);
    else out += text(evaluate(part[1], values));
  }
  return out;
}

/** The names that parts, or an expression in them, read. */
function readsOf(parts, found = new Set()) {
  const inExpression = (expression) => {
    if (typeof expression === "string") found.add(expression);
    else if (expression[0] === "text") readsOf(expression[1], found);
    else if (expression[0] !== "=") operands(expression).forEach(inExpression);
  };
  for (const part of parts) {
    if (typeof part === "string") continue;
    inExpression(part[1]);
    if (part[0] === "if") part.slice(2).forEach((body) => readsOf(body, found));
  }
  return found;
}

const operands = ([operation, ...rest]) => (["join", "json", "search"].includes(operation) ? rest.slice(0, 1) : rest);

/** What YAML makes of a rendered default: booleans, and lists written by to_json. */
function parsed(rendered) {
  if (rendered === "True" || rendered === "False") return rendered === "True";
  return JSON.parse(rendered);
}

// ------------------------------------------------------------------------------------------------------- a template

/** A template, as template.json has it, with what was rendered kept. */
export class Template {
  constructor(data) {
    this.data = data;
    this.questions = new Map(data.questions.map((question) => [question.name, question]));
    this.reads = data.files.map((file) => [...readsOf(file.parts)].sort());
    this.kept = data.files.map(() => new Map());
  }

  /** A value as Copier records it: lists in the order of the choices. */
  ordered(question, value) {
    return question.multiselect ? question.choices.filter((choice) => value.includes(choice)) : value;
  }

  /**
   * Answers to all questions. `given` may hold answers whose question does not arise: they are dropped.
   * `values` is what files read, `recorded` what the answers file keeps, `given` what is left of `given`.
   */
  answer(given) {
    let left = given;
    let answered = this.#answer(left);
    for (let turn = 0; turn < this.questions.size; turn++) {
      const arising = Object.fromEntries(Object.entries(left).filter(([name]) => Object.hasOwn(answered.recorded, name)));
      const same = Object.keys(arising).length === Object.keys(left).length;
      left = arising;
      answered = this.#answer(left);
      if (same) break;
    }
    return { ...answered, given: left };
  }

  #answer(given) {
    const values = { _copier_conf: { data: given, quiet: true }, _copier_answers: given, ...given };
    const recorded = {};
    for (const question of this.questions.values()) {
      const { name } = question;
      const asked = typeof question.when === "boolean" ? question.when : parsed(render(question.when, values));
      const own = asked && Object.hasOwn(given, name);
      values[name] = own ? this.ordered(question, given[name]) : this.default(question, values);
      if (asked && !question.secret) recorded[name] = values[name];
    }
    return { values, recorded };
  }

  default(question, values) {
    if (Object.hasOwn(question, "value")) return question.value;
    const rendered = render(question.default, values);
    return question.parse ? this.ordered(question, parsed(rendered)) : rendered;
  }

  /** What the validators say, by question. */
  refusals({ values, recorded }) {
    const found = new Map();
    for (const name of Object.keys(recorded)) {
      const { validator } = this.questions.get(name);
      const said = validator ? render(validator, values).trim() : "";
      if (said) found.set(name, said);
    }
    return found;
  }

  /** The texts of a choice by path. */
  render(given) {
    const { values, recorded } = this.answer(given);
    const { commit, source } = this.data;
    const origin = { ...(commit && { _commit: commit }), ...(source && { _src_path: source }) };
    const all = { ...values, _copier_answers: { ...origin, ...recorded } };
    const without = new Set(this.data.exclude.flatMap((line) => {
      const found = render(line, values);
      return found ? this.data.patterns[found] : [];
    }));
    const project = new Map();
    this.data.files.forEach((file, index) => {
      if (!without.has(index)) project.set(file.path, this.text(index, all));
    });
    return project;
  }

  /** The text of the file with this index. */
  text(index, values) {
    const key = JSON.stringify(this.reads[index].map((name) => values[name]));
    const kept = this.kept[index];
    if (!kept.has(key)) {
      if (kept.size > 200) kept.clear(); // titles are typed letter by letter
      kept.set(key, render(this.data.files[index].parts, values));
    }
    return kept.get(key);
  }
}
