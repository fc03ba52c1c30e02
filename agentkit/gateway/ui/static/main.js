// The page: which thread is open, what the server says of it, and who is told.

import { api, follow, onKeyWanted, takeKey } from "./api.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { askForKey, confirm } from "./dialogs.js";
import { $, button, icon, make, on, say } from "./dom.js";
import { Header, showBanners } from "./header.js";
import { installKeys } from "./keys.js";
import { Outbox } from "./outbox.js";
import { ThreadList, addressOf } from "./threads.js";

const POLL = 10000; // ms between two looks at the list where no stream tells of it
const NOTICE = 8000; // ms that a notice stays
const THEMES = ["auto", "light", "dark"];

const page = { setup: null, id: null, thread: null, chosen: {}, error: "", status: "live", stream: null };

function notify(text) {
	const note = make("div", { class: "notice" }, text);
	$("notices").replaceChildren(note);
	say(text);
	setTimeout(() => note.remove(), NOTICE);
}

// Run something of the server; a failure becomes a notice.
async function attempt(work) {
	try {
		return await work();
	} catch (error) {
		notify(error.message);
		return null;
	}
}

const list = new ThreadList({ load: (query) => api.threads(query), opened: () => closeDrawer() });
const refresh = () => list.refresh().then(showTitle, () => {});
let soon = 0;
function refreshSoon() {
	clearTimeout(soon);
	soon = setTimeout(refresh, 100);
}

const conversation = new Conversation(
	$("conversation"),
	{
		decide: (call, decision) => api.decide(page.id, { call, ...decision }),
		outcome: (call, outcome) => api.outcome(page.id, { call, ...outcome }),
		fork,
		copy,
		highlight: api.highlight,
		schema: (name) => page.setup.tools.find((tool) => tool.name === name)?.schema ?? null,
	},
	{ onChange: draw },
);

const outbox = new Outbox({ deliver: (thread, message) => api.send(thread, message), changed: () => composer.drawOutbox(outbox) });

let created = null; // the thread that the first message opens

const composer = new Composer({
	async send(content) {
		if (page.id) return void outbox.add(page.id, content);
		created ??= api.create(page.chosen).finally(() => (created = null));
		const { id } = await created;
		outbox.add(id, content).then(refreshSoon); // the stream may begin after the list has changed
		if (page.id) return undefined; // she has gone on to another thread, or has sent two messages
		go(addressOf(id));
		return open(id);
	},
	stop: () => page.id && attempt(() => api.stop(page.id)),
	next: nextWaiting,
	notify,
});

const header = new Header({ change, exportAs, fork: () => fork(), remove });

async function copy(text) {
	if (navigator.clipboard) return navigator.clipboard.writeText(text);
	// Beyond loopback and without https there is no clipboard object.
	const field = make("textarea", { readonly: true });
	document.body.append(field);
	field.value = text;
	field.select();
	document.execCommand("copy");
	field.remove();
	return undefined;
}

function nextWaiting() {
	const waiting = conversation.summary.waiting;
	if (!waiting.length) return;
	page.shown = waiting[(waiting.findIndex(({ id }) => id === page.shown) + 1) % waiting.length].id;
	conversation.focusCard(page.shown);
}

async function change(fields) {
	const { id } = page;
	if (!id) Object.assign(page.chosen, fields);
	const thread = id && (await attempt(() => api.change(id, fields)));
	if (id !== page.id) return;
	if (thread) told(thread);
	else draw();
}

async function exportAs(form) {
	const file = await attempt(() => api.export_(page.id, form));
	if (!file) return;
	const url = URL.createObjectURL(file.blob);
	make("a", { href: url, download: file.name }).click();
	setTimeout(() => URL.revokeObjectURL(url), 60000);
	say(`Exported as ${file.name}`);
}

async function fork(seq) {
	const made = await attempt(() => api.fork(page.id, seq));
	if (!made) return;
	go(addressOf(made.id));
	open(made.id);
	refresh();
	say("This is the fork");
}

async function remove() {
	const { id } = page;
	const text = `“${page.thread?.title || "Untitled"}” and all its messages are deleted. This cannot be undone.`;
	if (!(await confirm("Delete this thread?", text, "Delete"))) return;
	await attempt(async () => {
		await api.remove(id);
		if (page.id === id) go("#/");
		refresh();
	});
}

