// The choice as the part of an address behind `#`, and back. A link is untrusted: what it names is looked up, never run.

// Names of a link that are no questions.
export const OWN = ["preset", "file", "view", "mark", "a", "b"];

const encoded = (text) => encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3A", ":");

/** Pairs of a query; `broken` are the parts that cannot be read. */
function pairs(query) {
  const [found, broken] = [[], []];
  for (const part of query.split("&").filter(Boolean)) {
    const at = part.indexOf("=");
    try {
      const [name, value] = [at < 0 ? part : part.slice(0, at), at < 0 ? "" : part.slice(at + 1)].map((text) => decodeURIComponent(text.replaceAll("+", " ")));
      found.push([name, value]);
    } catch {
      broken.push(part);
    }
  }
  return { found, broken };
}

/** What differs from the defaults, as a query; `techniques=` is an empty list. */
export function encode(template, given) {
  const answered = template.answer(given);
  const usual = template.answer({});
  const parts = [];
  for (const [name, value] of Object.entries(answered.given)) {
    const question = template.questions.get(name);
    const standard = Object.hasOwn(usual.values, name) && Object.hasOwn(usual.recorded, name)
      ? usual.values[name] : template.default(question, answered.values);
    if (String(template.ordered(question, value)) !== String(standard)) {
      parts.push(`${name}=${encoded(question.multiselect ? template.ordered(question, value).join(",") : value)}`);
    }
  }
  return parts.join("&");
}

/**
 * Answers of a query, the page's own settings in it, and sentences about what was left out.
 * A whole address will do: what stands before its `#` is not looked at.
 */
export function decode(template, text) {
  const { found, broken } = pairs(text.includes("#") ? text.slice(text.indexOf("#") + 1) : text);
  const given = {};
  const own = {};
  const faults = broken.map((part) => `The link's part “${part}” cannot be read.`);
  for (const [name, value] of found) {
    if (OWN.includes(name)) own[name] = value;
    const question = template.questions.get(name);
    if (name === "preset") {
      if (Object.hasOwn(template.data.presets, value)) given.techniques ??= template.data.presets[value];
      else faults.push(`There is no preset “${value}”.`);
    } else if (!OWN.includes(name)) {
      if (!question?.form) faults.push(`There is no question “${name}”.`);
      else Object.assign(given, checked(question, name, value, faults));
    }
  }
  return { given, own, faults };
}

/** One answer from outside, without what it cannot be; sentences about that go to `faults`. */
export function checked(question, name, value, faults) {
  if (question.multiselect) {
    const wanted = Array.isArray(value) ? value.map(String) : String(value).split(",").filter(Boolean);
    for (const item of wanted) if (!question.choices.includes(item)) faults.push(`${name} has no value “${item}”.`);
    return { [name]: question.choices.filter((choice) => wanted.includes(choice)) };
  }
  if (Array.isArray(value)) {
    faults.push(`${name} takes one value, not a list.`);
    return {};
  }
  if (question.choices && !question.choices.includes(value)) {
    faults.push(`${name} has no value “${value}”.`);
    return {};
  }
  return { [name]: String(value ?? "") };
}
