// Markdown to elements while it streams: elements are only added, and what is settled is not touched again.
//
// A line is decided as soon as its first characters decide it; the rest of it goes to the open block (inline.js). So any
// cutting of a text gives the same elements. Differences from CommonMark: no headings by underline, no link definitions, no
// code by indentation, HTML stays text; nested lists need two more spaces than their parent's mark. Depth and table
// columns are bounded; what is beyond is text.

import { Inline, drawInline } from "./inline.js";

const DEEPEST = 12; // quotes and lists in each other
const COLUMNS = 60;
const CHUNK = 40; // lines of code laid out together
const FENCE_END = 40; // characters: a longer line never ends a code block

const RULE = /^(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/;
const MARKER = /^([-*+]|(\d{1,9})[.)])( +|$)/;
const TASK = /^\[([ xX])\] /;
const FENCE = /^(`{3,}|~{3,})/;
const DELIMITERS = /^\|? *:?-+:? *(?:\| *:?-+:? *)*\|?$/;

/** Markdown written piece by piece into an element. */
export class MarkdownStream {
  /**
   * @param {Element} root
   * @param {{onCode?: (code: HTMLElement, language: string) => void, heading?: number}} options `onCode` is called with each
   *   finished code block; `heading` is the level above the first headings
   */
  constructor(root, { onCode = () => {}, heading = 2 } = {}) {
    Object.assign(this, { onCode, heading });
    this.stack = [{ kind: "root", element: root }];
    this.leaf = null;
    this.line = ""; // of the open line, what is not decided yet
    this.decided = false; // whether the open line's text goes to the leaf
    this.needsLine = false; // whether only the whole line decides
  }

  /** @param {string} text */
  write(text) {
    const lines = text.replaceAll("\r", "").split("\n");
    lines.forEach((line, n) => {
      if (n) this.#endLine();
      this.#add(line);
    });
    this.leaf?.show(false);
  }

  /** The text is whole. */
  end() {
    if (this.line) this.#endLine();
    this.#closeLeaf();
  }

  /** The open line; its leading tabs are spaces, but in code. */
  #spaced() {
    return this.leaf instanceof Code ? this.line : tabs(this.line);
  }

  #add(text) {
    if (this.decided) return this.leaf.add(text);
    this.line += text;
    if (!text || this.needsLine) return;
    const rest = this.#start(this.#spaced(), false);
    if (rest == null) return;
    this.decided = true;
    this.line = "";
    this.leaf.add(rest);
  }

  #endLine() {
    if (!this.decided) {
      const rest = this.#start(this.#spaced(), true);
      if (rest != null) this.leaf.add(rest);
    }
    this.line = "";
    this.decided = this.needsLine = false;
  }

  /**
   * Start a line: close and open what its first characters say.
   * @returns {string|null|undefined} the text for the leaf, if it is decided and any is left
   */
  #start(line, whole) {
    const found = this.#containers(line, whole);
    if (!found) return null;
    if (this.leaf instanceof Code && found.depth === this.stack.length) return this.#code(line.slice(found.at), whole);
    const opened = this.#openings(line, found, whole);
    if (!opened) return null;
    const rest = line.slice(opened.at);
    const alone = !opened.plan.length && found.depth === this.stack.length;
    return this.#block(rest, whole, { ...opened, depth: found.depth, alone });
  }

  /** How many of the open containers the line continues, and where its text starts; null if undecided. */
  #containers(line, whole) {
    let at = 0;
    let depth = 1;
    for (; depth < this.stack.length; depth++) {
      const box = this.stack[depth];
      const indent = spaces(line, at);
      const blank = at + indent === line.length;
      if (blank && !whole) return null;
      if (box.kind === "quote") {
        if (indent > 3 || line[at + indent] !== ">") break;
        at += indent + 1;
        if (at === line.length && !whole) return null;
        if (line[at] === " ") at++;
      } else if (box.kind === "item") {
        if (!blank && indent < box.need && !(this.leaf instanceof Code)) break;
        at += Math.min(indent, box.indent);
      }
    }
    return { at, depth };
  }

  #code(rest, whole) {
    const { leaf } = this;
    const mark = rest.trim();
    const short = rest.length <= FENCE_END;
    if (!whole && short && /^ {0,3}(`*|~*) *$/.test(rest)) return null;
    if (whole && short && /^ {0,3}[`~]/.test(rest) && mark === leaf.fence[0].repeat(mark.length) && mark.length >= leaf.fence.length) {
      this.#closeLeaf();
      return null;
    }
    leaf.startLine();
    return rest.slice(Math.min(spaces(rest, 0), leaf.indent));
  }

  /** The quotes and items that the line opens, and where its text starts; null if undecided. */
  #openings(line, { at, depth }, whole) {
    const plan = [];
    const room = DEEPEST - this.stack.slice(0, depth).filter((box) => box.kind === "quote" || box.kind === "list").length;
    for (;;) {
      const indent = spaces(line, at);
      const start = at + indent;
      if (start === line.length && !whole) return null;
      const rest = line.slice(start, start + 200);
      if (plan.length >= room) return { at: start, plan, indent };
      if (rest[0] === ">") {
        if (start + 1 === line.length && !whole) return null;
        at = start + (line[start + 1] === " " ? 2 : 1);
        plan.push({ kind: "quote" });
        continue;
      }
      if (!whole && /^(?:[-+* ]+|_[_ ]*|\d{1,9}[.)]? *)$/.test(rest) && /^[-+*_\d]/.test(rest)) return null;
      const marker = RULE.test(line.slice(start)) ? null : this.#marker(rest, depth + plan.length, plan, indent);
      if (!marker) return { at: start, plan, indent };
      plan.push(marker);
      at = start + marker.length;
    }
  }

  #marker(rest, depth, plan, indent) {
    const found = MARKER.exec(rest);
    if (!found) return null;
    const [mark, symbol, number, gap] = found;
    const inText = this.leaf instanceof Paragraph && depth === this.stack.length && !plan.length;
    if (inText && ((number && number !== "1") || mark.length === rest.length)) return null;
    const length = symbol.length + (gap.length > 4 || !gap ? Math.min(1, gap.length) : gap.length);
    const width = indent + Math.max(length, symbol.length + 1);
    return { kind: "item", delimiter: symbol.at(-1), number, length, indent: width, need: Math.min(width, indent + 2) };
  }

  /** Decide the block that a line's text belongs to. Guard clauses from the rarest to a plain paragraph. */
  #block(rest, whole, where) {
    if (!whole && /^(?:#{1,6}|`{1,2}|~{1,2}|[-*_][-*_ ]*)$/.test(rest)) return null;
    if (!rest) return this.#blank(where);
    const table = where.alone && this.leaf instanceof Table;
    const header = where.alone && this.leaf instanceof Paragraph && this.leaf.mayBeHeader();
    const slow = FENCE.test(rest) || /^#{1,6} /.test(rest) || table || (header && /^[|:-]/.test(rest));
    if (slow && !whole) {
      this.needsLine = true;
      return null;
    }
    if (header && this.#table(rest)) return null;
    if (table && rest.includes("|")) return void this.leaf.row(rest);
    if (whole && RULE.test(rest)) return void this.#commit(where).append(document.createElement("hr"));
    if (/^#{1,6}(?: |$)/.test(rest)) return void this.#heading(rest, where);
    const fence = FENCE.exec(rest)?.[1];
    if (fence && !(fence[0] === "`" && rest.slice(fence.length).includes("`"))) return void this.#fence(rest, fence, where);
    return this.#text(rest, whole, where);
  }

  #text(rest, whole, where) {
    if (this.leaf instanceof Paragraph && !where.plan.length) {
      this.leaf.add("\n");
      return rest;
    }
    const inItem = where.plan.at(-1)?.kind === "item";
    if (inItem && !whole && /^\[[ xX]?\]?$/.test(rest)) return null;
    const task = inItem && TASK.exec(rest);
    const element = this.#commit(where);
    this.leaf = new Paragraph(element, task && task[1] !== " ", Boolean(task));
    return task ? rest.slice(task[0].length) : rest;
  }

  #blank(where) {
    const quotes = this.stack.slice(where.depth).some((box) => box.kind === "quote");
    if (where.plan.length || quotes) this.#commit(where);
    else this.#closeLeaf();
    return null;
  }

  #heading(rest, where) {
    const level = /^#+/.exec(rest)[0].length;
    const text = rest.slice(level).trim();
    const closing = text.length - runLength(text, "#");
    this.heading = Math.min(level + 2, this.heading + 1, 6);
    const heading = child(this.#commit(where), `h${this.heading}`, `level-${level}`);
    drawInline(heading, closing === 0 || text[closing - 1] === " " ? text.slice(0, closing).trimEnd() : text);
  }

  #fence(rest, fence, where) {
    const language = rest.slice(fence.length).trim().split(/[\s{,]/)[0].slice(0, 40);
    this.leaf = new Code(this.#commit(where), fence, language, Math.min(where.indent, 3));
  }

  /** Make the paragraph a table if the line is the row under a table's header. */
  #table(rest) {
    const row = rest.trim();
    if (row.length > 20 * COLUMNS || !DELIMITERS.test(row) || !row.includes("-")) return false;
    const [header, marks] = [cells(this.leaf.first), cells(row)];
    if (header.length !== marks.length || header.length > COLUMNS || !(this.leaf.first.includes("|") && row.includes("|"))) return false;
    const parent = this.leaf.element.parentNode;
    this.leaf.element.remove();
    this.leaf = new Table(parent, header, marks);
    return true;
  }

  /** Close what the line does not continue and open what it opens. @returns {Element} where its block belongs */
  #commit({ depth, plan }) {
    this.#closeLeaf();
    this.stack.length = depth;
    for (const box of plan) this.#open(box);
    if (this.stack.at(-1).kind === "list") this.stack.pop();
    return this.stack.at(-1).element;
  }

  #open(box) {
    let top = this.stack.at(-1);
    if (top.kind === "list" && (box.kind !== "item" || top.delimiter !== box.delimiter)) {
      this.stack.pop();
      top = this.stack.at(-1);
    }
    if (box.kind === "item" && top.kind !== "list") {
      const element = child(top.element, box.number ? "ol" : "ul");
      if (box.number && box.number !== "1") element.setAttribute("start", Number(box.number));
      top = { kind: "list", element, delimiter: box.delimiter };
      this.stack.push(top);
    }
    this.stack.push({ ...box, element: child(top.element, box.kind === "item" ? "li" : "blockquote") });
  }

  #closeLeaf() {
    const { leaf } = this;
    this.leaf = null;
    leaf?.show(true);
    if (leaf instanceof Code) this.onCode(leaf.code, leaf.language);
  }
}

