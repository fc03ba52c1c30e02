// The text of one Markdown block as elements, settled from the left while it streams.
//
// A mark is decided at most REACH characters after its opening; until then it is drawn as a tail that is thrown away and
// drawn again. Hence a delta costs the same after any length, hostile text takes linear time, and any cutting of a text
// gives the same elements. Knows nothing of blocks. HTML stays text; only http, https and mailto become links.

import { make } from "./dom.js";

const REACH = 1500; // characters of a mark with its end
const DEEPEST = 6; // marks in marks
const MOST = 24; // runs of one character between an opening and its end

const PLAIN = /^(?:(?!https?:\/\/)[^\\`*_~[!<&\n ])+/;
const CODE = /^(`+)(?!`)([^]*?[^`])\1(?!`)/;
// What matters between a mark's opening and its end: escapes, code, open backticks, runs of one mark, brackets.
const INSIDE = /\\[^]|(`+)(?!`)[^]*?[^`]\1(?!`)|`+|([*_~])\2*|[[\]]/g;
const URL_TEXT = /^https?:\/\/[^\s<>`"*[\]]*/;
const ANGLE = /^<((?:https?:\/\/|mailto:)[^\s<>]+|[\w.+-]+@[\w.-]+)>/;
const ENTITY = /^&(amp|lt|gt|quot|#39|nbsp);/;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };
const TARGET = /^\(\s*<?((?:[^\s<>()]|\([^\s()]*\))*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;
const TAGS = { "*1": ["em"], "*2": ["strong"], "*3": ["em", "strong"], _1: ["em"], _2: ["strong"], _3: ["em", "strong"], "~2": ["del"] };

// A block's text, drawn into an element: `add` takes text, `show` draws it.
export class Inline {
	constructor(element) {
		Object.assign(this, { element, text: "", before: "", tail: [] });
	}

	add(text) {
		this.text += text;
	}

	// whether the block ends here
	show(whole) {
		for (const node of this.tail) node.remove();
		const reader = new Reader(this.text, { whole, before: this.before });
		put(this.element, reader.read());
		this.before = this.text[reader.at - 1] ?? this.before;
		this.text = this.text.slice(reader.at);
		this.tail = new Reader(this.text, { before: this.before, tail: true }).read().map((item) => (typeof item === "string" ? new Text(item) : item));
		this.element.append(...this.tail);
	}
}

// Draw a whole text into an element.
export function drawInline(element, text) {
	put(element, new Reader(text).read());
}

function put(element, items) {
	const { lastChild } = element;
	if (typeof items[0] === "string" && lastChild?.nodeType === Node.TEXT_NODE) lastChild.appendData(items.shift());
	element.append(...items);
}

// Reads marks into texts and elements. `whole`: no more text follows. `tail`: an open mark is drawn as if it were closed.
class Reader {
	constructor(text, { whole = true, before = "", tail = false, depth = 0, linked = false } = {}) {
		Object.assign(this, { text, whole, before, tail, depth, linked, at: 0 });
	}

	// The items up to the first mark that more text may change; `at` is where it starts.
	read() {
		const items = [];
		while (this.at < this.text.length) {
			const rest = this.text.slice(this.at, this.at + REACH);
			this.doubt = false;
			const [length, item] = (this.depth <= DEEPEST && MARKS[rest[0]]?.(rest, this, this.text[this.at - 1] ?? this.before)) || plain(rest);
			if (!this.whole && rest.length < REACH && (this.doubt || length === rest.length)) break;
			for (const one of [item].flat()) items.push(typeof one === "string" && typeof items.at(-1) === "string" ? items.pop() + one : one);
			this.at += length;
		}
		return items;
	}

	// The items of the text inside a mark.
	inside(text, { tail = false, linked = this.linked } = {}) {
		return new Reader(text, { tail, linked, depth: this.depth + 1 }).read();
	}

	// An open mark whose end may still come: text, or in the tail what `draw` makes of all that follows.
	open(rest, start, draw) {
		this.doubt = true;
		return this.tail && start < rest.length && rest.length < REACH ? [rest.length, draw()] : literal(rest, start);
	}

	// What matters inside a mark from a place on. Open backticks may become code, which hides what is in it.
	*spans(rest, from) {
		for (const found of rest.slice(from).matchAll(INSIDE)) {
			if (/^`+$/.test(found[0])) this.doubt = true;
			else if (!/^[\\`]/.test(found[0])) yield { mark: found[0], at: from + found.index };
		}
	}
}

const literal = (rest, length) => [length, rest.slice(0, length)];
const plain = (rest) => literal(rest, PLAIN.exec(rest)?.[0].length ?? 1);

// What starts with a character: (the text from it on, the reader, the character before) → [length, items], or nothing.
const MARKS = {
	"\\"(rest) {
		if (rest[1] === "\n") return [2, make("br")];
		return PUNCTUATION.test(rest[1] ?? "") && [2, rest[1]];
	},
	" "(rest) {
		const [{ length }, end] = /^ +(\n?)/.exec(rest);
		return [length, length > 2 && end ? make("br") : end || (length === rest.length ? "" : rest.slice(0, length))];
	},
	"`"(rest, reader) {
		const found = CODE.exec(rest);
		const start = /^`+/.exec(rest)[0].length;
		if (!found) return reader.open(rest, start, () => make("code", {}, rest.slice(start)));
		const code = found[2].replaceAll("\n", " ");
		return [found[0].length, make("code", {}, /^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code)];
	},
	"*": emphasis,
	_: emphasis,
	"~": emphasis,
	"[": (rest, reader) => link(rest, reader, 0),
	"!": (rest, reader) => rest[1] === "[" && link(rest, reader, 1),
	"<"(rest, reader) {
		const end = /^<br ?\/?>/i.exec(rest);
		if (end) return [end[0].length, make("br")];
		const found = ANGLE.exec(rest);
		reader.doubt = /^<(?:br )?[^\s<>]*$/i.test(rest);
		return found && [found[0].length, linkTo(found[1].includes(":") ? found[1] : `mailto:${found[1]}`, [found[1]])];
	},
	"&"(rest, reader) {
		const found = ENTITY.exec(rest);
		reader.doubt = /^&[#\w]{0,5}$/.test(rest);
		return found && [found[0].length, ENTITIES[found[1]]];
	},
	h(rest, reader, before) {
		const found = !reader.linked && !WORD.test(before) && URL_TEXT.exec(rest)?.[0];
		if (!found) return null;
		reader.doubt = found.length === rest.length;
		const text = withoutEnd(found);
		return [text.length, linkTo(text, [text])];
	},
};

// The text of an address without the punctuation of the sentence around it.
function withoutEnd(text) {
	let end = text.length;
	while (/[.,:;!?'")_~]/.test(text[end - 1]) && !(text[end - 1] === ")" && text.slice(0, end).includes("("))) end--;
	return text.slice(0, end);
}

function emphasis(rest, reader, before) {
	const [char] = rest;
	const [{ length }] = /^(.)\1*/.exec(rest);
	if (!opens(char, before, rest[length])) return literal(rest, length);
	for (const size of length === 3 ? [3, 1, 2] : [length]) {
		const tags = TAGS[char + size];
		const stop = tags && emphasisEnd(rest, reader, size);
		if (stop) return [stop + size, wrap(tags, reader.inside(rest.slice(size, stop)))];
		reader.doubt ||= Boolean(tags);
	}
	const tags = TAGS[char + length];
	return tags ? reader.open(rest, length, () => wrap(tags, reader.inside(rest.slice(length), { tail: true }))) : literal(rest, length);
}

function opens(char, before, after = "") {
	if (!after.trim() || (char === "_" && WORD.test(before))) return false;
	return !PUNCTUATION.test(after) || !before.trim() || PUNCTUATION.test(before);
}

const closes = (char, before, after = "") => before.trim() && !(char === "_" && WORD.test(after));

// Where the marks that end an emphasis start; 0 if there are none. Inner emphasis is counted.
function emphasisEnd(rest, reader, size) {
	const inner = [];
	let runs = 0;
	for (const { mark, at } of reader.spans(rest, size)) {
		if (mark[0] !== rest[0]) continue;
		if (++runs > MOST) return 0;
		const around = [mark[0], rest[at - 1], rest[at + mark.length]];
		let left = mark.length;
		if (at > size && closes(...around)) {
			while (inner.length && left >= inner.at(-1)) left -= inner.pop();
			if (!inner.length && (left === size || left === 3)) return at + mark.length - left;
		}
		if (left === mark.length && left <= 3 && opens(...around)) inner.push(left);
	}
	return 0;
}

function link(rest, reader, open) {
	if (reader.linked) return null;
	const close = bracketEnd(rest, reader, open);
	if (!close) return null;
	const text = rest.slice(open + 1, close);
	const target = TARGET.exec(rest.slice(close + 1));
	reader.doubt ||= !target && /^.?\(?$/.test(rest.slice(close, close + 2)); // "]" at the end, or "](" without its end
	if (!target) return rest[close + 1] === "(" && reader.tail ? reader.open(rest, close, () => reader.inside(text, { linked: true })) : null;
	return [close + 1 + target[0].length, open ? imageLink(target[1], text) : linkTo(target[1], reader.inside(text, { linked: true }))];
}

// Where the bracket that ends a link's text is; 0 if there is none.
function bracketEnd(rest, reader, open) {
	let depth = 0;
	for (const { mark, at } of reader.spans(rest, open)) {
		if (mark === "[" && ++depth > DEEPEST) return 0;
		if (mark === "]" && --depth === 0) return at;
	}
	reader.doubt = true;
	return 0;
}

function safeAddress(address) {
	try {
		const url = new URL(address);
		return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
	} catch {
		return null;
	}
}

// A link, followed by its host where the text does not show it; only the items if the address is not safe.
function linkTo(address, items) {
	const url = safeAddress(address);
	if (!url) return items;
	const a = make("a", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, ...items);
	const host = url.host || url.pathname;
	const shown = a.textContent.toLowerCase().replace(/^(?:https?:\/\/|mailto:)/, "");
	if (!url.username && (shown === host || shown.startsWith(`${host}/`))) return [a];
	return [a, make("span", { class: "host" }, ` (${host})`)];
}

// A picture is never loaded: it is a link to it.
function imageLink(address, alt) {
	const url = safeAddress(address);
	return url ? linkTo(address, [`image: ${url.host || url.pathname}${alt && ` (${alt})`}`])[0] : alt || "image";
}

const wrap = (tags, items) => tags.reduceRight((inside, tag) => [make(tag, {}, ...inside)], items)[0];
