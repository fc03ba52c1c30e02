// One message as an <article>: its parts, its footer, and the reply as it was written.
//
// A part is only added to. A message that lost parts (its run is sent again) is drawn anew.

import { CallCard } from "./cards.js";
import { button, change, make } from "./dom.js";
import { MarkdownStream } from "./markdown.js";
import { rawReply } from "./raw.js";
import { textOf } from "./state.js";
import { duration, highlight, picture, shown, useText } from "./values.js";

const FOLD = 3; // finished calls in a row that become one line

const minutes = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const clock = (epoch) => minutes.format(epoch * 1000);

// Copy a text, and say on the button that it is done.
async function copy(text, element, actions) {
	await actions.copy(text);
	element.textContent = "Copied";
	setTimeout(() => (element.textContent = "Copy"), 1500);
}

// The buttons of a message: copy its text; fork after it, once it is stored.
function footerButtons(text, seq, actions) {
	const quiet = (label) => ({ class: "quiet", "aria-label": label });
	const copied = button("Copy", () => copy(text(), copied, actions), quiet("Copy the message"));
	return seq === undefined ? [copied] : [copied, button("Fork", () => actions.fork(seq), quiet("Fork the thread after this message"))];
}

const article = (name, title, props, ...content) => make("article", { class: name, tabindex: "-1", ...props }, make("h2", { class: "hidden" }, title), ...content);

export class UserView {
	constructor(message, shared) {
		this.shared = shared;
		this.content = make("div", { class: "said" });
		this.footer = make("footer");
		this.element = article("user", "You", {}, this.content, this.footer);
		this.update(message);
	}

	update(message) {
		const { content, queued, seq, created } = message;
		const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
		this.content.replaceChildren(...parts.map(userPart));
		this.element.classList.toggle("queued", queued);
		const text = () => parts.flatMap((part) => part.text ?? []).join("\n\n");
		const state = make("span", {}, queued ? "queued: the model reads it with its next request" : created ? clock(created) : "");
		this.footer.replaceChildren(...footerButtons(text, seq, this.shared.actions), state);
	}
}

