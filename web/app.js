// The page: what is ticked, what that makes of the project, and what is shown of it.

import { change, copier, folder, quote, tricks } from "./command.js";
import { changes, file, loadColours, markWords } from "./code.js";
import { count, difference, linesOf } from "./diff.js";
import { Template } from "./engine.js";
import { checked, decode, encode } from "./link.js";
import { nodes, sections } from "./markdown.js";
import { read } from "./yaml.js";
import { zip } from "./zip.js";

const byId = (id) => document.getElementById(id);
const form = byId("form");
const code = byId("code");

let template;
let given = {}; // every answer that was changed, also those whose question does not arise now
let valid = {}; // the last answers that make a project
let before = null; // the answers before the last change of what is ticked
let reference = null; // { given, label, project }: what is compared with
let project = new Map();
let shown = { file: "train.py", all: false, mark: "last" };
let listed = []; // the files in view: { path, old, now, added, removed }
let gone = null; // a file that stays in view, struck, until the next change

// ---------------------------------------------------------------------------------------------------------- answers

const isText = (name) => !template.questions.get(name).choices;
const texts = (answers) => Object.fromEntries(Object.entries(answers).filter(([name]) => isText(name)));
const ticks = (answers) => Object.fromEntries(Object.entries(answers).filter(([name]) => !isText(name)));

/** Puts answers into the fields of the form. */
function fill() {
  const { values } = template.answer(given);
  for (const [name, question] of template.questions) {
    if (!question.form) continue;
    const value = Object.hasOwn(given, name) ? given[name] : values[name];
    for (const field of form.querySelectorAll(`[name="${name}"]`)) {
      if (field.type === "text" || field.type === "select-one") field.value = value;
      else field.checked = question.multiselect ? value.includes(field.value) : field.value === value;
    }
  }
}

function takeField(field) {
  const { name } = field;
  const question = template.questions.get(name);
  if (question.multiselect) {
    const ticked = [...form.querySelectorAll(`[name="${name}"]:checked`)].map((box) => box.value);
    given = { ...given, [name]: question.choices.filter((choice) => ticked.includes(choice)) };
  } else {
    given = { ...given, [name]: field.value };
  }
  update(true);
}

/** The project without techniques, extras and the like, on the same task and with the same words. */
function bare() {
  const first = [...template.questions.values()].find((question) => question.choices && !question.multiselect && question.form && question.when === true);
  return { ...texts(given), ...(first && Object.hasOwn(given, first.name) && { [first.name]: given[first.name] }), techniques: [] };
}

/** Answers that the present project is compared with; null: with nothing. */
function base() {
  if (shown.mark === "last") return before && { ...before, ...texts(given) };
  if (shown.mark === "bare") return bare();
  return shown.mark === "reference" && reference ? reference.given : null;
}

// ----------------------------------------------------------------------------------------------------------- change

/** Renders what is ticked and shows it. `changed`: by a person, so that the status line tells the change. */
function update(changed) {
  const answered = template.answer(given);
  const refusals = template.refusals(answered);
  showForm(answered, refusals);
  byId("faults").replaceChildren();
  if (refusals.size) {
    const why = [...refusals.values()].join(" ");
    enable(why);
    byId("status").textContent = `${why} In view is the last project that is valid.`;
    return;
  }
  enable("");
  const ticked = JSON.stringify(ticks(template.answer(valid).recorded)) !== JSON.stringify(ticks(answered.recorded));
  if (changed && ticked) before = valid;
  const old = project;
  valid = given;
  project = template.render(given);
  if (ticked) gone = changed && old.has(shown.file) && !project.has(shown.file) ? shown.file : null;
  show(changed && ticked);
  writeLink();
  estimate();
}

const first = () => (project.has("train.py") ? "train.py" : [...project.keys()][0]);

