// The state of one thread, made from AG-UI events. Knows no element, no clock and no network.
//
// `reduce(state, event)` changes the state and returns what changed: ids of messages, or ALL. Every event may be applied
// again: messages and calls are keyed by id, and a RUN_STARTED with a known run id empties what that run wrote. Text is
// kept as the array of its deltas, so that one more costs the same after any length. A message has `parts`: words
// {kind: "text" | "thinking" | "invented" | "unread", chunks} and calls {kind: "call", id}.

import { readJson } from "./json.js";

// What `reduce` returns when the messages are other ones.
export const ALL = "*";

const FINAL = new Set(["done", "failed", "denied", "stopped", "skipped", "interrupted"]);

// Whether a call has its answer.
export const isFinal = (call) => FINAL.has(call.status);

export function emptyState() {
	return { thread: null, order: [], messages: new Map(), calls: new Map(), run: null, turn: "" };
}

// Apply one event. → the ids of the messages that changed, or ALL
export function reduce(state, event) {
	const changed = event.type === "CUSTOM" ? CUSTOM[event.name]?.(state, event.value) : EVENTS[event.type]?.(state, event);
	return changed ?? [];
}

// All calls that wait for a person, those inside other calls included, in the order of the page.
export function waitingCalls(state) {
	return [...state.calls.values()].flatMap((call) => {
		const inside = call.inside.filter((one) => !one.decided);
		return inside.length || call.status !== "waiting" ? inside : [call];
	});
}

// The whole text of a part.
export const textOf = (part) => part.chunks.join("");

const EVENTS = {
	MESSAGES_SNAPSHOT: loadMessages,
	RUN_STARTED(state, { runId }) {
		Object.assign(state, { run: runId, turn: `${runId}-1` });
		return written(state, runId).map((message) => clear(state, message));
	},
	RUN_FINISHED(state, { runId, outcome }) {
		return settle(state, runId, (outcome?.type ?? outcome) === "cancelled" ? "stopped" : "complete");
	},
	RUN_ERROR(state, { message, runId }) {
		const run = runId ?? state.run ?? "";
		const last = written(state, run).at(-1) ?? assistant(state, `${run}-error`);
		last.problem = message;
		return [...settle(state, run, "error"), last.id];
	},
	STEP_STARTED(state, { stepName }) {
		const turn = /^turn (\d+)$/.exec(stepName);
		if (turn) state.turn = `${state.run}-${turn[1]}`;
	},
	STEP_FINISHED(state, { metadata }) {
		const message = state.messages.get(state.turn);
		if (message) close(message);
		return take(message, metadata?.agentkit);
	},
	TEXT_MESSAGE_START: (state, { messageId }) => [assistant(state, messageId).id],
	TEXT_MESSAGE_CONTENT: (state, { messageId, delta }) => add(assistant(state, messageId), "text", delta),
	REASONING_MESSAGE_CONTENT: (state, { messageId, delta }) => add(assistant(state, ofReasoning(messageId)), "thinking", delta),
	REASONING_MESSAGE_END(state, { messageId }) {
		const message = state.messages.get(ofReasoning(messageId));
		const last = message?.parts.findLast((part) => part.kind === "thinking");
		if (last) last.done = true;
		return last && [message.id];
	},
	TOOL_CALL_START(state, { toolCallId, toolCallName, parentMessageId }) {
		const message = assistant(state, parentMessageId || state.turn);
		const call = state.calls.get(toolCallId) ?? addCall(state, message, newCall(toolCallId, toolCallName));
		call.chunks = [];
		return [call.message];
	},
	TOOL_CALL_ARGS(state, { toolCallId, delta }) {
		return change(state, toolCallId, (call) => call.chunks.push(delta));
	},
	TOOL_CALL_END(state, { toolCallId, metadata }) {
		return change(state, toolCallId, (call) => {
			Object.assign(call, known(metadata?.agentkit, ["arguments", "format", "raw", "repairs", "effect", "error"]));
			call.arguments ??= parsed(call.chunks.join("")) ?? {};
			if (call.status === "writing") call.status = "planned";
		});
	},
	TOOL_CALL_RESULT(state, { toolCallId, content, metadata, error }) {
		return change(state, toolCallId, (call) => {
			answer(call, content, metadata?.agentkit, error);
			cutByStop(call, state.messages.get(call.message));
		});
	},
};