/** The open paragraph. Its first line is kept as long as it may be the header of a table. */
class Paragraph {
  constructor(parent, done, task) {
    this.element = child(parent, "p");
    if (task) this.#task(done);
    this.inline = new Inline(this.element);
    this.first = "";
    this.lines = 1;
  }
  #task(done) {
    const box = child(this.element, "span", "task");
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", done ? "done" : "to do");
    box.append(done ? "☑" : "☐");
  }
  mayBeHeader() {
    return this.lines === 1 && this.first.length < 20 * COLUMNS * 10;
  }
  add(text) {
    this.inline.add(text);
    if (text.includes("\n")) this.lines++;
    else if (this.lines === 1) this.first += text;
  }
  show(whole) {
    this.inline.show(whole);
  }
}

/** The open code block. */
class Code {
  constructor(parent, fence, language, indent) {
    Object.assign(this, { fence, language, indent, lines: 0, fresh: "" });
    const box = child(parent, "div", "code");
    const head = child(box, "div", "code-head");
    child(head, "span").append(language || "text");
    const copy = child(head, "button", "copy-code");
    copy.type = "button";
    copy.append("Copy");
    this.code = child(child(box, "pre"), "code");
    this.part = null;
  }
  startLine() {
    if (this.lines++) this.fresh += "\n";
    if (this.lines % CHUNK === 1) {
      this.show();
      this.part = child(this.code, "span", "lines").appendChild(document.createTextNode(""));
    }
  }
  add(text) {
    this.fresh += text;
  }
  show() {
    if (this.fresh) this.part.appendData(this.fresh);
    this.fresh = "";
  }
}

