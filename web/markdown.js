// Sections of a Markdown file, and enough of Markdown to show one; everything becomes text nodes, never markup.

/** The sections under `### ` headings, by heading. */
export function sections(text) {
  const found = new Map();
  let [heading, fenced] = ["", false];
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) fenced = !fenced;
    if (!fenced && line.startsWith("#")) {
      heading = line.startsWith("### ") ? line.slice(4) : "";
      if (heading) found.set(heading, "");
    } else if (heading) {
      found.set(heading, `${found.get(heading)}${line}\n`);
    }
  }
  return found;
}

/** The section as nodes: paragraphs, blocks of code, code and bold words in a line. */
export function nodes(section) {
  return section.split(/(^```[^]*?^```$)/m).flatMap((part) => {
    if (part.startsWith("```")) {
      const block = element("pre", element("code", part.replace(/^```.*\n|\n?```$/g, "")));
      block.tabIndex = 0;
      return [block];
    }
    return part.split(/\n{2,}/).filter((text) => text.trim()).map((text) => element("p", ...inline(text.trim())));
  });
}

function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (/^`.+`$/s.test(part)) return element("code", part.slice(1, -1));
    return /^\*\*.+\*\*$/s.test(part) ? element("b", part.slice(2, -2)) : part.replace(/\*(\S[^*]*\S)\*/g, "$1");
  });
}

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}
