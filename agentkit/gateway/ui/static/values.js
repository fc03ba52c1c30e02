// Values of calls as elements: arguments, effects, results. Knows no state; every text of a model or tool is a text node.

import { make } from "./dom.js";
import { writeJson } from "./json.js";
import { parsed } from "./state.js";

const ROWS = 200; // of a table in a result
const COLUMNS = 20;
const PICTURES = /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/;
// Controls, invisible and bidirectional characters, but line breaks, tabs and the emoji selector.
const HIDDEN =
	/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb]|[\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

// A text in which characters that do not show, or that reorder others, are spelt out.
export function shown(text) {
	return String(text).replace(HIDDEN, (char) => `⟨U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// A value as text: a string as it is, anything else as JSON.
export const asText = (value) => (typeof value === "string" ? value : writeJson(value, 2) ?? "null");

// Seconds for a person: "53 ms", "1.2 s", "4 min 10 s".
export function duration(seconds) {
	if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
	if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
	const whole = Math.round(seconds);
	return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

function short(count) {
	const [unit, sign] = count < 1000 ? [1, ""] : count < 999500 ? [1e3, "k"] : [1e6, "M"];
	return `${Number((count / unit).toPrecision(3))}${sign}`;
}

// Tokens and cost for a person: "1.2k tokens in, 80 out · $0.012"; empty without tokens.
export function useText({ inputTokens = 0, outputTokens = 0 } = {}, cost = null) {
	if (!inputTokens && !outputTokens) return "";
	const money = cost === null ? "" : ` · $${cost < 0.995 ? cost.toPrecision(2) : cost.toFixed(2)}`;
	return `${short(inputTokens)} tokens in, ${short(outputTokens)} out${money}`;
}

// A text in a box that scrolls.
export const scroller = (name, label, ...content) => make("pre", { class: name, tabindex: "0", "aria-label": label }, ...content);

export const small = (text) => make("p", { class: "small" }, text);

// Names and whole values of arguments.
export function rows(values) {
	const list = make("dl", { class: "rows" });
	for (const [name, value] of Object.entries(values)) {
		list.append(make("dt", {}, shown(name)), make("dd", {}, value === "" ? make("i", {}, "empty") : shown(asText(value))));
	}
	return list;
}

// What a call would do: its edit, text or program, then the other arguments.
export function effectView(call, actions) {
	const { target, note, edits, body = [], language, rest = {} } = call.effect ?? { rest: call.arguments ?? {} };
	const parts = [];
	if (target) parts.push(make("p", { class: "file" }, shown(target), note ? ` · ${shown(note)}` : ""));
	if (edits && body.every((line) => line[0] === " ")) parts.push(small("No change."));
	else if (edits) parts.push(diff(body));
	else if (body.length) parts.push(code(body.join("\n"), language, actions));
	if (Object.keys(rest).length) parts.push(rows(rest));
	return parts.length ? parts : [small("No arguments.")];
}

const SIGNS = { "+": ["added", "ins"], "-": ["removed", "del"] };

// Lines that start with a space, `-` or `+`; equal signs in a row are one element.
function diff(lines) {
	const box = scroller("diff", "Edit");
	for (let at = 0; at < lines.length; ) {
		let end = at;
		while (end < lines.length && lines[end][0] === lines[at][0]) end++;
		const [name, tag] = SIGNS[lines[at][0]] ?? ["same", "span"];
		box.append(make(tag, { class: name }, lines.slice(at, end).map(shown).join("\n")));
		at = end;
	}
	return box;
}

function code(text, language, actions) {
	const inner = make("code", {}, shown(text));
	if (language) highlight(inner, language, actions);
	return scroller("program", "Text", inner);
}

// Colour a finished piece of code. Its text stays the same, whatever the server answers.
export function highlight(element, language, actions) {
	wanted.set(element, () => colour(element, language, actions));
	visible.observe(element);
}

const wanted = new WeakMap(); // what to do with code once it is on the screen
const visible = new IntersectionObserver((entries) => {
	for (const { target } of entries.filter(({ isIntersecting }) => isIntersecting)) {
		visible.unobserve(target);
		wanted.get(target)();
	}
});

async function colour(element, language, actions) {
	const text = element.textContent;
	const tokens = await actions.highlight?.(language, text).catch(() => null);
	if (!Array.isArray(tokens) || tokens.map(([, piece]) => piece).join("") !== text || element.textContent !== text) return;
	element.replaceChildren(...tokens.map(([name, piece]) => (name ? make("span", { class: `tok-${name}` }, piece) : piece)));
}

// The content of a result: a text or a list of parts.
export function resultView(content) {
	if (content == null || content === "") return [small("It returned nothing.")];
	return typeof content === "string" ? [textView(content)] : content.map(partView);
}

function partView(part) {
	return part.type === "text" ? textView(part.text) : picture(part);
}

// A picture that came with the message; one that lies elsewhere is not loaded.
export function picture(part) {
	const { type, value, mimeType = part.mimeType } = part.source ?? { type: "data", value: part.data };
	const name = part.metadata?.name;
	if (type !== "data" || !value || !PICTURES.test(mimeType)) return small(shown(name ?? part.type));
	return make("img", { src: `data:${mimeType};base64,${value}`, alt: name ?? "Picture" });
}

function textView(text) {
	const json = /^\s*[[{]/.test(text) ? parsed(text) : undefined;
	return isTable(json) ? table(json) : scroller("output", "Result", shown(json === undefined ? text : asText(json)));
}

const isRow = (value) => value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 0;
const isTable = (json) => Array.isArray(json) && json.length > 0 && json.every(isRow);

function table(list) {
	const names = [...new Set(list.slice(0, ROWS).flatMap(Object.keys))];
	const columns = names.slice(0, COLUMNS);
	const line = (tag, cells) => make("tr", {}, ...cells.map((cell) => make(tag, {}, cell)));
	const cell = (value = "") => shown(typeof value === "string" ? value : writeJson(value));
	const body = list.slice(0, ROWS).map((row) => line("td", columns.map((name) => cell(Object.hasOwn(row, name) ? row[name] : undefined))));
	const more = [];
	if (list.length > ROWS) more.push(`${list.length - ROWS} more rows`);
	if (names.length > COLUMNS) more.push(`${names.length - COLUMNS} more columns`);
	return make(
		"div",
		{ class: "table", tabindex: "0", role: "group", "aria-label": "Result" },
		make("table", {}, make("thead", {}, line("th", columns.map(shown))), make("tbody", {}, ...body)),
		more.length ? small(`${more.join(", ")}: see the text as it was written.`) : null,
	);
}

// Reads the JSON text of arguments while it streams, as lines "name: value" without quotes and escapes.
export class LiveArguments {
	#open = ""; // an escape that is cut
	#depth = 0;
	#string = false;

	// → what to add to the text
	read(delta) {
		const text = this.#open + delta;
		const token = /\\(?:u[\da-f]{4}|[^u])|[^\\]/giy;
		let out = "";
		let at = 0;
		for (let found; (found = token.exec(text)); at = token.lastIndex) out += this.#shown(found[0]);
		this.#open = text.slice(at);
		return out;
	}

	#shown(token) {
		if (token === '"') {
			this.#string = !this.#string;
			return this.#depth > 1 ? token : "";
		}
		if (this.#string) return shown(token[1] ? parsed(`"${token}"`) ?? token : token);
		if (/[{[]/.test(token)) return this.#depth++ ? token : "";
		if (/[}\]]/.test(token)) return --this.#depth ? token : "";
		return this.#depth > 1 ? token : { ":": ": ", ",": "\n" }[token] ?? token.trim();
	}
}
