// A reply as the model wrote it: the exact text, its calls tinted and linked to their cards, repairs and refusals explained.
// Knows the messages of state.js; builds elements and changes none that it has not built.

import { button, make } from "./dom.js";
import { textOf } from "./state.js";
import { asText, scroller, shown, small } from "./values.js";

const TINTS = 3;

// A reply as it was written. `open(id)` shows a call's card.
export function rawReply({ parts, written }, calls, open) {
	const found = parts.filter((part) => part.kind === "call").map((part) => calls.get(part.id));
	const span = (call) => {
		const title = `The call of ${shown(call.name)}: show its card`;
		return button(shown(call.raw || nativeText(call)), () => open(call.id), { class: `written tint-${found.indexOf(call) % TINTS}`, title });
	};
	const text = scroller("", "The reply as the model wrote it");
	text.append(...(written ? ofWritten(written, found, span) : parts.map((part) => (part.kind === "call" ? span(calls.get(part.id)) : shown(textOf(part))))));
	const native = written ? found.filter((call) => !call.raw).map((call) => make("pre", {}, span(call))) : [];
	const nothing = !text.textContent && small("The model wrote nothing.");
	return make("div", { class: "raw" }, nothing || text, ...native, ...found.flatMap(remarks));
}

// One call as it was written, with what was repaired or refused.
export function rawCall(call) {
	const how = call.raw ? `format ${call.format ?? "unknown"}` : "a native call, as JSON";
	return [small(how), scroller("output", "The call as it was written", shown(call.raw || nativeText(call))), ...remarks(call)];
}

const nativeText = ({ name, arguments: values, chunks }) => asText({ name, arguments: values ?? chunks.join("") });

// The written text, in which each call's own text is found from left to right.
function ofWritten(written, calls, span) {
	const nodes = [];
	let at = 0;
	for (const call of calls) {
		const start = call.raw ? written.indexOf(call.raw, at) : -1;
		if (start < 0) continue;
		nodes.push(shown(written.slice(at, start)), span(call));
		at = start + call.raw.length;
	}
	return [...nodes, shown(written.slice(at))];
}

// What was repaired in a call, and why it was refused.
function remarks(call) {
	const { repairs, error } = call;
	const note = (kind, title, text) => make("p", { class: kind }, make("b", {}, title), shown(text ?? ""));
	const place = error?.position == null ? "" : ` at character ${error.position}`;
	const refused = error?.code ? [note("refused", `Refused (${shown(error.code)}${place}): `, error.message)] : [];
	return [...repairs.map(({ code, text }) => note("repair", `Repaired (${shown(code)}): `, text)), ...refused];
}
