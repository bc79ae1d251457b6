// The choice as a command for a shell.

// Letters that mean themselves in bash, zsh and PowerShell, without quotes and in double ones.
const BARE = /^[\w@%+=:,./-]+$/;
// In double quotes: none that any of these shells expands. PowerShell takes curly quotes for straight ones.
const DOUBLE = /^[^"$`\\!\u201c-\u201f\u0000-\u001f]*$/;

/** A word as one argument of a shell, "posix" or "powershell". */
export function quote(word, shell) {
  if (BARE.test(word) && !/^[@%]/.test(word) && !(shell === "powershell" && word.includes(","))) return word;
  if (DOUBLE.test(word)) return `"${word}"`;
  if (shell === "posix") return `'${word.replaceAll("'", "'\\''")}'`;
  return `'${word.replace(/['\u2018-\u201b]/g, "$&$&")}'`;
}

/** Answers to give: techniques always, the others where they differ from the default. */
function told(template, given) {
  const answered = template.answer(given);
  return [...template.questions.values()].flatMap((question) => {
    const { name } = question;
    if (!question.form || !Object.hasOwn(answered.recorded, name)) return [];
    const value = answered.values[name];
    const usual = template.default(question, answered.values);
    return name === "techniques" || String(value) !== String(usual) ? [[name, value]] : [];
  });
}

/** `copier copy` of the choice. */
export function copier(template, given, shell) {
  const { version, address } = template.data;
  const data = told(template, given).flatMap(([name, value]) => ["-d", `${name}=${Array.isArray(value) ? `[${value.join(", ")}]` : value}`]);
  const words = ["copier", "copy", "--defaults", ...(version ? ["--vcs-ref", version] : []), ...data, address, folder(template, given)];
  return words.map((word) => quote(word, shell)).join(" ");
}

/** `tricks new` of the choice. The name is always given: without it the folder would be the name. */
export function tricks(template, given, shell) {
  const { values } = template.answer(given);
  const answers = Object.fromEntries([["project_name", values.project_name], ...told(template, given)]);
  const data = Object.entries(answers).flatMap(([name, value]) => ["-d", `${name}=${Array.isArray(value) ? value.join(",") : value}`]);
  return ["tricks", "new", folder(template, given), "--defaults", ...data].map((word) => quote(word, shell)).join(" ");
}

/** What changes a project from one choice to another, by `tricks`; empty where nothing does. */
export function change(template, from, to, shell) {
  const [old, now] = [from, to].map((given) => template.answer(given));
  const lines = (words) => words.map((word) => quote(word, shell)).join(" ");
  const differing = Object.keys(now.recorded).filter((name) => template.questions.get(name).form && String(now.recorded[name]) !== String(old.recorded[name]
    ?? template.default(template.questions.get(name), now.values)));
  if (differing.length === 1 && differing[0] === "techniques") {
    const added = now.values.techniques.filter((name) => !old.values.techniques.includes(name));
    const removed = old.values.techniques.filter((name) => !now.values.techniques.includes(name));
    const asked = Object.keys(now.recorded).some((name) => !Object.hasOwn(old.recorded, name));
    if (!removed.length) return lines(["tricks", "add", ...added, ...(asked ? ["--defaults"] : [])]);
    if (!added.length) return lines(["tricks", "remove", ...removed]);
  }
  if (!differing.length) return "";
  return lines(["tricks", "set", ...differing.map((name) => `${name}=${[now.values[name]].flat().join(",")}`)]);
}

/** The folder of a project: its package's name. */
export const folder = (template, given) => template.answer(given).values.package_name;
