// Markdown to elements while it streams: elements are only added, and what is settled is not touched again.
//
// A line is decided by its first character that is no mark; from there on it goes to the open block (inline.js), and a line of
// marks alone is decided at its end. So any cutting of a text gives the same elements. Differences from CommonMark: no
// headings by underline, no link definitions, no code by indentation, HTML stays text; nested lists need two more spaces than
// their parent's mark. Depth and table columns are bounded; what is beyond is text.

import { make } from "./dom.js";
import { Inline, drawInline } from "./inline.js";

const DEEPEST = 12; // quotes and lists in each other
const COLUMNS = 60;
const CHUNK = 40; // lines of code laid out together

const MARKS = /^[\s>*+_#~`|:.)\-[\]xX\d]*$/;
const RULE = /^(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/;
const MARKER = /^([-*+]|(\d{1,9})[.)])( +|$)/;
const TASK = /^\[([ xX])\] /;
const FENCE = /^(`{3,}|~{3,})(.*)/;
const HEADING = /^(#{1,6})(?: +(.*))?$/;
const DELIMITERS = /^\|? *:?-+:? *(?:\| *:?-+:? *)*\|?$/;

// Markdown written piece by piece into an element.
export class MarkdownStream {
	// `onCode` gets each finished block of code
	constructor(root, { onCode = () => {} } = {}) {
		this.onCode = onCode;
		this.heading = 2; // the level of the last heading, of the page's at first
		this.stack = [{ kind: "root", element: root }];
		this.leaf = null;
		this.line = ""; // of the open line, what is not decided yet
		this.decided = false; // whether the open line's text goes to the leaf
		this.needsLine = false; // whether only the whole line decides
	}

	write(text) {
		const lines = text.replaceAll("\r", "").split("\n");
		lines.forEach((line, n) => {
			if (n) this.#endLine();
			this.#add(line);
		});
		this.leaf?.show(false);
	}

	// The text is whole.
	end() {
		if (this.line) this.#endLine();
		this.#closeLeaf();
	}

	#add(text) {
		if (this.decided) return this.leaf.add(text);
		this.line += text;
		if (!this.needsLine && !MARKS.test(this.line)) this.#start(false);
	}

	#endLine() {
		if (!this.decided) this.#start(true);
		this.line = "";
		this.decided = this.needsLine = false;
	}

	// Start a line: close and open what its first characters say, and give its text to the leaf.
	#start(whole) {
		const code = this.leaf instanceof Code;
		const line = code ? this.line : this.line.replace(/^[ \t]+/, (lead) => lead.replaceAll("\t", "    "));
		const { at, depth } = this.#containers(line);
		const rest = code && depth === this.stack.length ? this.#code(line.slice(at), whole) : this.#block(line, this.#openings(line, at, depth), whole);
		if (rest === null) return;
		this.leaf.add(rest);
		this.decided = true;
		this.line = "";
	}

	// How many of the open containers the line continues, and where its text starts.
	#containers(line) {
		let at = 0;
		let depth = 1;
		for (; depth < this.stack.length; depth++) {
			const box = this.stack[depth];
			const indent = spaces(line, at);
			if (box.kind === "quote") {
				if (indent > 3 || line[at + indent] !== ">") break;
				at += indent + 1;
				if (line[at] === " ") at++;
			} else if (box.kind === "item") {
				if (indent < box.need && at + indent < line.length && !(this.leaf instanceof Code)) break;
				at += Math.min(indent, box.indent);
			}
		}
		return { at, depth };
	}

	#code(rest, whole) {
		const { leaf } = this;
		const mark = rest.trim();
		if (whole && spaces(rest, 0) < 4 && mark.length >= leaf.fence.length && mark === leaf.fence[0].repeat(mark.length)) {
			this.#closeLeaf();
			return null;
		}
		leaf.startLine();
		return rest.slice(Math.min(spaces(rest, 0), leaf.indent));
	}

	// The quotes and items that the line opens, and where its text starts.
	#openings(line, at, depth) {
		const plan = [];
		const room = DEEPEST - this.stack.slice(0, depth).filter((box) => box.kind === "quote" || box.kind === "list").length;
		for (;;) {
			const indent = spaces(line, at);
			const start = at + indent;
			const rest = line.slice(start);
			const box = plan.length >= room ? null : rest[0] === ">" ? { kind: "quote", length: rest[1] === " " ? 2 : 1 } : this.#marker(rest, plan, depth, indent);
			if (!box) return { rest, plan, indent, depth };
			plan.push(box);
			at = start + box.length;
		}
	}

	#marker(rest, plan, depth, indent) {
		const found = MARKER.exec(rest);
		if (!found || RULE.test(rest)) return null;
		const [mark, symbol, number, gap] = found;
		const inText = this.leaf instanceof Paragraph && depth === this.stack.length && !plan.length;
		if (inText && ((number && number !== "1") || mark.length === rest.length)) return null;
		const length = gap.length > 4 ? symbol.length + 1 : mark.length;
		const width = indent + Math.max(length, symbol.length + 1);
		return { kind: "item", delimiter: symbol.at(-1), number, length, indent: width, need: Math.min(width, indent + 2) };
	}

	// Open the block that a line's text belongs to, from the rarest to a plain paragraph. → the text for it, or null
	#block(line, where, whole) {
		const { rest, plan, depth } = where;
		if (!rest) return this.#blank(where);
		const { leaf } = this;
		const alone = !plan.length && depth === this.stack.length;
		const table = alone && leaf instanceof Table && rest.includes("|");
		const heading = HEADING.exec(rest);
		const fence = FENCE.exec(rest);
		if (!whole && (heading || fence || (alone && leaf instanceof Table))) {
			this.needsLine = true;
			return null;
		}
		if (table) leaf.row(rest);
		else if (heading) this.#heading(heading, where);
		else if (fence && !(fence[1][0] === "`" && fence[2].includes("`"))) this.leaf = new Code(this.#commit(where), fence, Math.min(where.indent, 3));
		else if (RULE.test(rest)) this.#commit(where).append(make("hr"));
		else if (!(alone && leaf instanceof Paragraph && this.#table(rest.trim()))) return this.#text(rest, where);
		return null;
	}

	#text(rest, where) {
		if (this.leaf instanceof Paragraph && !where.plan.length) {
			this.leaf.add("\n");
			return rest;
		}
		const task = where.plan.at(-1)?.kind === "item" && TASK.exec(rest);
		const done = task && task[1] !== " ";
		const box = task && make("span", { class: "task", role: "img", "aria-label": done ? "done" : "to do" }, done ? "☑" : "☐");
		this.leaf = new Paragraph(this.#commit(where), box);
		return task ? rest.slice(task[0].length) : rest;
	}

	#blank(where) {
		const quotes = this.stack.slice(where.depth).some((box) => box.kind === "quote");
		if (where.plan.length || quotes) this.#commit(where);
		else this.#closeLeaf();
		return null;
	}

	#heading([, { length }, text = ""], where) {
		this.heading = Math.min(length + 2, this.heading + 1, 6);
		const heading = make(`h${this.heading}`, { class: `level-${length}` });
		drawInline(heading, text.trim().replace(/(?:^|\s)#+$/, "").trim());
		this.#commit(where).append(heading);
	}

	// Make the paragraph a table if the row under its only line says so.
	#table(row) {
		const { first, lines, element } = this.leaf;
		if (lines > 1 || !first.includes("|") || !row.includes("|") || row.length > 20 * COLUMNS || !DELIMITERS.test(row)) return false;
		const [header, marks] = [cells(first), cells(row)];
		if (header.length !== marks.length || header.length > COLUMNS) return false;
		this.leaf = new Table(header, marks);
		element.replaceWith(this.leaf.element);
		return true;
	}

	// Close what the line does not continue and open what it opens. → the element where its block belongs
	#commit({ depth, plan }) {
		this.#closeLeaf();
		this.stack.length = depth;
		for (const box of plan) this.#open(box);
		if (this.stack.at(-1).kind === "list") this.stack.pop();
		return this.stack.at(-1).element;
	}

	#open(box) {
		const { kind, delimiter, number } = box;
		if (this.stack.at(-1).kind === "list" && this.stack.at(-1).delimiter !== delimiter) this.stack.pop();
		if (kind === "item" && this.stack.at(-1).kind !== "list") this.#push({ kind: "list", delimiter }, number ? "ol" : "ul", { start: number && number !== "1" && Number(number) });
		this.#push(box, kind === "item" ? "li" : "blockquote");
	}

	#push(box, tag, props) {
		const element = make(tag, props);
		this.stack.at(-1).element.append(element);
		this.stack.push({ ...box, element });
	}

	#closeLeaf() {
		const { leaf } = this;
		this.leaf = null;
		leaf?.show(true);
		if (leaf instanceof Code) this.onCode(leaf.code, leaf.language);
	}
}

// The open paragraph. Its first line is kept: it may be the header of a table.
class Paragraph extends Inline {
	constructor(parent, box) {
		super(make("p", {}, box));
		parent.append(this.element);
		this.first = "";
		this.lines = 1;
	}
	add(text) {
		super.add(text);
		if (text === "\n") this.lines++;
		else if (this.lines === 1) this.first += text;
	}
}

// The open code block.
class Code {
	constructor(parent, [, fence, about], indent) {
		const language = about.trim().split(/[\s{,]/)[0].slice(0, 40);
		Object.assign(this, { fence, language, indent, lines: 0, fresh: "", code: make("code") });
		const head = make("div", { class: "code-head" }, make("span", {}, language || "text"), make("button", { type: "button", class: "copy-code" }, "Copy"));
		parent.append(make("div", { class: "code" }, head, make("pre", {}, this.code)));
	}
	startLine() {
		if (this.lines++) this.fresh += "\n";
		if (this.lines % CHUNK !== 1) return;
		this.show();
		this.part = new Text();
		this.code.append(make("span", { class: "lines" }, this.part));
	}
	add(text) {
		this.fresh += text;
	}
	show() {
		if (this.fresh) this.part.appendData(this.fresh);
		this.fresh = "";
	}
}

// The open table.
class Table {
	constructor(header, marks) {
		this.aligned = marks.map((mark) => (mark.endsWith(":") ? (mark.startsWith(":") ? "center" : "right") : null));
		this.body = make("tbody");
		const table = make("table", {}, make("thead", {}, this.#cells("th", header)), this.body);
		this.element = make("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, table);
	}
	row(line) {
		const found = cells(line);
		const columns = this.aligned.length;
		if (found.length > columns) found.push(found.splice(columns - 1).join(" | "));
		while (found.length < columns) found.push("");
		this.body.append(this.#cells("td", found));
	}
	#cells(tag, texts) {
		const row = make("tr");
		texts.forEach((text, n) => drawInline(row.appendChild(make(tag, { class: this.aligned[n] })), text));
		return row;
	}
	show() {}
}

function cells(line) {
	const row = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
	return row.split(/(?<!\\)\|/).map((cell) => cell.replaceAll("\\|", "|").trim());
}

function spaces(line, at) {
	let end = at;
	while (line[end] === " ") end++;
	return end - at;
}