function enable(why) {
  for (const id of ["download", "copy-command", "copy-link", "pin"]) byId(id).disabled = Boolean(why);
  byId("download-why").textContent = why;
  byId("command").classList.toggle("off", Boolean(why));
}

function showForm(answered, refusals) {
  for (const field of form.querySelectorAll("[data-question]")) {
    const name = field.dataset.question;
    field.hidden = !Object.hasOwn(answered.recorded, name);
    byId(`refusal-${name}`).textContent = refusals.get(name) ?? "";
    field.querySelector("input[type=text]")?.setAttribute("aria-invalid", refusals.has(name));
  }
  const { techniques } = answered.values;
  for (const choice of form.querySelectorAll("[data-technique]")) choice.classList.toggle("on", techniques.includes(choice.dataset.technique));
  byId("count").textContent = `${techniques.length} of ${template.questions.get("techniques").choices.length}`;
  let about = "your own set";
  for (const button of form.querySelectorAll("[data-preset]")) {
    const pressed = String(template.data.presets[button.dataset.preset]) === String(techniques);
    button.setAttribute("aria-pressed", pressed);
    if (pressed) about = button.dataset.about;
  }
  byId("preset-about").textContent = about;
}

/** For each technique: the lines that a tick would add or take, counted when the browser has time. */
let counting = 0;
function estimate() {
  const turn = ++counting;
  const waiting = [...form.querySelectorAll("[data-technique]")];
  const lines = (texts) => [...texts].reduce((sum, [path, text]) => sum + (path === template.data.answersFile ? 0 : linesOf(text).length), 0);
  const now = lines(project);
  const later = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 50));
  const work = () => {
    const choice = waiting.shift();
    if (!choice || turn !== counting) return;
    const other = toggled(choice.dataset.technique);
    const delta = other ? lines(template.render(other)) - now : null;
    const place = choice.querySelector(".delta");
    place.textContent = delta === null ? "" : `${delta < 0 ? "−" : "+"}${Math.abs(delta)}`;
    place.title = delta === null ? "" : `lines that ${delta < 0 ? "go" : "come"} when you ${delta < 0 ? "untick" : "tick"} it`;
    later(work);
  };
  setTimeout(() => later(work), 150);
}

/** The present answers with one technique more or less; null where they are refused. */
function toggled(technique) {
  const { techniques } = template.answer(given).values;
  const others = techniques.includes(technique) ? techniques.filter((name) => name !== technique) : [...techniques, technique];
  const answers = { ...given, techniques: template.ordered(template.questions.get("techniques"), others) };
  return template.refusals(template.answer(answers)).size ? null : answers;
}

// ------------------------------------------------------------------------------------------------------------ files

/** All files of the project and those that the comparison has besides. */
function compared() {
  const from = base();
  const old = from ? template.render(from) : project;
  const paths = [...new Set([...project.keys(), ...old.keys()])];
  return paths.map((path) => {
    const [was, now] = [old.get(path) ?? null, project.get(path) ?? null];
    if (was === now) return { path, old: was, now, added: 0, removed: 0 };
    if (was === null || now === null) return { path, old: was, now, added: linesOf(now ?? "").length, removed: linesOf(was ?? "").length };
    return { path, old: was, now, ...count(difference(linesOf(was), linesOf(now))) };
  }).sort((a, b) => place(a.path) - place(b.path) || (a.path < b.path ? -1 : 1));
}

/** train.py, the other modules, the project's own texts, tests, dot files. */
function place(path) {
  if (path === "train.py") return 0;
  if (path.startsWith(".")) return 4;
  if (path.includes("/")) return 3;
  return path.endsWith(".py") ? 1 : 2;
}

const isChanged = ({ old, now }) => old !== now;

function badge({ old, now, added, removed }) {
  if (old === now) return "";
  if (old === null) return `new +${added}`;
  if (now === null) return `gone −${removed}`;
  return [added && `+${added}`, removed && `−${removed}`].filter(Boolean).join(" ");
}

