// The list of threads: what waits for the person on top, then by day; search; more on demand.

import { $, icon, make } from "./dom.js";

const DAY = 86400000;
const WORDS = { running: "running", interrupted: "interrupted", damaged: "damaged" };

function group(thread, today) {
  const age = today - thread.updated * 1000;
  return age <= 0 ? "Today" : age <= 6 * DAY ? "Last 7 days" : "Older";
}

export class ThreadList {
  threads = [];
  more = false;
  current = null;
  query = "";

  constructor({ load, opened }) {
    this.load = load; // ({q, before}) → {threads, more}
    this.root = $("thread-list");
    this.root.addEventListener("click", (event) => event.target.closest("a") && opened());
    let timer = 0;
    $("search").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        this.query = $("search").value.trim();
        this.refresh();
      }, 200);
    });
  }

  // Fetch again what is shown. A later request makes an earlier answer void.
  async refresh() {
    const turn = (this.turn = {});
    const limit = Math.max(50, Math.min(this.threads.length, 200));
    const { threads, more } = await this.load({ q: this.query, limit });
    if (turn !== this.turn) return;
    Object.assign(this, { threads, more });
    this.draw();
  }

  async loadMore() {
    const turn = (this.turn = {});
    const before = this.threads.at(-1)?.id ?? "";
    const { threads, more } = await this.load({ q: this.query, before });
    if (turn !== this.turn) return;
    const known = new Set(this.threads.map(({ id }) => id));
    this.threads.push(...threads.filter(({ id }) => !known.has(id)));
    this.more = more;
    this.draw();
  }

  // The stream of the open thread knows its state before the list does.
  patch(id, fields) {
    const thread = this.threads.find((each) => each.id === id);
    if (!thread || Object.keys(fields).every((name) => thread[name] === fields[name])) return;
    Object.assign(thread, fields);
    this.draw();
  }

  mark(id) {
    this.current = id;
    this.draw();
  }

  get waiting() {
    return this.threads.reduce((sum, { waiting }) => sum + waiting, 0);
  }

  draw() {
    const focused = this.root.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const today = new Date().setHours(0, 0, 0, 0);
    const groups = new Map(["Needs you", "Today", "Last 7 days", "Older"].map((name) => [name, []]));
    for (const thread of this.threads) groups.get(thread.waiting ? "Needs you" : group(thread, today)).push(thread);
    const parts = [];
    for (const [name, threads] of groups) {
      if (!threads.length) continue;
      const id = `group-${name.toLowerCase().replaceAll(" ", "-")}`;
      parts.push(
        make("h2", { id, class: name === "Needs you" ? "needs" : null }, name),
        make("ul", { "aria-labelledby": id }, ...threads.map((thread) => this.row(thread))),
      );
    }
    const more = { type: "button", class: "quiet", onclick: () => this.loadMore() };
    if (this.more) parts.push(make("button", more, "Older threads"));
    if (!this.threads.length) parts.push(make("p", {}, this.query ? "No thread has these words." : "No threads yet."));
    this.root.replaceChildren(...parts);
    if (focused) this.root.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  row({ id, title, state, waiting }) {
    const word = waiting ? `${waiting} waiting` : WORDS[state];
    const shown = waiting ? "waiting" : state;
    return make(
      "li",
      {},
      make(
        "a",
        { href: `#/t/${encodeURIComponent(id)}`, "data-id": id, "aria-current": id === this.current ? "page" : null },
        make("span", { class: "name" }, title || "Untitled"),
        word ? make("span", { class: `state ${shown}` }, icon(shown), word) : null,
      ),
    );
  }
}
