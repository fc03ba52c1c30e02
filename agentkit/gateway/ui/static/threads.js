// The list of threads: what waits for the person on top, then by day; search; more on demand.

import { $, button, icon, make, on } from "./dom.js";

const DAY = 86400000;

// The address of a thread in the page.
export const addressOf = (id) => `#/t/${encodeURIComponent(id)}`;
function group(thread, today) {
	const age = today - thread.updated * 1000;
	return age <= 0 ? "Today" : age <= 6 * DAY ? "Last 7 days" : "Older";
}

export class ThreadList {
	threads = [];
	pages = 1; // that are shown
	more = null; // the thread after which there are more
	current = null;
	query = "";

	constructor({ load, opened }) {
		this.load = load; // ({q, before}) → {threads, more}, a page
		this.root = $("thread-list");
		on("threads", "click", (event) => event.target.closest("a") && opened());
		let timer = 0;
		on("search", "input", () => {
			clearTimeout(timer);
			timer = setTimeout(() => {
				Object.assign(this, { query: $("search").value.trim(), pages: 1 });
				this.refresh();
			}, 200);
		});
	}

	// Fetch again what is shown. A later call makes an earlier one void.
	async refresh() {
		const turn = (this.turn = {});
		const all = new Map();
		let before = "";
		for (let page = 0; page < this.pages && before !== null; page++) {
			const { threads, more } = await this.load({ q: this.query, before });
			if (turn !== this.turn) return;
			for (const thread of threads) all.set(thread.id, thread);
			before = more;
		}
		Object.assign(this, { threads: [...all.values()], more: before });
		this.draw();
	}

	loadMore() {
		this.pages++;
		return this.refresh();
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
		const none = this.query ? `No ${this.more ? "newer " : ""}thread has these words.` : "No threads yet.";
		if (!this.threads.length) parts.push(make("p", {}, none));
		if (this.more) parts.push(button("Older threads", () => this.loadMore(), { class: "quiet" }));
		this.root.replaceChildren(...parts);
		if (focused) this.root.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
	}

	row({ id, title, state, waiting }) {
		const shown = waiting ? "waiting" : state;
		const about = { href: addressOf(id), "data-id": id, "aria-current": id === this.current ? "page" : null };
		const word = shown !== "idle" && make("span", { class: `state ${shown}` }, icon(shown), waiting ? `${waiting} waiting` : state);
		return make("li", {}, make("a", about, make("span", { class: "name" }, title || "Untitled"), word));
	}
}