const number = (value) => value.toLocaleString("en");

function statusText() {
  const counted = countedFiles();
  const present = counted.filter(({ now }) => now !== null);
  const lines = present.reduce((sum, { now }) => sum + linesOf(now).length, 0);
  const all = `${present.length} files, ${number(lines)} lines in all.`;
  const parts = [
    [counted.filter(({ old }) => old === null).length, "new"],
    [counted.filter(({ now }) => now === null).length, "gone"],
    [counted.filter((it) => isChanged(it) && it.old !== null && it.now !== null).length, "changed"],
  ].filter(([many]) => many).map(([many, what]) => `${many} ${what}`);
  if (!parts.length) {
    if (shown.mark === "last" && !before) return `${all} Tick a technique to see what it changes.`;
    return shown.mark === "nothing" ? all : `Nothing differs. ${all}`;
  }
  return `${parts.join(", ")}: ${total()} lines. ${all}`;
}

/** The files that are counted: the answers file changes with every tick. */
const countedFiles = () => listed.filter(({ path }) => path !== template.data.answersFile);

function total() {
  const [added, removed] = ["added", "removed"].map((key) => countedFiles().reduce((sum, it) => sum + it[key], 0));
  return [added && `+${number(added)}`, removed && `−${number(removed)}`].filter(Boolean).join(" ");
}

// ------------------------------------------------------------------------------------------------------------- view

function show(ticked) {
  listed = compared();
  const inView = listed.find(({ path }) => path === shown.file);
  if (!inView || (ticked && inView.now === null && gone !== shown.file)) shown.file = first();
  const said = statusText();
  byId("status").textContent = said;
  byId("bar-status").textContent = said.split(". ")[0];
  byId("mark").value = shown.mark;
  showReference();
  showFiles();
  showCode(ticked);
  showCommand();
  byId("zip-name").textContent = folder(template, valid);
}

function showFiles() {
  const groups = new Map();
  for (const it of listed) {
    const heading = ["", "", "", it.path.split("/")[0] + "/", "dot files"][place(it.path)];
    groups.set(heading, [...(groups.get(heading) ?? []), it]);
  }
  const html = [entry("", "All changes", total(), shown.all, false)];
  const options = [option("", "All changes", shown.all)];
  for (const [heading, members] of groups) {
    if (heading) html.push(`<h2>${heading.replace(/[<&]/g, "")}</h2>`);
    html.push("<ul>", ...members.map((it) => `<li>${entry(it.path, heading.endsWith("/") ? it.path.slice(heading.length) : it.path, badge(it), !shown.all && shown.file === it.path, it.now === null)}</li>`), "</ul>");
    options.push(...members.map((it) => option(it.path, `${it.path}  ${badge(it)}`, !shown.all && shown.file === it.path)));
  }
  byId("files").innerHTML = html.join("");
  byId("file").replaceChildren(...options);
}

