// A call that waits for a person: its effect, its arguments, why it was asked, and the decision.
//
// Nothing is cut; nothing is focused by itself; the buttons are dead for DEAD ms, so that a key or click that was meant for
// something else decides nothing. A decision is bound to the hash of the call that was shown.

import { make } from "./dom.js";
import { ArgumentForm } from "./form.js";
import { effectView, shown } from "./values.js";

const DEAD = 500; // ms
const REASONS = ["Not now", "Wrong arguments", "Do it another way"];

/** What was decided, for a person. */
export function decisionText({ decision, by, reason, edited }) {
  const who = by ? ` by ${shown(by)}` : "";
  return `${decision}${who}${edited ? ", arguments edited" : ""}${reason ? `: ${shown(reason)}` : ""}`;
}

/** The block of one waiting call. `all` is shared by those that wait together: see `WaitingCalls`. */
export class Approval {
  constructor(call, { actions, all }) {
    Object.assign(this, { call, actions, all, busy: false, form: null });
    this.count = make("span", { class: "count" });
    this.note = make("p", { class: "fault", role: "alert" });
    this.sent = make("p", { class: "sent" });
    this.content = make("div", { class: "effect" }, ...effectView(call, actions));
    this.reason = make("p", { class: "why" }, `Why it asks: ${shown(call.reason || `${call.name} needs approval`)}`);
    this.extra = make("div", { class: "extra" });
    this.buttons = make("div", { class: "decide" }, ...this.#buttons());
    this.element = make(
      "div",
      { class: "approval", tabindex: "-1", role: "group", "aria-label": `Decide: ${shown(call.name)}`, onkeydown: (event) => this.#key(event) },
      make("p", { class: "ask" }, make("b", {}, `Run ${shown(call.name)}?`), this.count),
      this.content,
      this.reason,
      this.note,
      this.sent,
      this.extra,
      this.buttons,
    );
    this.#enable(false);
    setTimeout(() => this.#enable(true), DEAD);
    all.add(this);
  }

  /** Show the place among those that wait, and whether all of them may be approved at once. */
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
    const button = (name, run, kind = "") => make("button", { type: "button", class: kind, onclick: run }, name);
    this.approve = button("Approve", () => this.decide({ approved: true }), "primary");
    this.always = button(`Always allow ${shown(this.call.name)} in this thread`, () => this.decide({ approved: true, always: true }));
    this.every = button("Approve all", () => this.all.approve());
    this.every.hidden = true;
    return [this.approve, button("Edit", () => this.#edit()), button("Deny…", () => this.#deny()), this.always, this.every];
  }

  #enable(alive) {
    this.alive = alive;
    for (const button of this.element.querySelectorAll("button")) button.setAttribute("aria-disabled", String(!alive));
    this.all.place();
  }

  #key(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const run = { y: () => this.decide({ approved: true }), n: () => this.#deny(), e: () => this.#edit(), a: () => this.decide({ approved: true, always: true }) }[event.key];
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
    const chips = REASONS.map((text) => make("button", { type: "button", class: "chip", onclick: () => (field.value = text) }, text));
    this.#open(make("div", {}, field, make("div", { class: "chips" }, ...chips)), "Deny", () => this.decide({ approved: false, reason: field.value.trim() }));
    field.focus();
  }

  /** Show a form in the place of the buttons. */
  #open(content, name, run) {
    const cancel = make("button", { type: "button", onclick: () => this.#close() }, "Cancel");
    const go = make("button", { type: "button", class: "primary", onclick: run }, name);
    this.extra.replaceChildren(content, make("div", { class: "decide" }, go, cancel));
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

  /** Send a decision. What it changes comes back as an event. */
  async decide(decision) {
    if (!this.#ready()) return;
    this.busy = true;
    this.element.setAttribute("aria-busy", "true");
    this.note.textContent = this.sent.textContent = "";
    try {
      await this.actions.decide(this.call.id, { hash: this.call.hash, ...decision });
      this.sent.textContent = "Sent.";
    } catch (error) {
      this.busy = false;
      this.#refused(error);
    }
    this.element.removeAttribute("aria-busy");
  }

  #refused({ status, message, fields }) {
    const lost = status === 409 ? "It was decided elsewhere, or it changed. " : "";
    this.note.textContent = this.form?.showErrors(fields) ? "These arguments do not fit." : `${lost}${message}`;
  }
}

/** The approvals that wait together: their count, and one decision for all once each was on the screen. */
export class WaitingCalls {
  constructor() {
    this.open = new Set();
    this.seen = new WeakSet();
    this.watch = new IntersectionObserver((entries) => this.#saw(entries), { threshold: 0.3 });
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
    const list = this.#list();
    const seen = this.#allSeen(list);
    list.forEach((approval, n) => approval.place(n + 1, list.length, seen));
  }

  async approve() {
    const list = this.#list();
    if (!this.#allSeen(list)) return;
    for (const approval of list) await approval.decide({ approved: true });
  }

  #list() {
    const after = (a, b) => (a.element.compareDocumentPosition(b.element) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
    return [...this.open].sort(after);
  }

  #allSeen(list) {
    return list.every((approval) => this.seen.has(approval) && approval.alive);
  }

  #saw(entries) {
    for (const approval of this.open) {
      // A block higher than the screen is seen once it covers a good part of it.
      if (entries.some((entry) => entry.target === approval.element && entry.isIntersecting)) this.seen.add(approval);
    }
    this.place();
  }
}