/** The open table. */
class Table {
  constructor(parent, header, marks) {
    const box = child(parent, "div", "table");
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "Table"]]) box.setAttribute(name, value);
    const table = child(box, "table");
    this.aligned = marks.map((mark) => (mark.endsWith(":") ? (mark.startsWith(":") ? "center" : "right") : ""));
    this.#cells(child(child(table, "thead"), "tr"), "th", header);
    this.body = child(table, "tbody");
  }
  row(line) {
    const found = cells(line);
    const columns = this.aligned.length;
    if (found.length > columns) found.push(found.splice(columns - 1).join(" | "));
    while (found.length < columns) found.push("");
    this.#cells(child(this.body, "tr"), "td", found);
  }
  #cells(row, tag, texts) {
    texts.forEach((text, n) => drawInline(child(row, tag, this.aligned[n]), text));
  }
  show() {}
}

function cells(line) {
  const row = line.trim().replace(/^\|/, "");
  const found = (row.endsWith("|") && !row.endsWith("\\|") ? row.slice(0, -1) : row).split(/(?<!\\)\|/);
  return found.map((cell) => cell.replaceAll("\\|", "|").trim());
}

/** A line whose leading tabs are spaces. */
function tabs(line) {
  const lead = /^[ \t]*/.exec(line)[0];
  return lead.includes("\t") ? lead.replaceAll("\t", "    ") + line.slice(lead.length) : line;
}

function spaces(line, at) {
  let end = at;
  while (line[end] === " ") end++;
  return end - at;
}

function runLength(text, char) {
  let n = 0;
  while (n < text.length && text[text.length - 1 - n] === char) n++;
  return n;
}

function child(parent, tag, name = "") {
  const element = document.createElement(tag);
  if (name) element.className = name;
  parent.append(element);
  return element;
}