/** File names come from the template; they are escaped all the same. */
function entry(path, label, marks, current, struck) {
  const safe = (text) => text.replace(/[<&"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
  const kind = marks.startsWith("new") ? " new" : "";
  return `<button type="button" data-open="${safe(path)}"${current ? ' aria-current="true"' : ""}><span class="name">${struck ? `<s>${safe(label)}</s>` : safe(label)}</span> <span class="badge${kind}">${safe(marks).replace(/−\S+/, "<i>$&</i>")}</span></button>`;
}

function option(path, label, selected) {
  return new Option(label, path, selected, selected);
}

function showCode(ticked) {
  const scrolled = code.scrollTop;
  const found = listed.find(({ path }) => path === shown.file);
  if (shown.all) {
    const list = listed.filter(isChanged).map((it) => ({ ...it, badge: badge(it) }));
    code.setAttribute("aria-label", "All changes");
    code.innerHTML = list.length ? changes(list) : '<p class="empty">Nothing has changed.</p>';
  } else {
    code.setAttribute("aria-label", `${shown.file}${found.now === null ? ", gone" : ""}`);
    code.innerHTML = `<div class="lines">${file(shown.file, found.old, found.now)}</div>`;
  }
  code.classList.toggle("flash", ticked);
  code.scrollTop = scrolled;
  if (ticked) bringIntoView();
  markWords(code);
}

/** Scrolls to the first change unless one is in view. */
function bringIntoView() {
  const rows = [...code.querySelectorAll("ins, del")];
  const box = code.getBoundingClientRect();
  const visible = (row) => { const at = row.getBoundingClientRect(); return at.top >= box.top && at.bottom <= box.bottom; };
  if (rows.length && !rows.some(visible)) code.scrollTop += rows[0].getBoundingClientRect().top - box.top - 80;
}

function openFile(path, scroll = true) {
  shown.all = path === "";
  if (path) shown.file = path;
  if (path !== gone) gone = null;
  showFiles();
  showCode(false);
  code.scrollTop = 0;
  if (scroll && !shown.all) bringIntoView();
  writeLink();
}

function step(way) {
  const changed = listed.filter(isChanged).map(({ path }) => path);
  if (!changed.length) return toast("Nothing has changed.");
  const order = listed.map(({ path }) => path);
  const at = shown.all ? (way > 0 ? -1 : order.length) : order.indexOf(shown.file);
  const next = way > 0 ? changed.find((path) => order.indexOf(path) > at) ?? changed[0] : changed.findLast((path) => order.indexOf(path) < at) ?? changed.at(-1);
  openFile(next);
  byId("files").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

function showReference() {
  byId("reference").hidden = !reference;
  const choice = byId("mark").querySelector("[value=reference]");
  choice.disabled = choice.hidden = !reference;
  if (!reference) return;
  choice.textContent = `what differs from ${reference.project ? "your project" : "A"}`;
  const { techniques } = template.answer(reference.given).values;
  byId("reference-text").textContent = `${reference.label}: ${techniques.join(", ") || "no techniques"}.`;
  byId("swap").hidden = reference.project;
}

// ---------------------------------------------------------------------------------------------------------- command

let tool = "copier";
function showCommand() {
  const shell = byId("shell").value;
  const inProject = reference?.project;
  byId("tool").hidden = inProject;
  for (const button of byId("tool").children) button.setAttribute("aria-pressed", button.dataset.tool === tool);
  const made = inProject ? change(template, reference.given, valid, shell) : (tool === "copier" ? copier : tricks)(template, valid, shell);
  byId("command-text").textContent = made || "# nothing to change yet: tick a technique";
  const note = [];
  if (inProject) note.push("in your project, by its own tool; --dry-run shows it first");
  else if (!template.data.version) note.push("a preview: the command takes the newest release");
  if (shell === "powershell" && made.includes('"') && /'[^']*"/.test(made)) note.push("PowerShell 7.3 or newer");
  byId("command-note").textContent = note.join("; ");
}

async function copy(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    toast("Copied.");
    setTimeout(() => { button.textContent = label; }, 1500);
  } catch {
    toast("The browser did not let the page copy: select the text instead.");
  }
}

let toasting;
function toast(text) {
  byId("toast").textContent = text;
  clearTimeout(toasting);
  toasting = setTimeout(() => { byId("toast").textContent = ""; }, 4000);
}

// --------------------------------------------------------------------------------------------------------- download

function download() {
  if (byId("download").disabled) return toast(byId("download-why").textContent);
  const name = folder(template, valid);
  const modes = new Map(template.data.files.map(({ path, mode }) => [path, mode]));
  const entries = [...template.render(valid)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, text]) => [`${name}/${path}`, text, modes.get(path)]);
  const address = URL.createObjectURL(zip(entries));
  const link = Object.assign(document.createElement("a"), { href: address, download: `${name}.zip` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  showTaken(name);
}

function showTaken(name) {
  const powershell = byId("shell").value === "powershell";
  byId("taken-name").textContent = `${name}.zip`;
  byId("taken-preview").hidden = Boolean(template.data.version);
  byId("taken-steps").textContent = [
    powershell ? `Expand-Archive ${name}.zip .` : `unzip ${name}.zip`,
    `cd ${name}`,
    "git init",
    "git add --all",
    `git commit -m ${quote("Made by tricks-template", "posix")}`,
    "python -m venv .venv",
    powershell ? ".venv\\Scripts\\Activate.ps1" : ". .venv/bin/activate",
    'pip install -e ".[test]"',
    "python train.py",
    "pytest",
  ].join("\n");
  byId("taken").showModal();
}

// ------------------------------------------------------------------------------------------------------------- link

let writing;
let written = null; // the hash that this page wrote itself
function link() {
  const own = [];
  if (shown.all) own.push("view=changes");
  else if (shown.file !== first()) own.push(`file=${encodeURIComponent(shown.file).replaceAll("%2F", "/")}`);
  const query = encode(template, valid);
  if (reference && !reference.project) own.unshift(`a=${encodeURIComponent(encode(template, reference.given))}`, `b=${encodeURIComponent(query)}`);
  else if (query) own.unshift(query);
  if (shown.mark !== (reference && !reference.project ? "reference" : "last")) own.push(`mark=${shown.mark}`);
  return own.join("&");
}

/** Safari allows a hundred of these in half a minute. */
function writeLink() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    written = link();
    history.replaceState(null, "", written ? `#${written}` : location.pathname + location.search);
  }, 200);
}

