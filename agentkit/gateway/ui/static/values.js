// Values of calls as elements: arguments, effects, results. Knows no state; every text of a model or tool is a text node.

import { make } from "./dom.js";
import { writeJson } from "./json.js";
import { parsed } from "./state.js";

const ROWS = 200; // of a table in a result
const COLUMNS = 20;
const LONGEST = 60000; // characters of code that are highlighted
const PICTURES = /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/;
// Controls, invisible and bidirectional characters, but line breaks, tabs and the emoji selector.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb]|[\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** A text in which characters that do not show, or that reorder others, are spelt out. @param {string} text */
export function shown(text) {
  return String(text).replace(HIDDEN, (char) => `⟨U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** A value as text: a string as it is, anything else as JSON. */
export const asText = (value) => (typeof value === "string" ? value : writeJson(value, 2) ?? "null");

/** Seconds for a person: "53 ms", "1.2 s", "4 min 10 s". @param {number} seconds */
export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** Names and whole values of arguments. @param {Record<string, unknown>} values */
export function rows(values) {
  const list = make("dl", { class: "rows" });
  for (const [name, value] of Object.entries(values)) {
    const kind = typeof value === "string" ? "text" : "other";
    list.append(make("dt", {}, shown(name)), make("dd", { class: kind }, value === "" ? make("i", {}, "empty") : shown(asText(value))));
  }
  return list;
}

/** What a call would do: its edit, text or program, then the other arguments. */
export function effectView(call, actions) {
  const { effect } = call;
  const given = call.arguments ?? {};
  if (!effect) return [Object.keys(given).length ? rows(given) : make("p", { class: "small" }, "No arguments.")];
  const parts = [];
  if (effect.target) parts.push(make("p", { class: "file" }, shown(effect.target), effect.note ? ` · ${shown(effect.note)}` : ""));
  if (effect.edits) parts.push(diff(effect.body));
  else if (effect.body?.length) parts.push(code(effect.body.join("\n"), effect.language, actions));
  if (Object.keys(effect.rest ?? {}).length) parts.push(rows(effect.rest));
  return parts.length ? parts : [make("p", { class: "small" }, "No arguments.")];
}

const SIGNS = { "+": ["added", "ins"], "-": ["removed", "del"] };

/** Lines that start with a space, `-` or `+`; equal signs in a row are one element. */
function diff(lines) {
  const box = make("pre", { class: "diff", tabindex: "0", "aria-label": "Edit" });
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
  return make("pre", { class: "program", tabindex: "0", "aria-label": "Text" }, inner);
}

/** Colour a finished piece of code. Its text stays the same, whatever the server answers. */
export async function highlight(element, language, actions) {
  const text = element.textContent;
  if (!text || text.length > LONGEST || !actions.highlight) return;
  const found = await actions.highlight(language, text).catch(() => null);
  const tokens = found?.tokens ?? found;
  if (!Array.isArray(tokens) || tokens.map(([, piece]) => piece).join("") !== text || element.textContent !== text) return;
  element.replaceChildren(...tokens.map(([name, piece]) => (name ? make("span", { class: `tok-${name}` }, piece) : piece)));
}

/** The content of a result: a text or a list of parts. @returns {Element[]} */
export function resultView(content) {
  if (content === null || content === undefined || content === "") return [make("p", { class: "small" }, "It returned nothing.")];
  return typeof content === "string" ? [textView(content)] : content.map(partView);
}

function partView(part) {
  if (part.type === "text") return textView(part.text);
  return picture(part) ?? make("p", { class: "small" }, `A part of type ${shown(part.type)}, which is not shown.`);
}

/** A picture that came with the message; one that lies elsewhere is not loaded. */
export function picture(part) {
  const { type, value, mimeType = part.mimeType } = part.source ?? { type: "data", value: part.data };
  if (type !== "data" || !value || !PICTURES.test(mimeType)) return null;
  return make("img", { src: `data:${mimeType};base64,${value}`, alt: part.metadata?.name ?? "Picture" });
}

function textView(text) {
  const json = /^\s*[[{]/.test(text) ? parsed(text) : undefined;
  if (json === undefined) return make("pre", { class: "output", tabindex: "0", "aria-label": "Result" }, shown(text));
  return isTable(json) ? table(json) : make("pre", { class: "output", tabindex: "0", "aria-label": "Result" }, shown(writeJson(json, 2)));
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isTable = (json) => Array.isArray(json) && json.length > 0 && json.every((row) => isObject(row) && Object.keys(row).length);

function table(list) {
  const names = [...new Set(list.slice(0, ROWS).flatMap(Object.keys))];
  const columns = names.slice(0, COLUMNS);
  const line = (tag, cells) => make("tr", {}, ...cells.map((cell) => make(tag, {}, cell)));
  const cell = (value) => (value === undefined ? "" : shown(typeof value === "string" ? value : writeJson(value)));
  const body = list.slice(0, ROWS).map((row) => line("td", columns.map((name) => cell(Object.hasOwn(row, name) ? row[name] : undefined))));
  const more = [];
  if (list.length > ROWS) more.push(`${list.length - ROWS} more rows`);
  if (names.length > COLUMNS) more.push(`${names.length - COLUMNS} more columns`);
  return make(
    "div",
    { class: "table", tabindex: "0", role: "group", "aria-label": "Result" },
    make("table", {}, make("thead", {}, line("th", columns.map(shown))), make("tbody", {}, ...body)),
    more.length ? make("p", { class: "small" }, `${more.join(", ")}: see the text as it was written.`) : null,
  );
}

/** Reads the JSON text of arguments while it streams, as lines "name: value" without quotes and escapes. */
export class LiveArguments {
  constructor() {
    Object.assign(this, { depth: 0, string: false, escape: "", key: true, first: true });
  }

  /** @param {string} delta @returns {string} what to add to the text */
  read(delta) {
    let out = "";
    for (const char of delta) out += this.string ? this.#inString(char) : this.#outside(char);
    return out;
  }

  #inString(char) {
    if (this.escape) return this.#escaped(char);
    if (char === "\\") this.escape = char;
    else if (char === '"') {
      this.string = false;
      return this.depth > 1 ? char : "";
    } else return shown(char);
    return "";
  }

  #escaped(char) {
    this.escape += char;
    if (this.escape[1] === "u" && this.escape.length < 6) return "";
    const text = parsed(`"${this.escape}"`) ?? this.escape;
    this.escape = "";
    return shown(text);
  }

  #outside(char) {
    if (char === '"') {
      this.string = true;
      if (this.depth > 1) return char;
      const lead = this.key && !this.first ? "\n" : "";
      this.first = false;
      return lead;
    }
    if (this.depth <= 1 && char === ":") return this.#colon();
    if (this.depth <= 1 && char === ",") this.key = true;
    else if (char === "{" || char === "[") return this.depth++ ? char : "";
    else if (char === "}" || char === "]") return --this.depth ? char : "";
    else return this.depth > 1 || char.trim() ? char : "";
    return "";
  }

  #colon() {
    this.key = false;
    return ": ";
  }
}