// What the server says of the open thread.
function told(thread) {
	page.thread = thread;
	const { id, title, state, waiting } = thread;
	list.patch(id, { title, state, waiting });
	draw();
}

function applied(event) {
	const { type, name, value } = event;
	if (name === "agentkit:thread") told(value);
	else if (name === "agentkit:threads") refreshSoon();
	else if (name === "agentkit:user") composer.last = textOf(value.content);
	else if (type === "MESSAGES_SNAPSHOT") composer.last = textOf(event.messages.findLast(({ role }) => role === "user")?.content ?? "");
	else if (type === "RUN_STARTED") page.error = "";
	else if (type === "RUN_ERROR") page.error = event.message;
	else return;
	draw();
}

function textOf(content) {
	return typeof content === "string" ? content : content.findLast(({ type }) => type === "text")?.text ?? "";
}

function hear(event) {
	try {
		conversation.apply(event);
		applied(event);
	} catch (error) {
		console.error(error); // one event that cannot be shown must not end the stream
	}
}

function banners() {
	const { thread, status, error } = page;
	if (status === "gone") return [{ kind: "red", text: "This thread does not exist, or was deleted." }];
	const lost = status === "reconnecting" ? [{ kind: "amber", text: "The connection was lost. Reconnecting…" }] : [];
	const { state, run: live, problem } = thread ?? {};
	const run = () => attempt(() => api.resume(page.id));
	const failed = problem || error ? { kind: "red", text: problem || error, action: "Try again", run } : null;
	const banner = {
		idle: failed ?? (conversation.stopped && { kind: "info", text: "You stopped this reply.", action: "Try again", run }),
		running: !live && { kind: "info", text: problem || "Another program is working on this thread. What it writes is shown here." },
		damaged: { kind: "red", text: `The record of this thread is damaged. ${problem}` },
		interrupted: { kind: "amber", text: problem || "This thread was interrupted.", action: "Continue", run },
	};
	return [...lost, thread && (banner[state] ?? failed)].filter(Boolean);
}

function draw() {
	const { thread, setup, status } = page;
	if (!setup) return;
	header.show(thread, setup, page.chosen);
	showBanners(banners());
	const damaged = thread?.state === "damaged";
	const closed = status === "gone" ? "This thread does not exist" : damaged ? "This thread is damaged" : "";
	const waiting = thread?.waiting ?? 0;
	composer.show({ live: thread?.state === "running", waiting, queued: conversation.queued, closed });
	$("start").hidden = Boolean(page.id);
	$("conversation").hidden = !page.id;
	showTitle();
}

function showTitle() {
	const waiting = list.waiting;
	document.title = `${waiting ? `(${waiting}) ` : ""}agentkit${page.thread?.title ? ` · ${page.thread.title}` : ""}`;
}

function drawStart() {
	const { setup } = page;
	const chip = (text, title) => make("span", { class: "chip", title }, text);
	const tools = setup.tools.map(({ name, description, approval }) => chip(approval ? `${name} · asks you first` : name, description));
	const free = tools.length > 0 && !setup.tools.some(({ approval }) => approval);
	const suggestions = setup.suggestions.slice(0, 3).map((text) => button(text, () => composer.put(text), { class: "suggestion" }));
	$("start").replaceChildren(
		make("h2", {}, "What should be done?"),
		make("p", {}, "Watch an agent work, decide which of its calls may run, and come back to it at any time: everything is kept."),
		make("h3", {}, tools.length === 1 ? "It has one tool" : `It has ${tools.length || "no"} tools`),
		make("div", { class: "chips" }, ...tools),
		...(free ? [make("p", {}, "No tool asks you first. Start with --require-approval to decide about every call.")] : []),
		...(suggestions.length ? [make("h3", {}, "Try"), make("div", { class: "suggestions" }, ...suggestions)] : []),
		make("p", { class: "small" }, `Kept in ${setup.store || "memory"} · agentkit ${setup.version}`),
	);
}

