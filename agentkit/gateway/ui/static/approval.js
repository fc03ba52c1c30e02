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
    };
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
      make("p", { class: "why" }, `Why it asks: ${shown(call.reason || `${call.name} needs approval`)}`),
      this.note,
      this.extra,
      this.buttons,
    );
    this.#enable(false);
    setTimeout(() => this.#enable(true), DEAD);
    all.add(this);
  }

  // Show the place among those that wait, and whether all of them may be approved at once.
  place(n, total, seen) {
    this.count.textContent = total > 1 ? `${n} of ${total}` : "";
    const all = total > 1 && n === total;
    this.every.hidden = !all;
    this.every.textContent = `Approve all ${total}`;
    this.every.setAttribute("aria-disabled", String(!seen));
    this.every.title = seen ? "" : "Look at each of them first";
  }

  focus() {
    this.element.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "nearest" });
  }

  remove() {
    this.all.delete(this);
    this.element.remove();
  }

  #buttons() {
    this.every = button("Approve all", () => this.all.approve(), { hidden: true });
    return [
      button("Approve", this.keys.y, { class: "primary" }),
      button("Edit", this.keys.e),
      button("Deny…", this.keys.n),
      button(`Always allow ${shown(this.call.name)} in this thread`, this.keys.a),
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
    if (!this.#ready()) return;
    this.form = new ArgumentForm(this.call.arguments ?? {}, this.actions.schema(this.call.name));
    this.#open(this.form.element, "Approve with these arguments", () => {
      const edited = this.form.read();
      if (edited) this.decide({ approved: true, arguments: edited });
    });
    this.content.hidden = true;
    this.form.focus();
  }

  #deny() {
    if (!this.#ready()) return;
    const field = make("textarea", { rows: "2", "aria-label": "Reason, which the model reads", placeholder: "Reason (the model reads it)" });
    const chips = REASONS.map((text) => button(text, () => (field.value = text), { class: "chip" }));
    this.#open(make("div", {}, field, make("div", { class: "chips" }, ...chips)), "Deny", () => this.decide({ approved: false, reason: field.value.trim() }));
    field.focus();
  }

  // Show a form in the place of the buttons.
  #open(content, name, run) {
    this.extra.replaceChildren(content, make("div", { class: "decide" }, button(name, run, { class: "primary" }), button("Cancel", () => this.#close())));
    this.extra.onkeydown = (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      this.#close();
    };
    this.buttons.hidden = true;
  }

  #close() {
    this.form = null;
    this.extra.replaceChildren();
    this.buttons.hidden = this.content.hidden = false;
    this.element.focus({ preventScroll: true });
  }

  #ready() {
    return this.alive && !this.busy;
  }

  // Send a decision. What it changes comes back as an event.
  async decide(decision) {
    if (!this.#ready()) return;
    this.busy = true;
    this.element.setAttribute("aria-busy", "true");
    this.note.textContent = "";
    try {
      await this.actions.decide(this.call.id, { hash: this.call.hash, ...decision });
    } catch (error) {
      this.busy = false;
      this.element.removeAttribute("aria-busy");
      const lost = error.status === 409 ? "It was decided elsewhere, or it changed. " : "";
      this.note.textContent = this.form?.showErrors(error.fields) ? "These arguments do not fit." : `${lost}${error.message}`;
    }
  }
}

// The approvals that wait together: their count, and one decision for all once each was on the screen.
export class WaitingCalls {
  constructor() {
    this.open = new Set();
    this.shown = new WeakSet(); // elements
    const saw = (entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) this.shown.add(target);
      this.place();
    };
    this.watch = new IntersectionObserver(saw, { threshold: 0.3 });
  }

  add(approval) {
    this.open.add(approval);
    this.watch.observe(approval.element);
  }

  delete(approval) {
    this.open.delete(approval);
    this.watch.unobserve(approval.element);
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

  get list() {
    const after = (a, b) => (a.element.compareDocumentPosition(b.element) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
    return [...this.open].sort(after);
  }

  get seen() {
    return [...this.open].every(({ element, alive }) => this.shown.has(element) && alive);
  }
}