function loadLink() {
  const hash = location.hash.slice(1);
  if (hash === written) return;
  clearTimeout(writing);
  const whole = decode(template, hash);
  let found = whole;
  reference = null;
  const faults = [...whole.faults];
  if (whole.own.a !== undefined || whole.own.b !== undefined) {
    const [a, b] = [whole.own.a, whole.own.b].map((text) => decode(template, text ?? ""));
    found = { given: { ...whole.given, ...b.given }, own: whole.own };
    faults.push(...a.faults, ...b.faults);
    reference = { given: a.given, label: "Compared with A", project: false };
    if (template.refusals(template.answer(a.given)).size) {
      faults.push("The link's A makes no project.");
      reference = null;
    }
  }
  start(found.given, found.own, faults);
}

function start(answers, own, faults) {
  given = answers;
  before = null;
  gone = null;
  valid = template.refusals(template.answer(given)).size ? {} : given;
  project = template.render(valid);
  shown = { file: first(), all: own.view === "changes", mark: reference ? "reference" : "last" };
  if (own.file !== undefined) {
    if (project.has(own.file)) shown.file = own.file;
    else faults.push(`The project has no file “${own.file}”.`);
  }
  if (own.view !== undefined && own.view !== "changes") faults.push(`There is no view “${own.view}”.`);
  if (own.mark !== undefined) {
    if (["last", "bare", "nothing", ...(reference ? ["reference"] : [])].includes(own.mark)) shown.mark = own.mark;
    else faults.push(`There is no mark “${own.mark}”.`);
  }
  fill();
  code.scrollTop = 0;
  show(false);
  update(false);
  tellFaults(faults);
}

function tellFaults(faults) {
  byId("faults").replaceChildren(...faults.map((fault) => Object.assign(document.createElement("li"), { textContent: fault })));
}

// ------------------------------------------------------------------------------------------------------ in a project