function open(id) {
	if (id === page.id && page.stream) return;
	page.stream?.close();
	Object.assign(page, { id, thread: null, error: "", status: "live", stream: null, shown: null });
	if (!id) page.chosen = { model: page.setup.model, format: page.setup.format };
	conversation.reset();
	composer.open(id);
	list.mark(id);
	composer.drawOutbox(outbox);
	draw();
	const here = (run) => (value) => id === page.id && run(value);
	if (id) page.stream = follow(id, { onEvent: here(hear), onStatus: here(heardStatus) });
	if (!id || matchMedia("(hover: hover)").matches) $("text").focus();
}

function heardStatus(status) {
	if (status === page.status) return;
	page.status = status;
	if (status === "live") {
		outbox.flush();
		refresh();
	}
	say({ live: "Connected again", reconnecting: "The connection was lost", gone: "This thread does not exist" }[status]);
	draw();
}

const go = (hash) => (location.hash = hash);

function route() {
	takeKey();
	const found = /^#\/t\/(.+)$/.exec(location.hash);
	open(found ? decodeURIComponent(found[1]) : null);
}

const narrow = matchMedia("(max-width: 45rem)");

// The list of threads: on a phone a drawer over the page, else a column.
function showThreads(shown) {
	const drawer = narrow.matches && shown;
	document.body.classList.toggle("drawer", drawer);
	document.body.classList.toggle("no-threads", !narrow.matches && !shown);
	$("page").inert = drawer;
	$("shade").hidden = !drawer;
	$("threads").inert = !shown;
}

function toggleThreads() {
	const shown = $("threads").inert;
	showThreads(shown);
	if (!narrow.matches) localStorage.setItem("agentkit.threads", shown ? "" : "hidden");
	$(shown ? "hide-threads" : "show-threads").focus({ preventScroll: true });
}

function search() {
	if ($("threads").inert) toggleThreads();
	$("search").select();
}

const fitWidth = () => showThreads(!narrow.matches && localStorage.getItem("agentkit.threads") !== "hidden");
const closeDrawer = () => document.body.classList.contains("drawer") && toggleThreads();

function setTheme(theme) {
	localStorage.setItem("agentkit.theme", theme);
	document.documentElement.dataset.theme = theme;
	$("theme").textContent = `Colours: ${theme}`;
}

const nextTheme = () => setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]);

const help = installKeys([
	["Ctrl K", "Find a thread", search],
	["Ctrl B", "Show or hide the threads", toggleThreads],
	["/", "Write a message", () => $("text").focus()],
	["w", "Go to the next call that waits for you", nextWaiting],
	["j", "Next message", () => conversation.move(1)],
	["k", "Previous message", () => conversation.move(-1)],
	["r", "The reply as the model wrote it", () => conversation.toggleRaw()],
]);

function escape(event) {
	if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
	if (document.querySelector("dialog[open], :popover-open")) return;
	if (document.body.classList.contains("drawer")) closeDrawer();
	else if (event.target === $("text") || !event.target.matches("input, textarea, select")) composer.escape();
}

async function start() {
	takeKey();
	onKeyWanted.ask = askForKey;
	setTheme(document.documentElement.dataset.theme);
	fitWidth();
	narrow.addEventListener("change", fitWidth);
	$("show-threads").append(icon("threads"));
	$("hide-threads").append(icon("hide"));
	for (const id of ["show-threads", "hide-threads"]) on(id, "click", toggleThreads);
	on("shade", "click", closeDrawer);
	on("theme", "click", nextTheme);
	on("show-keys", "click", () => help());
	on("skip", "click", (event) => {
		event.preventDefault(); // the fragment is the thread's address
		$("text").focus();
	});
	document.addEventListener("keydown", escape);
	for (let wait = 500; !page.setup; wait = Math.min(wait * 2, 5000)) {
		try {
			page.setup = await api.setup();
		} catch (error) {
			showBanners([{ kind: "amber", text: `${error.message} Trying again…` }]);
			await new Promise((done) => setTimeout(done, wait));
		}
	}
	drawStart();
	window.addEventListener("hashchange", route);
	setInterval(() => (document.hidden || !page.id || page.status !== "live") && refresh(), POLL);
	route();
	refresh();
	outbox.flush();
}

start();
