// A call that waits for a person: its effect, its arguments, why it was asked, and the decision.
//
// Nothing is cut; nothing is focused by itself; the buttons are dead for DEAD ms, so that a key or click that was meant for
// something else decides nothing. A decision is bound to the hash of the call that was shown.

import { button, make } from "./dom.js";
import { ArgumentForm } from "./form.js";
import { effectView, shown } from "./values.js";

const DEAD = 500; // ms
const REASONS = ["Not now", "Wrong arguments", "Do it another way"];

// What was decided, for a person.
export function decisionText({ decision, by, reason, edited }) {
	const who = by ? ` by ${by === "page" ? "you" : shown(by)}` : "";
	return `${decision}${who}${edited ? ", arguments edited" : ""}${reason ? `: ${shown(reason)}` : ""}`;
}

// The block of one waiting call. `all` is shared by those that wait together: see `WaitingCalls`.
export class Approval {
	constructor(call, { actions, waiting: all }) {
		Object.assign(this, { call, actions, all, busy: false, form: null });
		this.keys = {
			y: () => this.decide({ approved: true }),
			e: () => this.#edit(),
			n: () => this.#deny(),
			a: () => this.decide({ approved: true, always: true }),
			p: () => this.#pattern(),
		};
		for (const [key, run] of Object.entries(this.keys)) this.keys[key] = () => this.alive && !this.busy && run();
		this.count = make("span", { class: "count" });
		this.note = make("p", { class: "fault", role: "alert" });
		this.content = make("div", { class: "effect" }, ...effectView(call, actions));
		this.extra = make("div", { class: "extra" });
		this.buttons = make("div", { class: "decide" }, ...this.#buttons());
		this.element = make(
			"div",
			{ class: "approval", tabindex: "-1", role: "group", "aria-label": `Decide: ${shown(call.name)}`, onkeydown: (event) => this.#key(event) },
			make("p", { class: "ask" }, make("b", {}, `Run ${shown(call.name)}?`), this.count),
			this.content,
			call.reason && make("p", { class: "why" }, `Why it asks: ${shown(call.reason)}`),
			this.extra,
			this.buttons,
			this.note,
		);
		this.#rest();
	}

	// Show it in a card.
	putIn(card) {
		card.append(this.element);
		this.all.add(this);
	}

	// Whether a form is open.
	get begun() {
		return this.buttons.hidden;
	}

	#rest() {
		this.#enable(false);
		setTimeout(() => this.#enable(true), DEAD);
	}

	// Show the place among those that wait, and whether all of them may be approved at once.
	place(n, total, seen) {
		this.count.textContent = total > 1 ? `${n} of ${total}` : "";
		const all = total > 1 && n === total;
		this.every.hidden = !all;
		this.every.textContent = `Approve all ${total}`;
		this.every.setAttribute("aria-disabled", String(!seen));
		this.every.title = seen ? "" : "Look at each of them first, and close their forms";
	}

	focus() {
		this.element.focus({ preventScroll: true });
		this.element.scrollIntoView();
	}

	// After a decision here the focus goes to the next one that waits, or else to the message field.
	remove() {
		const onward = this.busy && this.element.contains(document.activeElement);
		this.all.delete(this);
		this.element.remove();
		if (!onward) return;
		const [next] = this.all.list;
		(next ?? document.getElementById("text"))?.focus();
		next?.#rest();
	}

	#buttons() {
		this.every = button("Approve all", () => this.all.approve(), { hidden: true });
		const inside = this.call.id.includes("/"); // the server refuses rules for a call inside another one
		return [
			button("Approve", this.keys.y, { class: "primary" }),
			button("Edit", this.keys.e),
			button("Deny…", this.keys.n),
			!inside && button(`Always allow ${shown(this.call.name)} in this thread`, this.keys.a),
			!inside && button("Always allow like this…", this.keys.p),
			this.every,
		];
	}

	#enable(alive) {
		this.alive = alive;
		for (const button of this.element.querySelectorAll("button")) button.setAttribute("aria-disabled", String(!alive));
		this.all.place();
	}

