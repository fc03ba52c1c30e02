// Messages on their way: each has an id that the server knows it by, kept until the server answered, also over a reload.
// So a repeat after a lost connection adds nothing.

import { kept } from "./dom.js";

const AGAIN = 3000; // ms until an unreachable server is tried again

export class Outbox {
	items = kept.get("agentkit.outbox", []); // {thread, id, content, error}
	busy = false;

	constructor({ deliver, changed }) {
		this.deliver = deliver; // (thread, {id, content}) → promise
		this.changed = changed;
	}

	add(thread, content) {
		const id = crypto.getRandomValues(new Uint32Array(4)).join("-"); // `randomUUID` exists only on https and loopback
		this.items.push({ thread, id, content, error: "" });
		this.note();
		return this.flush();
	}

	again = (item) => {
		item.error = "";
		this.note();
		return this.flush();
	};

	remove(item) {
		this.items = this.items.filter((each) => each !== item);
		this.note();
	}

	note() {
		kept.set("agentkit.outbox", this.items.length ? this.items : null);
		this.changed();
	}

	// Send in order. A refused message stays, with its reason, and holds up nothing.
	async flush() {
		if (this.busy) return;
		this.busy = true;
		clearTimeout(this.timer);
		for (let item; (item = this.items.find(({ error }) => !error)); ) {
			try {
				await this.deliver(item.thread, { id: item.id, content: item.content });
				this.remove(item);
			} catch (error) {
				if (!error.status || error.status >= 500) {
					this.timer = setTimeout(() => this.flush(), AGAIN);
					break;
				}
				item.error = error.message;
				this.note();
			}
		}
		this.busy = false;
	}
}
