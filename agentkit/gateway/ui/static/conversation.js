// The conversation: the state of state.js as elements. What events change is drawn once per animation frame.
//
// Of a long snapshot the last messages are built first and the others above them bit by bit, without moving what is
// read. The visible text is not a live region; one status line says what the agent does.

import { WaitingCalls } from "./approval.js";
import { button, change, make, say } from "./dom.js";
import { AnswerView, UserView } from "./message_views.js";
import { ALL, emptyState, isFinal, reduce, waitingCalls } from "./state.js";
import { duration, shown } from "./values.js";

const FIRST = 60; // messages of a snapshot that are built at once
const BATCH = 25; // messages whose layout is skipped together while they are off the screen
const SLICE = 10; // ms of building at once
const PAUSE = 30; // ms until more is built
const NEAR = 48; // px from the end that count as the end
const QUIET = new Set(["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"]);

export class Conversation {
	// `root`: an element with role "log" that scrolls; `actions`: see main.js; `onChange`: `summary` may be another one.
	constructor(root, actions, { onChange = () => {} } = {}) {
		Object.assign(this, { root, actions, onChange });
		this.list = make("div", { class: "messages" });
		this.newer = button("↓ new", () => this.#toEnd(), { class: "newer", hidden: true });
		this.silence = make("p", { class: "small", hidden: true });
		root.append(this.list, this.silence, this.newer);
		this.shared = { actions, cards: new Map(), drafts: new Map(), state: null, waiting: new WaitingCalls(), openCall: (id) => this.focusCard(id) };
		this.top = 0; // where it was scrolled to
		root.addEventListener("scroll", () => this.#scrolled(), { passive: true });
		new ResizeObserver(() => this.#stay()).observe(this.list);
		this.list.addEventListener("click", ({ target }) => {
			if (target.closest("summary, .call button")) this.atEnd = false; // what she opens stays where it is
		});
		setInterval(() => this.#tick(), 1000);
		this.reset();
	}

	// Another thread.
	reset() {
		this.state = emptyState();
		this.dirty = new Set([ALL]);
		this.top = 0;
		this.atEnd = true;
		this.said = "";
		this.#schedule();
	}

	// Apply one AG-UI event.
	apply(event) {
		for (const id of reduce(this.state, event)) this.dirty.add(id);
		if (this.dirty.size) this.#schedule();
		if (QUIET.has(event.type)) return;
		this.#schedule();
		this.#announce(event.type === "MESSAGES_SNAPSHOT");
		this.onChange();
	}

	// What the thread is doing.
	get summary() {
		const { run, thread } = this.state;
		return { waiting: waitingCalls(this.state).map(({ id, name }) => ({ id, name })), running: run !== null || thread?.state === "running" };
	}

	// How many messages the model has not been asked with yet.
	get queued() {
		return [...this.state.messages.values()].filter(({ queued }) => queued).length;
	}

	// Whether the last reply was stopped.
	get stopped() {
		const { order, messages, calls } = this.state;
		const last = messages.get(order.at(-1));
		return last?.state === "stopped" || last?.parts.some(({ id }) => calls.get(id)?.status === "stopped");
	}

	// Go to a call, or to the decision inside it.
	focusCard(id) {
		this.#frame();
		const owner = [...this.state.calls.values()].find((call) => call.id === id || call.inside.some((one) => one.id === id));
		if (!owner) return;
		this.#buildTo(this.state.order.indexOf(owner.message));
		this.views.get(owner.message)?.showCards();
		this.shared.cards.get(owner.id)?.focus(id);
	}

	// Show the focused reply, or else the last one, as the model wrote it; and back.
	toggleRaw() {
		const focused = document.activeElement?.closest?.("article.answer");
		const ids = this.state.order.filter((id) => this.views.get(id) instanceof AnswerView);
		const id = ids.find((one) => this.views.get(one).element === focused) ?? ids.at(-1);
		this.views.get(id)?.toggleRaw();
	}

	// Go to the next message (1) or to the one before (-1).
	move(step) {
		const all = [...this.list.querySelectorAll("article:not([hidden])")];
		const focused = all.indexOf(document.activeElement?.closest?.("article"));
		const edge = this.root.getBoundingClientRect().top;
		const top = all.findIndex((article) => article.getBoundingClientRect().bottom > edge + 8);
		const at = focused >= 0 ? focused + step : step > 0 ? top : top - 1;
		const target = all[Math.min(Math.max(at, 0), all.length - 1)];
		target?.focus({ preventScroll: true });
		target?.scrollIntoView({ block: "start" });
	}

	#schedule() {
		this.frame ??= requestAnimationFrame(() => this.#frame());
	}

	#frame() {
		cancelAnimationFrame(this.frame);
		this.frame = null;
		const { dirty } = this;
		this.dirty = new Set();
		const fresh = [...dirty].some((id) => !this.views?.has(id) || this.state.messages.get(id)?.open);
		if (dirty.has(ALL)) this.#rebuild();
		else for (const id of dirty) this.#draw(id);
		this.#drawSilence();
		if (!dirty.size) return;
		this.shared.waiting.place();
		const { first } = this.shared.waiting;
		if (this.asked && !first) this.atEnd = true;
		this.asked = first;
		if (fresh && !this.atEnd) this.newer.hidden = false;
	}

	#rebuild() {
		const { activeElement } = document;
		const raw = new Set([...(this.views ?? [])].filter(([, view]) => view.isRaw).map(([id]) => id));
		const fromEnd = this.atEnd ? 0 : this.root.scrollHeight - this.root.scrollTop;
		for (const view of this.views?.values() ?? []) view.remove?.();
		this.views = new Map();
		this.shared.cards.clear();
		if (this.shared.state !== this.state) this.shared.drafts.clear();
		this.shared.state = this.state;
		this.first = this.state.order.length;
		this.list.replaceChildren();
		this.#buildTo(this.first - FIRST);
		for (const id of raw) this.views.get(id)?.toggleRaw();
		if (fromEnd) this.root.scrollTop = this.root.scrollHeight - fromEnd;
		if (activeElement.isConnected) activeElement.focus({ preventScroll: true }); // in a decision that was begun
		this.#later();
	}

	// Build the messages from an index on, above those that are built.
	#buildTo(index) {
		while (this.first > Math.max(0, index)) this.list.prepend(this.#batch());
	}

	// The messages before the first built one, built.
	#batch() {
		const from = Math.max(0, this.first - BATCH);
		const batch = make("div", { class: "batch" }, ...this.state.order.slice(from, this.first).map((id) => this.#view(id).element));
		this.first = from;
		return batch;
	}

	#later() {
		const generation = this.views;
		if (this.first > 0) setTimeout(() => this.views === generation && this.#slice(), PAUSE);
	}

	// Build some more above, and keep what is read where it is.
	#slice() {
		const end = performance.now() + SLICE;
		const anchor = this.list.firstElementChild;
		const before = anchor?.getBoundingClientRect().top ?? 0;
		this.root.style.overflowAnchor = "none";
		const fresh = document.createDocumentFragment();
		while (this.first > 0 && performance.now() < end) fresh.prepend(this.#batch());
		this.list.prepend(fresh);
		if (!this.#stay() && anchor) this.root.scrollTop += anchor.getBoundingClientRect().top - before;
		this.root.style.overflowAnchor = "";
		this.#later();
	}

	#view(id) {
		const message = this.state.messages.get(id);
		const view = message.role === "user" ? new UserView(message, this.shared) : new AnswerView(message, this.shared);
		this.views.set(id, view);
		return view;
	}

	#draw(id) {
		const view = this.views.get(id);
		if (view) return view.update(this.state.messages.get(id));
		const index = this.state.order.lastIndexOf(id);
		if (index < this.first) return undefined; // it is built with its batch
		const next = this.views.get(this.state.order[index + 1]);
		const { element } = this.#view(id);
		if (next) return next.element.before(element);
		let last = this.list.lastElementChild;
		if (!last || last.childElementCount >= BATCH) last = this.list.appendChild(make("div", { class: "batch" }));
		return last.append(element);
	}

	#scrolled() {
		const { scrollTop, scrollHeight, clientHeight } = this.root;
		if (this.asked) this.atEnd &&= scrollTop === this.top;
		else if (scrollHeight - scrollTop - clientHeight < NEAR) {
			this.atEnd = true;
			this.newer.hidden = true;
		} else if (scrollTop < this.top) this.atEnd = false;
		this.top = scrollTop;
	}

	// Stay at the end, if it is there and was not scrolled since. → whether it is there
	#stay() {
		if (this.root.scrollTop < this.top) this.#scrolled();
		if (this.atEnd) this.#toEnd();
		return this.atEnd;
	}