const CUSTOM = {
	"agentkit:thread"(state, value) {
		state.thread = value;
		if (value.run || value.state === "running") return [];
		return [...lose(state), ...(state.run === null ? [] : settle(state, state.run, "complete"))];
	},
	"agentkit:user"(state, { id, seq, content, created, queued }) {
		const message = state.messages.get(id) ?? insert(state, newMessage(id, "user"));
		Object.assign(message, { seq, content, created, queued: Boolean(queued) });
		return [id];
	},
	"agentkit:started"(state, { toolCallId, at }) {
		return change(state, toolCallId, (call) => {
			call.started = at;
			if (!isFinal(call)) call.status = "running";
		});
	},
	"agentkit:approval": (state, value) => wait(state, value),
	"agentkit:decided"(state, { toolCallId, decision, by, reason, arguments: edited }) {
		const { call, inner } = find(state, toolCallId);
		if (!call) return [];
		(inner ?? call).decided = { decision, by, reason, edited: edited ?? null };
		if (!inner && !isFinal(call)) call.status = decision;
		if (inner && call.status === "waiting" && call.inside.every((one) => one.decided)) call.status = "approved";
		return [call.message];
	},
	"agentkit:usage": (state, { messageId, ...about }) => take(state.messages.get(messageId), about),
	"agentkit:stored": (state, { messageId, ...about }) => take(state.messages.get(messageId), about),
	"agentkit:invented": (state, { messageId, text }) => add(assistant(state, messageId), "invented", text),
	"agentkit:unread": (state, { messageId, text, name }) => add(assistant(state, messageId), "unread", text, name),
};

function newMessage(id, role, run = null) {
	return { id, role, run, parts: [], content: "", open: run !== null, state: "complete", queued: false, problem: "" };
}

function newCall(id, name) {
	return {
		id, name, message: "", chunks: [], arguments: null, status: "writing", format: null, raw: null, repairs: [], effect: null,
		error: null, hash: "", reason: "", decided: null, started: null, seconds: null, code: null, result: null, inside: [],
	};
}

// Put a new message where it belongs: an answer before the messages that are still queued.
function insert(state, message) {
	state.messages.set(message.id, message);
	let place = state.order.length;
	if (message.role === "assistant") while (place && state.messages.get(state.order[place - 1]).queued) place--;
	state.order.splice(place, 0, message.id);
	return message;
}

// The answer with an id, made if it is new.
const assistant = (state, id) => state.messages.get(id) ?? insert(state, newMessage(id, "assistant", state.run ?? ""));

// What a run has written.
const written = (state, run) => [...state.messages.values()].filter((message) => message.run === run);

// Empty an answer that is sent again. Its place stays.
function clear(state, { id, role, run, parts }) {
	for (const part of parts) state.calls.delete(part.id);
	state.messages.set(id, newMessage(id, role, run));
	return id;
}

function add(message, kind, delta, name) {
	const last = message.parts.at(-1);
	message.open = true;
	if (last?.kind === kind && last.name === name && !last.done) last.chunks.push(delta);
	else message.parts.push({ kind, chunks: [delta], name });
	return [message.id];
}

function addCall(state, message, call) {
	call.message = message.id;
	state.calls.set(call.id, call);
	message.parts.push({ kind: "call", id: call.id });
	return call;
}

const ofReasoning = (id) => id.replace(/-r\d+$/, "");

// Change a call. → its message
function change(state, id, how) {
	const call = state.calls.get(id);
	if (!call) return;
	how(call);
	return [call.message];
}

// A call by its id; `outer/inner` is a call inside another one.
function find(state, id) {
	const call = state.calls.get(id);
	if (call) return { call };
	const outer = [...state.calls.values()].find((one) => id.startsWith(`${one.id}/`));
	return { call: outer, inner: outer?.inside.find((one) => one.id === id) };
}