function userPart(part) {
	const [, name, , text] = /^(.+):\n(`{3,})\n([^]*)\n\2\n$/.exec(part.text) ?? []; // an attached file
	if (name) return make("details", { class: "parts" }, make("summary", {}, shown(name)), make("pre", {}, shown(text)));
	return part.type === "text" ? make("p", {}, part.text) : picture(part);
}

export class AnswerView {
	constructor(message, shared) {
		Object.assign(this, { shared, parts: [], raw: null });
		this.content = make("div", { class: "parts" });
		this.end = make("p", { class: "end", hidden: true });
		this.meta = make("span");
		this.rawButton = button("As written", () => this.toggleRaw(), { class: "quiet", "aria-pressed": "false", title: "r" });
		this.footer = make("footer");
		this.element = article("answer", "Reply", { onclick: (event) => this.#copyCode(event) }, this.content, this.end, this.footer);
		this.update(message);
	}

	get isRaw() {
		return this.raw !== null;
	}

	update(message) {
		if (this.message && (message !== this.message || message.parts.length < this.parts.length)) this.remove();
		this.message = message;
		change(this.element, { hidden: !message.parts.length && !message.problem && !message.open, ariaBusy: String(message.open) });
		message.parts.forEach((part, n) => {
			this.parts[n] ??= this.#add(part);
			this.parts[n].update(part, n === message.parts.length - 1 && message.open);
		});
		this.#fold();
		this.#drawEnd();
		this.#drawFooter();
		if (this.raw) this.#drawRaw();
	}

	toggleRaw() {
		const open = !this.raw;
		this.raw?.remove();
		this.raw = null;
		this.content.hidden = open;
		this.rawButton.setAttribute("aria-pressed", String(open));
		if (open) this.#drawRaw();
	}

	// Show the rendered reply with its calls unfolded.
	showCards() {
		if (this.raw) this.toggleRaw();
		for (const fold of this.content.querySelectorAll("details.fold")) fold.open = true;
	}

	// Its parts leave the page.
	remove() {
		for (const part of this.parts) part.remove?.();
		this.parts = [];
		this.content.replaceChildren();
	}

	#add(part) {
		const view = new VIEWS[part.kind](part, this.shared);
		this.content.append(view.element);
		return view;
	}

	#drawRaw() {
		const fresh = rawReply(this.message, this.shared.state.calls, this.shared.openCall);
		if (this.raw) this.raw.replaceWith(fresh);
		else this.content.after(fresh);
		this.raw = fresh;
	}

	#drawEnd() {
		const { state, problem, finish } = this.message;
		const text = problem || ENDS[state] || (state === "complete" ? ENDS[finish] : "") || "";
		change(this.end, { hidden: !text, textContent: shown(text) });
	}

	#drawFooter() {
		const { message } = this;
		if (message.open && !this.footer.childElementCount) return undefined;
		if (message.open) return this.footer.replaceChildren();
		this.meta.textContent = metaText(message);
		if (this.footer.childElementCount && this.seq === message.seq) return undefined; // else a button loses the focus
		this.seq = message.seq;
		const text = () => message.parts.filter((part) => part.kind === "text").map(textOf).join("").trim();
		return this.footer.replaceChildren(this.meta, ...footerButtons(text, this.seq, this.shared.actions), this.rawButton);
	}

	// Put finished calls that follow each other into one line, but not the last ones of a reply that is being written.
	#fold() {
		const { parts } = this.message;
		for (let at = 0; at < parts.length; at++) {
			let end = at;
			while (end < parts.length && this.#foldable(parts[end], end)) end++;
			if (end - at >= FOLD && (end < parts.length || !this.message.open)) this.#foldRow(this.parts.slice(at, end));
			at = end;
		}
	}

	#foldable(part, n) {
		const call = part.kind === "call" && this.shared.state.calls.get(part.id);
		if (!call || call.status !== "done") return false;
		const { isOpen, element } = this.parts[n];
		return !isOpen || element.closest("details.fold");
	}

	#foldRow(row) {
		const first = row[0].element;
		let fold = first.parentNode.closest("details.fold");
		if (!fold) {
			fold = make("details", { class: "fold" }, make("summary"));
			first.before(fold);
		}
		for (const { element } of row) if (element.parentNode !== fold && !element.contains(document.activeElement)) fold.append(element);
		const calls = row.map(({ call }) => call);
		const seconds = calls.reduce((sum, call) => sum + (call.seconds ?? 0), 0);
		fold.firstElementChild.textContent = `${calls.length} calls${seconds ? ` · ${duration(seconds)}` : ""}`;
	}

	#copyCode({ target }) {
		if (!target.classList.contains("copy-code")) return;
		copy(target.closest(".code").querySelector("code").textContent, target, this.shared.actions);
	}
}

const ENDS = {
	stopped: "Stopped: this reply is unfinished.",
	partial: "Interrupted: the server stopped while this was written.",
	error: "This reply ended with an error.",
	length: "The reply reached the model's length limit.",
	content_filter: "The provider's filter ended this reply.",
	refusal: "The model refused.",
};

function metaText({ model, seconds, usage, cost, created }) {
	return [created && clock(created), model, seconds && duration(seconds), useText(usage, cost)].filter(Boolean).map(shown).join(" · ");
}

// A part whose text grows.
class Growing {
	read = 0;
	text = new Text();
	fresh(part) {
		const text = part.chunks.slice(this.read).join("");
		this.read = part.chunks.length;
		return text;
	}
	update(part) {
		const text = this.fresh(part);
		if (text) this.text.appendData(shown(text));
	}
}

class TextPart extends Growing {
	constructor(part, { actions }) {
		super();
		this.element = make("div", { class: "markdown" });
		this.stream = new MarkdownStream(this.element, { onCode: (code, language) => language && highlight(code, language, actions) });
		this.ended = false;
	}
	update(part, open) {
		const text = this.fresh(part);
		if (text) this.stream.write(text);
		if (open || this.ended) return;
		this.stream.end();
		this.ended = true;
	}
}

class ThinkingPart extends Growing {
	constructor() {
		super();
		this.title = make("summary");
		this.element = make("details", { class: "thinking" }, this.title, make("div", { class: "thought" }, this.text));
	}
	update(part, open) {
		super.update(part);
		const title = open && !part.done ? "Thinking…" : "Thought";
		if (this.title.textContent !== title) this.title.textContent = title;
	}
}

class NotePart extends Growing {
	constructor(part) {
		super();
		const name = shown(part.name || "a tool");
		const title = part.kind === "invented" ? "The model wrote a result or another speaker's turn itself. It was cut and is not part of the reply." : `The model tried to call ${name} in a way that could not be read.`;
		this.element = make("details", { class: "odd" }, make("summary", {}, title), make("pre", {}, this.text));
	}
}

const VIEWS = { text: TextPart, thinking: ThinkingPart, invented: NotePart, unread: NotePart, call: CallCard };
