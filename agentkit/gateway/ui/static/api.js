// The server's HTTP interface: requests, and one thread's events with resume. Knows no element of the page.

import { readJson, writeJson } from "./json.js";

const BASE = new URL("api/", import.meta.url);
const SLEEP = [500, 5000]; // ms between two attempts to reach the server: the first, and the most
const SILENCE = 40000; // ms without a byte: the server writes a comment every 15 s

// A refused request: {status, message, code, fields}; status 0 if the server cannot be reached.
const apiError = (status, about) => Object.assign(new Error(about.message), { status, ...about });

let key = sessionStorage.getItem("agentkit.key") || "";
let asked = null;

// Take the key out of the address (`#key=…`), before anything else reads the fragment.
export function takeKey() {
	const found = /^#key=([^&]*)/.exec(location.hash);
	if (!found) return;
	keepKey(decodeURIComponent(found[1]));
	history.replaceState(null, "", location.pathname + location.search);
}

function keepKey(value) {
	key = value.replace(/[^ -~]/g, ""); // no header can have other characters
	sessionStorage.setItem("agentkit.key", key);
}

// How the page asks for the key: a function to a promise of text, set by the page.
export const onKeyWanted = { ask: async () => "" };

async function askKey() {
	asked ??= onKeyWanted.ask().then((value) => {
		keepKey(value);
		asked = null;
	});
	await asked;
}

async function request(method, path, { body, signal, headers = {} } = {}) {
	for (;;) {
		const used = key;
		const options = { method, signal, cache: "no-store", headers: { ...headers } };
		if (key) options.headers.Authorization = `Bearer ${key}`;
		if (method !== "GET") {
			options.headers["Content-Type"] = "application/json";
			options.body = writeJson(body ?? {});
		}
		let reply;
		try {
			reply = await fetch(new URL(path, BASE), options);
		} catch (error) {
			if (error.name === "AbortError") throw error;
			throw apiError(0, { message: "The server cannot be reached." });
		}
		if (reply.ok) return reply;
		if (reply.status !== 401) throw apiError(reply.status, await problem(reply));
		if (used === key) await askKey();
	}
}

async function problem(reply) {
	try {
		const { error } = await reply.json();
		return { ...error, message: error.message || reply.statusText };
	} catch {
		return { message: `The server answered ${reply.status} ${reply.statusText}.` };
	}
}

const json = async (method, path, body) => (await request(method, path, { body })).json();

const at = (id, rest = "") => `threads/${encodeURIComponent(id)}${rest}`;

export const api = {
	setup: () => json("GET", "setup"),
	threads: (query) => json("GET", `threads?${new URLSearchParams(query)}`),
	create: (fields) => json("POST", "threads", fields),
	change: (id, fields) => json("PATCH", at(id), fields),
	remove: (id) => json("DELETE", at(id)),
	send: (id, message) => json("POST", at(id, "/messages"), message),
	decide: (id, decision) => json("POST", at(id, "/decisions"), decision),
	outcome: (id, outcome) => json("POST", at(id, "/outcomes"), outcome),
	resume: (id) => json("POST", at(id, "/continue")),
	stop: (id) => json("POST", at(id, "/stop")),
	fork: (id, until) => json("POST", at(id, "/fork"), { until }),
	highlight: async (language, code) => (await json("POST", "highlight", { language, code })).tokens,
	async export_(id, as) {
		const reply = await request("GET", at(id, `/export?as=${as}`));
		const [, name] = /filename\*=UTF-8''([^;]+)/.exec(reply.headers.get("Content-Disposition")) ?? [];
		return { blob: await reply.blob(), name: decodeURIComponent(name ?? "thread") };
	},
};

// The lines of server-sent events → {id, data}. The server writes `id: …`, `data: …` (one line of JSON) and an empty line.
// Pieces may be cut anywhere; each is looked at once.
export class EventLines {
	held = [];
	id = "";

	*feed(text) {
		const lines = text.split("\n");
		this.held.push(lines[0]);
		if (lines.length === 1) return;
		lines[0] = this.held.join("");
		this.held = [lines.pop()];
		for (const line of lines) {
			if (line.startsWith("id: ")) this.id = line.slice(4);
			if (!line.startsWith("data: ")) continue;
			yield { id: this.id, data: line.slice(6) };
			this.id = "";
		}
	}
}

// Follow one thread's events, for as long as the page is visible: a hidden one would keep one of the six connections
// that a browser opens to a host. After each gap the server is told the last event seen.
export function follow(id, { onEvent, onStatus }) {
	let closed = false;
	let last = "";
	let connection = null;
	let wake = () => {};
	let pause = SLEEP[0];

	const changed = () => {
		if (document.hidden || closed) connection?.abort();
		wake();
	};
	const listening = new AbortController();
	document.addEventListener("visibilitychange", changed, { signal: listening.signal });
	window.addEventListener("online", changed, { signal: listening.signal });
	const close = () => {
		closed = true;
		listening.abort();
		changed();
	};
	const sleep = (ms) =>
		new Promise((done) => {
			wake = done;
			if (ms) setTimeout(done, ms);
		});

	async function read() {
		connection = new AbortController();
		const { signal } = connection;
		const headers = { Accept: "text/event-stream" };
		if (last) headers["Last-Event-ID"] = last;
		let silence = 0;
		const heard = () => {
			clearTimeout(silence);
			silence = setTimeout(() => connection.abort(), SILENCE);
		};
		try {
			heard();
			const reply = await request("GET", at(id, "/events"), { signal, headers });
			onStatus("live");
			const lines = new EventLines();
			const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
			for (let piece; !(piece = await reader.read()).done && !closed; ) {
				heard();
				pause = SLEEP[0];
				for (const message of lines.feed(piece.value)) {
					onEvent(readJson(message.data));
					if (message.id) last = message.id;
				}
			}
		} finally {
			clearTimeout(silence);
		}
	}

	(async () => {
		while (!closed) {
			if (document.hidden) {
				await sleep(0);
				continue;
			}
			try {
				await read();
			} catch (error) {
				if (error.status === 404 && !closed) {
					close();
					onStatus("gone");
				}
			}
			if (closed || document.hidden) continue;
			onStatus("reconnecting");
			await sleep(pause);
			pause = Math.min(pause * 2, SLEEP[1]);
		}
	})();
	return { close };
}