/** Starts from an answers file; a sentence where it is none. */
async function takeAnswers(text) {
  const faults = [];
  const found = {};
  let version = "";
  let held;
  try {
    held = read(text);
  } catch (error) {
    return error.message;
  }
  if (!Object.keys(held).some((name) => template.questions.get(name)?.form)) return "This answers no question: is it a project's .copier-answers.yml?";
  for (const [name, value] of Object.entries(held)) {
    const question = template.questions.get(name);
    if (name === "_commit") version = String(value);
    else if (name.startsWith("_")) continue;
    else if (!question?.form) faults.push(`There is no question “${name}” in this version.`);
    else Object.assign(found, checked(question, name, value, faults));
  }
  const refused = [...template.refusals(template.answer(found)).values()];
  if (refused.length) return refused.join(" ");
  reference = { given: found, label: `Your project${version ? `, made from ${version}` : ""}`, project: true };
  start(found, {}, faults);
  if (version !== template.data.version) await otherVersion(version);
  return "";
}

/** Says that a project is at another version than this page, with a way to the page of that version where there is one. */
async function otherVersion(version) {
  const here = template.data.version || "a preview";
  const item = document.createElement("li");
  item.textContent = version
    ? `Your project was made from ${version}, this page is ${here}: the changes shown are this page's. `
    : `Your project records no version, this page is ${here}: the changes shown are this page's. `;
  byId("faults").append(item);
  if (!version) return;
  try {
    const { versions, root } = await (await fetch("versions.json", { cache: "no-cache" })).json();
    if (!versions.includes(version)) throw new Error(version);
    item.append(Object.assign(document.createElement("a"), { href: `${root}${encodeURIComponent(version)}/#${encode(template, valid)}`, textContent: `Open the page of ${version}.` }));
  } catch {
    item.append(`There is no page of ${version}.`);
  }
}

async function openAnswers(text) {
  const refusal = await takeAnswers(text);
  byId("answers-refusal").textContent = refusal;
  if (!refusal) byId("open").close();
  else if (!byId("open").open) byId("open").showModal();
}

// ----------------------------------------------------------------------------------------------------------- events

function listen() {
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", ({ target }) => { if (target.type !== "text") takeField(target); });
  form.addEventListener("input", ({ target }) => { if (target.type === "text") takeField(target); });
  form.addEventListener("click", ({ target }) => {
    const preset = target.closest("[data-preset]");
    if (!preset) return;
    given = { ...given, techniques: template.data.presets[preset.dataset.preset] };
    fill();
    update(true);
  });
  form.addEventListener("toggle", ({ target }) => { if (target.open) showReadme(target.closest("[data-technique]")); }, true);
  for (const list of [byId("files"), code]) {
    list.addEventListener("click", ({ target }) => {
      const button = target.closest("[data-open]");
      if (!button) return;
      openFile(button.dataset.open);
      byId("files").querySelector("[aria-current]")?.focus({ preventScroll: true });
    });
  }
  byId("file").addEventListener("change", ({ target }) => openFile(target.value));
  byId("mark").addEventListener("change", ({ target }) => { shown.mark = target.value; show(true); writeLink(); });
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  byId("copy-file").addEventListener("click", ({ target }) => copy(shown.all ? code.innerText : project.get(shown.file) ?? "", target));
  byId("copy-link").addEventListener("click", ({ target }) => copy(location.href.split("#")[0] + (link() && `#${link()}`), target));
  byId("copy-command").addEventListener("click", ({ target }) => copy(byId("command-text").textContent, target));
  byId("copy-steps").addEventListener("click", ({ target }) => copy(byId("taken-steps").textContent, target));
  byId("download").addEventListener("click", download);
  byId("shell").addEventListener("change", showCommand);
  byId("tool").addEventListener("click", ({ target }) => { tool = target.dataset.tool ?? tool; showCommand(); });
  byId("see").addEventListener("click", () => view(document.body.dataset.view === "form" ? "code" : "form"));
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", loadLink);
  listenForComparing();
  listenForAnswers();
}

let scrolledForm = 0;
function view(name) {
  if (name === "code") scrolledForm = scrollY;
  document.body.dataset.view = name;
  byId("see").textContent = name === "form" ? "See the code" : "Back";
  scrollTo(0, name === "code" ? 0 : scrolledForm);
  if (name === "code") bringIntoView();
}

