// A reply as the model wrote it: the exact text, its calls tinted and linked to their cards, repairs and refusals explained.
// Knows the messages of state.js; builds elements and changes none that it has not built.

import { make } from "./dom.js";
import { writeJson } from "./json.js";
import { textOf } from "./state.js";
import { asText, shown } from "./values.js";

const TINTS = 6;

/**
 * A reply as it was written.
 * @param {import("./state.js").Message} message
 * @param {Map<string, import("./state.js").Call>} calls
 * @param {(id: string) => void} open shows a call's card
 */
export function rawReply(message, calls, open) {
  const box = make("div", { class: "raw" });
  const text = make("pre", { tabindex: "0", "aria-label": "The reply as the model wrote it" });
  const found = message.parts.filter((part) => part.kind === "call").map((part) => calls.get(part.id));
  const native = found.filter((call) => !call.raw);
  text.append(...(message.written ? ofWritten(message.written, found, open) : ofParts(message, calls, open)));
  if (text.textContent) box.append(text);
  if (message.written) for (const call of native) box.append(nativeCall(call, found.indexOf(call), open));
  for (const call of found) box.append(...remarks(call));
  if (!box.childNodes.length) box.append(make("p", { class: "small" }, "The model wrote nothing."));
  return box;
}

/** One call as it was written, with what was repaired or refused. */
export function rawCall(call) {
  const text = call.raw || writeJson({ name: call.name, arguments: call.arguments ?? {} }, 2);
  const how = !call.raw ? "a native call, as JSON" : `format ${call.format ?? "unknown"}`;
  return [make("p", { class: "small" }, how), make("pre", { class: "output", tabindex: "0", "aria-label": "The call as it was written" }, shown(text)), ...remarks(call)];
}

/** The written text, in which each call's own text is found from left to right. */
function ofWritten(written, calls, open) {
  const nodes = [];
  let at = 0;
  calls.forEach((call, n) => {
    const start = call.raw ? written.indexOf(call.raw, at) : -1;
    if (start < 0) return;
    nodes.push(shown(written.slice(at, start)), span(call.raw, call, n, open));
    at = start + call.raw.length;
  });
  return [...nodes, shown(written.slice(at))];
}

/** The same from the parts of a reply that is not stored yet: markup between them is not known. */
function ofParts(message, calls, open) {
  let n = 0;
  return message.parts.map((part) => {
    if (part.kind !== "call") return shown(textOf(part));
    const call = calls.get(part.id);
    return span(call.raw || asText({ name: call.name, arguments: call.arguments ?? call.chunks.join("") }), call, n++, open);
  });
}

function nativeCall(call, n, open) {
  return make("pre", {}, span(writeJson({ id: call.id, name: call.name, arguments: call.arguments }, 2), call, n, open));
}

function span(text, call, n, open) {
  const title = `The call of ${shown(call.name)}: show its card`;
  return make("button", { type: "button", class: `written tint-${n % TINTS}`, title, onclick: () => open(call.id) }, shown(text));
}

/** What was repaired in a call, and why it was refused. */
export function remarks(call) {
  const notes = call.repairs.map(({ code, text }) => make("p", { class: "repair" }, make("b", {}, `Repaired (${shown(code)}): `), shown(text ?? "")));
  const { error } = call;
  if (error?.code) {
    const place = error.position == null ? "" : ` at character ${error.position}`;
    notes.push(make("p", { class: "refused" }, make("b", {}, `Refused (${shown(error.code)}${place}): `), shown(error.message ?? "")));
  }
  return notes;
}