	#key(event) {
		if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
		const run = this.keys[event.key];
		if (!run) return;
		event.preventDefault();
		event.stopPropagation();
		run();
	}

	#edit() {
		const { name, arguments: given } = this.call;
		this.#fill(given, this.actions.schema(name), "", "Approve with these arguments", "arguments");
		this.content.hidden = true;
		this.element.scrollIntoView({ block: "nearest" });
	}

	// Patterns for the arguments of later calls: at first, those of this call.
	#pattern() {
		const quoted = (value) => (typeof value === "string" ? value.replace(/[\\*]/g, "\\$&") : value);
		const patterns = Object.entries(this.call.arguments ?? {}).map(([name, value]) => [name, quoted(value)]);
		const hint = "Calls like this will run unasked. * stands for letters, digits, spaces and _ . / : = @ , + -";
		this.#fill(Object.fromEntries(patterns), null, hint, "Approve, and always allow these", "always");
	}

	#fill(given, schema, hint, name, field) {
		this.form = new ArgumentForm(given ?? {}, schema);
		this.#open(make("div", {}, hint && make("p", { class: "small" }, hint), this.form.element), name, () => {
			const values = this.form.read();
			if (values) this.decide({ approved: true, [field]: values });
		});
		this.form.focus();
	}

	#deny() {
		const field = make("textarea", { rows: "2", "aria-label": "Reason, which the model reads", placeholder: "Reason (the model reads it)" });
		const chips = REASONS.map((text) => button(text, () => (field.value = text), { class: "chip" }));
		this.#open(make("div", {}, field, make("div", { class: "chips" }, ...chips)), "Deny", () => this.decide({ approved: false, reason: field.value.trim() }));
		field.focus();
		this.extra.scrollIntoView({ block: "nearest" });
	}

	// Show a form in the place of the buttons.
	#open(content, name, run) {
		this.extra.replaceChildren(content, make("div", { class: "decide" }, button(name, run, { class: "primary" }), button("Cancel", () => this.#close())));
		this.extra.onkeydown = (event) => {
			const act = event.key === "Escape" ? () => this.#close() : event.key === "Enter" && (event.ctrlKey || event.metaKey) && run;
			if (!act) return;
			event.preventDefault();
			event.stopPropagation();
			act();
		};
		this.buttons.hidden = true;
		this.all.place();
	}

	#close() {
		this.form = null;
		this.extra.replaceChildren();
		this.buttons.hidden = this.content.hidden = false;
		this.all.place();
		this.element.focus({ preventScroll: true });
	}

	// Send a decision. What it changes comes back as an event.
	async decide(decision) {
		if (this.busy) return false;
		this.busy = true;
		this.element.setAttribute("aria-busy", "true");
		this.note.textContent = "";
		try {
			await this.actions.decide(this.call.id, { hash: this.call.hash, ...decision });
			return true;
		} catch (error) {
			this.busy = false;
			this.element.removeAttribute("aria-busy");
			const lost = error.status === 409 ? "It was decided elsewhere, or it changed. " : "";
			this.note.textContent = this.form?.showErrors(error.fields) ? "These arguments do not fit." : `${lost}${error.message}`;
			this.note.scrollIntoView({ block: "nearest" });
			return false;
		}
	}
}

// The approvals that wait together: their count, and one decision for all once the buttons of each were on the screen.
export class WaitingCalls {
	constructor() {
		this.open = new Map(); // by element
		const saw = (entries) => {
			for (const { target, isIntersecting } of entries) if (isIntersecting) target.seen = true;
			this.place();
		};
		this.watch = new IntersectionObserver(saw, { threshold: 0.9 });
	}

	add(approval) {
		this.open.set(approval.element, approval);
		this.watch.observe(approval.buttons);
	}

	delete(approval) {
		this.open.delete(approval.element);
		this.watch.unobserve(approval.buttons);
		this.place();
	}

	place() {
		const { list, seen } = this;
		list.forEach((approval, n) => approval.place(n + 1, list.length, seen));
	}

	async approve() {
		const { list, seen } = this;
		if (seen) for (const approval of list) await approval.decide({ approved: true });
	}

	get first() {
		return this.list[0]?.element.closest(".call");
	}

	get list() {
		const shown = [...this.open].filter(([element]) => element.isConnected);
		const before = ([one], [other]) => (one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
		return shown.sort(before).map(([, approval]) => approval);
	}

	get seen() {
		return this.list.every(({ buttons, alive, begun }) => buttons.seen && alive && !begun);
	}
}
