// A call as one card: a line with its state, and a body that is built when it is first opened.
//
// What a person must act on (a decision, an unknown outcome) stands below the line and is never folded. Each state has an
// icon, a word and a colour. Knows one call of state.js and the actions; no other card.

import { Approval, decisionText } from "./approval.js";
import { button, make } from "./dom.js";
import { rawCall } from "./raw.js";
import { isFinal, waitingCalls } from "./state.js";
import { duration, effectView, LiveArguments, resultView, rows, shown } from "./values.js";

const UNKNOWN = ["?", "interrupted: outcome unknown"];
const STATES = {
	writing: ["✎", "writing"],
	planned: ["○", "ready"],
	waiting: ["◆", "waiting for you"],
	approved: ["✓", "approved"],
	running: ["◌", "running"],
	done: ["●", "done"],
	failed: ["✕", "failed"],
	denied: ["⊘", "denied"],
	stopped: ["■", "stopped"],
	skipped: ["↷", "not run"],
	interrupted: UNKNOWN,
	unknown: UNKNOWN,
};

let count = 0;

export class CallCard {
	constructor({ id }, shared) {
		Object.assign(this, { id, shared, built: "", live: null, approvals: shared.drafts.get(id) ?? new Map(), outcome: null });
		shared.drafts.delete(id);
		shared.cards.set(id, this);
		const span = (name, props = {}) => make("span", { class: name, ...props });
		this.parts = { icon: span("icon-state", { "aria-hidden": "true" }) };
		for (const name of ["name", "target", "word", "time", "format"]) this.parts[name] = span(`call-${name}`);
		this.body = make("div", { class: "call-body", id: `call-body-${++count}`, hidden: true });
		this.head = button("", () => this.toggle(), { class: "call-head", "aria-expanded": "false", "aria-controls": this.body.id });
		this.head.append(...Object.values(this.parts));
		this.asks = make("div", { class: "asks" });
		this.element = make("section", { class: "call", role: "group", "data-call": id }, this.head, this.asks, this.body);
		this.update();
	}

	// Draw what changed.
	update() {
		const call = (this.call = this.shared.state.calls.get(this.id));
		const [icon, name] = STATES[call.status] ?? STATES.done;
		const left = call.status === "approved" && waitingCalls(this.shared.state).length;
		const word = left ? `${name}, waits for ${left} more` : name;
		this.#write({ icon, name: shown(call.name), target: shown(call.effect?.target ?? ""), word, format: call.format ?? "" });
		this.element.dataset.status = call.status;
		this.element.setAttribute("aria-label", `Call of ${shown(call.name)}: ${name}`);
		this.tick();
		this.#drawLive();
		this.#drawAsks();
		this.#drawBody();
	}

	// Draw the seconds: those that it took, or those since it started.
	tick() {
		const { call } = this;
		const seconds = call.seconds ?? (call.status === "running" && call.started ? Math.max(0, Date.now() / 1000 - call.started) : null);
		this.#write({ time: seconds === null ? "" : call.status === "running" ? `${Math.floor(seconds)} s` : duration(seconds) });
	}