	#toEnd() {
		this.atEnd = true;
		change(this.newer, { hidden: true });
		this.root.scrollTop = this.root.scrollHeight;
		if (this.asked?.getBoundingClientRect().top < this.root.getBoundingClientRect().top) this.asked.scrollIntoView();
		this.top = this.root.scrollTop;
	}

	// Say for how long the model has been asked and has written nothing.
	#drawSilence() {
		const { run, turn, thread, messages, calls } = this.state;
		const silent = run !== null && !messages.get(turn)?.open && [...calls.values()].every(isFinal);
		this.since = silent ? (this.since ?? Date.now()) : null;
		const seconds = Math.floor((Date.now() - this.since) / 1000);
		const text = silent && `Waiting for ${shown(thread?.model || "the model")}… ${seconds < 60 ? `${seconds} s` : duration(seconds)}`;
		change(this.silence, { hidden: !silent, textContent: text || "" });
	}

	#tick() {
		if (document.hidden) return;
		this.#drawSilence();
		for (const call of this.state.calls.values()) if (call.status === "running") this.shared.cards.get(call.id)?.tick();
	}

	#announce(silent) {
		const { waiting, running } = this.summary;
		const call = [...this.state.calls.values()].findLast(({ status }) => status === "running");
		const text = waiting.length ? `waiting for you: ${waiting.map(({ name }) => name).join(", ")}` : call && running ? `running ${call.name}` : running ? "answering" : this.said ? "done" : "";
		if (text === this.said) return;
		this.said = text;
		if (!silent) say(text);
	}
}