function wait(state, value) {
	const { call, inner } = find(state, value.toolCallId);
	if (!call || isFinal(call)) return [];
	const about = known(value, ["hash", "reason", "name", "arguments", "effect"]);
	const asked = value.toolCallId === call.id ? call : inner;
	// A run that still writes its reply asks again for all calls at the reply's end.
	if (asked?.decided && asked.hash === value.hash && state.messages.get(call.message).run === state.run) return [];
	call.status = "waiting";
	if (asked) Object.assign(asked, about, { decided: null });
	else call.inside.push({ id: value.toolCallId, name: "", arguments: {}, hash: "", reason: "", effect: null, decided: null, ...about });
	return [call.message];
}

function answer(call, content, about, error) {
	call.result = content;
	call.status = about?.status ?? (error ? "failed" : "done");
	call.code = about?.code ?? null;
	if (call.started !== null) call.seconds = about?.seconds ?? call.seconds;
	if (error) call.error ??= { message: error };
}

// End a run's answers. What is still written or running did not come to its end.
function settle(state, run, how) {
	const messages = written(state, run);
	if (state.run === run) state.run = null;
	for (const message of messages) {
		if (message.open && how !== "complete" && message === messages.at(-1)) message.state = how;
		close(message);
		for (const { kind, id } of message.parts) if (kind === "call") end(state.calls.get(id), message, how);
	}
	return messages.map(({ id }) => id);
}

// A call that was being written when a person stopped the reply did not fail.
function cutByStop(call, message) {
	if (call.code === "truncated_call" && message.state === "stopped") call.status = "stopped";
}

function end(call, message, how) {
	if (call.status === "writing") call.status = how === "error" ? "failed" : "stopped";
	else if (call.status === "running") call.status = how === "stopped" ? "stopped" : "interrupted";
	else if (call.status !== "waiting" && !isFinal(call)) call.status = how === "complete" ? call.status : "stopped";
	cutByStop(call, message);
}

function close(message) {
	message.open = false;
	for (const part of message.parts) if (part.kind === "thinking") part.done = true;
}

// The process that ran an interrupted thread is dead, which may show only once its lease has expired: its calls are unknown.
function lose({ thread, calls }) {
	const lost = thread?.state === "interrupted" ? [...calls.values()].filter(({ status }) => status === "running") : [];
	for (const call of lost) call.status = "unknown";
	return lost.map(({ message }) => message);
}

// The named members that are given.
function known(from, names) {
	return Object.fromEntries(names.filter((name) => from?.[name] != null).map((name) => [name, from[name]]));
}

function take(message, about) {
	if (!message) return [];
	Object.assign(message, known(about, ["seq", "created", "model", "finish", "seconds", "usage", "cost", "state", "written"]));
	return [message.id];
}

export function parsed(text) {
	try {
		return readJson(text);
	} catch {
		return undefined;
	}
}

function loadMessages(state, { messages }) {
	const { thread } = state;
	Object.assign(state, emptyState(), { thread });
	for (const message of messages) {
		if (message.role === "user") CUSTOM["agentkit:user"](state, { ...message, ...message.metadata?.agentkit });
		else if (message.role === "assistant") loadAnswer(state, message);
		else if (message.role === "tool") EVENTS.TOOL_CALL_RESULT(state, message);
	}
	lose(state);
	return [ALL];
}

function loadAnswer(state, { id, toolCalls = [], metadata }) {
	const message = insert(state, newMessage(id, "assistant"));
	take(message, metadata.agentkit);
	for (const { call, text, thinking } of metadata.agentkit.parts) {
		if (call !== undefined) loadCall(state, message, toolCalls.find((one) => one.id === call));
		else if (thinking !== undefined) message.parts.push({ kind: "thinking", chunks: [thinking], done: true });
		else message.parts.push({ kind: "text", chunks: [text] });
	}
}

function loadCall(state, message, stored) {
	const about = stored.metadata.agentkit;
	const call = newCall(stored.id, stored.function.name);
	Object.assign(call, known(about, ["arguments", "format", "raw", "repairs", "effect", "error", "hash", "reason", "started", "decided"]));
	call.arguments ??= {};
	call.status = about.status === "answered" ? "done" : about.status;
	if (about.started && about.ended) call.seconds = about.ended - about.started;
	call.inside = (about.inside ?? []).map((one) => ({ decided: null, ...one }));
	if (call.inside.length && !isFinal(call)) call.status = "waiting";
	addCall(state, message, call);
}