	#write(texts) {
		for (const [part, text] of Object.entries(texts)) if (this.parts[part].textContent !== text) this.parts[part].textContent = text;
	}

	toggle(open = this.body.hidden) {
		this.body.hidden = !open;
		this.head.setAttribute("aria-expanded", String(open));
		this.#drawBody();
	}

	get isOpen() {
		return !this.body.hidden;
	}

	// Go to it, or to its decision.
	focus(id) {
		const asked = this.approvals.get(id) ?? this.approvals.values().next().value;
		if (asked) return asked.focus();
		this.head.focus({ preventScroll: true });
		this.head.scrollIntoView({ block: "nearest" });
		return undefined;
	}

	// The card leaves the page. Decisions that were begun are kept for the card that takes its place.
	remove() {
		this.shared.drafts.set(this.id, new Map([...this.approvals].filter(([, { begun }]) => begun)));
		for (const approval of this.approvals.values()) approval.remove();
		this.element.remove();
	}

	#drawLive() {
		const { status, chunks } = this.call;
		if (status !== "writing" || this.live?.read > chunks.length) {
			this.live?.box.remove();
			this.live = null;
		}
		if (status !== "writing") return;
		if (!this.live) {
			const text = new Text();
			this.live = { reader: new LiveArguments(), read: 0, text, box: make("pre", { class: "live" }, text) };
			this.head.after(this.live.box);
		}
		const { live } = this;
		const fresh = live.reader.read(chunks.slice(live.read).join(""));
		live.read = chunks.length;
		if (!fresh) return;
		live.text.appendData(fresh);
		live.box.scrollTop = live.box.scrollHeight;
	}

	#drawAsks() {
		const { call } = this;
		const inside = call.inside.filter((one) => !one.decided);
		const asked = call.status !== "waiting" ? [] : call.inside.length ? inside : [call];
		const wanted = new Map(asked.map((one) => [one.id, one]));
		for (const [id, approval] of this.approvals) {
			if (wanted.get(id)?.hash === approval.call.hash) {
				if (!approval.element.isConnected) approval.putIn(this.asks);
				continue;
			}
			if (approval.begun && !approval.busy) this.asks.append(make("p", { class: "fault" }, "Decided elsewhere: what you wrote here was not used."));
			approval.remove();
			this.approvals.delete(id);
		}
		for (const [id, one] of wanted) {
			if (this.approvals.has(id)) continue;
			const approval = new Approval({ ...one }, this.shared);
			this.approvals.set(id, approval);
			approval.putIn(this.asks);
		}
		if (call.status === "unknown") this.outcome ??= this.asks.appendChild(outcomeForm(call, this.shared));
		else {
			this.outcome?.remove();
			this.outcome = null;
		}
	}

	// The body, if it is open and not of this state yet.
	#drawBody() {
		const { call } = this;
		if (this.body.hidden) return;
		const state = `${call.status} ${call.arguments !== null} ${call.result !== null} ${Boolean(call.decided)} ${call.inside.length}`;
		if (state === this.built) return;
		this.built = state;
		this.body.replaceChildren(...bodyOf(call, this.shared.actions));
	}
}

function bodyOf(call, actions) {
	const { status, decided, inside, result } = call;
	const parts = [];
	const line = (name, text) => parts.push(make("p", { class: name }, text));
	if (status !== "waiting" && status !== "writing") parts.push(...effectView(call, actions));
	if (decided) line("decided", decisionText(decided));
	if (decided?.edited) {
		line("part-title", "Arguments it ran with");
		parts.push(rows(decided.edited));
	}
	for (const one of inside) if (one.decided) line("decided", `${shown(one.name)} inside: ${decisionText(one.decided)}`);
	if (isFinal(call) && result !== null) {
		line("part-title", status === "done" ? "Result" : "Answer to the model");
		parts.push(...resultView(result));
	}
	const raw = make("details", { class: "as-written" }, make("summary", {}, "As written"));
	raw.addEventListener("toggle", () => raw.childElementCount === 1 && raw.append(...rawCall(call)), { once: true });
	return [...parts, raw];
}

// What happened with a call that was running when the server stopped.
function outcomeForm(call, { actions }) {
	const note = make("p", { class: "fault", role: "alert" });
	const buttons = make("div", { class: "decide" });
	const box = make("div", { class: "approval outcome", role: "group", "aria-label": `Outcome of ${shown(call.name)}` });
	const send = (happened, text) => actions.outcome(call.id, { happened, text }).catch((error) => (note.textContent = error.message));
	const ask = () => {
		const field = make("textarea", { rows: "3", "aria-label": "What happened, as the model shall read it", placeholder: "What happened (the model reads it as the result)" });
		buttons.replaceChildren(field, button("Save", () => send(true, field.value.trim()), { class: "primary" }), button("Cancel", choose));
		field.focus();
	};
	const choose = () => buttons.replaceChildren(button("It happened…", ask), button("It did not happen", () => send(false, "")));
	choose();
	box.append(make("p", {}, "It was running when the server stopped; its effect may have happened."), ...effectView(call, actions), note, buttons);
	return box;
}