function keys(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    download();
  }
  if (event.altKey && ["ArrowDown", "ArrowUp"].includes(event.key) && !event.target.closest("input[type=text], select, textarea")) {
    event.preventDefault();
    step(event.key === "ArrowDown" ? 1 : -1);
  }
}

function compareWith(answers, label) {
  reference = { given: answers, label, project: false };
  shown.mark = "reference";
  byId("comparing").close();
  show(true);
  writeLink();
}

function listenForComparing() {
  byId("compare").addEventListener("click", () => byId("comparing").showModal());
  byId("pin").addEventListener("click", () => compareWith(valid, "Compared with A"));
  byId("other-take").addEventListener("click", () => {
    const { given: found, own, faults } = decode(template, byId("other").value.includes("#") ? byId("other").value : `#${byId("other").value}`);
    const answers = own.b === undefined ? found : decode(template, own.b).given;
    const refused = [...template.refusals(template.answer(answers)).values()];
    compareWith(refused.length ? valid : answers, "Compared with A");
    tellFaults([...faults, ...refused]);
  });
  byId("swap").addEventListener("click", () => {
    const other = reference.given;
    reference = { ...reference, given: valid };
    given = other;
    fill();
    update(false);
  });
  byId("unpin").addEventListener("click", () => {
    reference = null;
    if (shown.mark === "reference") shown.mark = "last";
    show(false);
    writeLink();
    byId("compare").focus();
  });
}

function listenForAnswers() {
  byId("in-project").addEventListener("click", () => byId("open").showModal());
  byId("answers-take").addEventListener("click", (event) => { event.preventDefault(); openAnswers(byId("answers").value); });
  byId("answers-file").addEventListener("change", async ({ target }) => {
    if (target.files[0]) await openFileOf(target.files[0]);
    target.value = "";
  });
  addEventListener("dragover", (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); });
  addEventListener("drop", (event) => {
    const [dropped] = event.dataTransfer?.files ?? [];
    if (!dropped) return;
    event.preventDefault();
    openFileOf(dropped);
  });
  addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (event.target.closest?.("input, textarea") || !/^(_src_path|_commit|techniques)\s*:/m.test(text)) return;
    openAnswers(text);
  });
}

async function openFileOf(dropped) {
  const small = dropped.size < 100000;
  if (small) byId("answers").value = await dropped.text();
  await openAnswers(small ? byId("answers").value : "");
}

/** What the rendered project's README says about a technique: how to use it, what usually goes wrong. */
function showReadme(choice) {
  const technique = choice?.dataset.technique;
  if (!technique) return;
  const { techniques } = template.answer(given).values;
  const [without, withIt] = [techniques.filter((name) => name !== technique), [...techniques, technique]].map((names) => ({ ...given, techniques: template.ordered(template.questions.get("techniques"), names) }));
  const pair = template.refusals(template.answer(withIt)).size ? [{ techniques: [] }, { techniques: [technique] }] : [without, withIt];
  const [old, now] = pair.map((answers) => sections(template.render(answers).get("README.md") ?? ""));
  const place = choice.querySelector(".readme");
  place.replaceChildren();
  for (const [heading, text] of now) {
    if (old.has(heading)) continue;
    place.append(Object.assign(document.createElement("h2"), { textContent: `In its README: ${heading}` }), ...nodes(text));
  }
}

// ------------------------------------------------------------------------------------------------------------ start

async function begin() {
  try {
    const answer = await fetch(byId("template").href);
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    template = new Template(await answer.json());
  } catch (error) {
    byId("status").textContent = `The template cannot be loaded (${error.message}): load the page again, or use the command line: pip install copier.`;
    return;
  }
  listen();
  loadLink();
  document.documentElement.dataset.ready = "true";
  await loadColours();
  showCode(false);
  document.documentElement.dataset.coloured = "true";
}

begin();
