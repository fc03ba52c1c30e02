// The state of one thread, made from AG-UI events. Knows no element, no clock and no network.
//
// `reduce(state, event)` changes the state and returns what changed: ids of messages, or ALL. Every event may be applied
// again: messages and calls are keyed by id, and a RUN_STARTED with a known run id empties what that run wrote. Text is
// kept as the array of its deltas, so that one more costs the same after any length.

import { readJson } from "./json.js";

/**
 * @typedef {{kind: "text"|"thinking"|"invented"|"unread", chunks: string[], name?: string, done?: boolean}} Words
 * @typedef {{kind: "call", id: string}} CallPart
 * @typedef {{id: string, role: "user"|"assistant", parts: (Words|CallPart)[], content: any, open: boolean,
 *   state: string, queued: boolean, problem: string, seq?: number, created?: number, model?: string, finish?: string,
 *   seconds?: number, usage?: any, cost?: number, written?: string}} Message
 * @typedef {{id: string, name: string, message: string, chunks: string[], arguments: any, status: string,
 *   format: string|null, raw: string|null, repairs: any[], effect: any, error: any, hash: string, reason: string,
 *   decided: any, started: number|null, seconds: number|null, code: string|null, result: any, inside: any[]}} Call
 * @typedef {{thread: any, order: string[], messages: Map<string, Message>, calls: Map<string, Call>,
 *   runs: Map<string, Set<string>>, run: string|null, turn: string}} State
 */

/** What `reduce` returns when the messages are other ones. */
export const ALL = "*";

const FINAL = new Set(["done", "failed", "denied", "stopped", "skipped", "interrupted"]);

/** Whether a call has its answer. @param {Call} call */
export const isFinal = (call) => FINAL.has(call.status);

/** @returns {State} */
export function emptyState() {
  return { thread: null, order: [], messages: new Map(), calls: new Map(), runs: new Map(), run: null, turn: "" };
}

/** Apply one event. @param {State} state @returns {Iterable<string>} the ids of the messages that changed, or ALL */
export function reduce(state, event) {
  const handler = event.type === "CUSTOM" ? CUSTOM[event.name] : EVENTS[event.type];
  return (handler && handler(state, event.type === "CUSTOM" ? event.value : event)) || [];
}

/** All calls that wait for a person, those inside other calls included, in the order of the page. @param {State} state */
export function waitingCalls(state) {
  return [...state.calls.values()].flatMap((call) => {
    const inside = call.inside.filter((one) => !one.decided);
    if (inside.length) return inside;
    return call.status === "waiting" ? [call] : [];
  });
}

/** The whole text of a part. @param {Words} part */
export const textOf = (part) => part.chunks.join("");

const EVENTS = {
  MESSAGES_SNAPSHOT: loadMessages,
  RUN_STARTED(state, { runId }) {
    state.run = runId;
    state.turn = `${runId}-1`;
    const known = state.runs.get(runId);
    if (!known) state.runs.set(runId, new Set());
    else for (const id of known) clear(state, id);
    return known;
  },
  RUN_FINISHED(state, { runId, outcome }) {
    for (const one of outcome?.interrupts ?? []) wait(state, { toolCallId: one.toolCallId, ...one.metadata?.agentkit });
    return settle(state, runId, (outcome?.type ?? outcome) === "cancelled" ? "stopped" : "complete");
  },
  RUN_ERROR(state, { message, runId }) {
    const run = runId ?? state.run ?? "";
    const last = [...(state.runs.get(run) ?? [])].at(-1) ?? assistant(state, `${run}-error`).id;
    const touched = settle(state, run, "error");
    state.messages.get(last).problem = message;
    return new Set([...touched, last]);
  },
  STEP_STARTED(state, { stepName }) {
    const turn = /^turn (\d+)$/.exec(stepName);
    if (turn) state.turn = `${state.run}-${turn[1]}`;
  },
  STEP_FINISHED(state, { metadata }) {
    const message = state.messages.get(state.turn);
    if (!message) return [];
    close(message);
    return take(message, metadata?.agentkit);
  },
  TEXT_MESSAGE_START: (state, { messageId }) => [assistant(state, messageId).id],
  TEXT_MESSAGE_CONTENT: (state, { messageId, delta }) => add(assistant(state, messageId), "text", delta),
  REASONING_MESSAGE_CONTENT: (state, { messageId, delta }) => add(assistant(state, ofReasoning(messageId)), "thinking", delta),
  REASONING_MESSAGE_END: (state, { messageId }) => endThinking(state, messageId),
  REASONING_END: (state, { messageId }) => endThinking(state, messageId),
  TOOL_CALL_START(state, { toolCallId, toolCallName, parentMessageId }) {
    const message = assistant(state, parentMessageId || state.turn);
    const known = state.calls.get(toolCallId);
    if (known) known.chunks = [];
    else addCall(state, message, newCall(toolCallId, toolCallName));
    return [known?.message ?? message.id];
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
    const found = find(state, toolCallId);
    if (!found) return [];
    const { call, inner } = found;
    (inner ?? call).decided = { decision, by, reason, edited: edited ?? null };
    if (!inner && !isFinal(call)) call.status = decision === "approved" ? "approved" : "denied";
    if (inner && call.status === "waiting" && call.inside.every((one) => one.decided)) call.status = "approved";
    return [call.message];
  },
  "agentkit:usage"(state, { messageId, usage }) {
    const message = state.messages.get(messageId);
    if (message) message.usage = usage;
    return message && [messageId];
  },
  "agentkit:stored"(state, { messageId, ...about }) {
    const message = state.messages.get(messageId);
    return message && take(message, about);
  },
  "agentkit:invented": (state, { messageId, text }) => add(assistant(state, messageId || state.turn), "invented", text),
  "agentkit:unread": (state, { messageId, text, name }) => add(assistant(state, messageId || state.turn), "unread", text, name),
};

/** @returns {Message} */
function newMessage(id, role) {
  return { id, role, parts: [], content: "", open: false, state: "complete", queued: false, problem: "" };
}

/** @returns {Call} */
function newCall(id, name) {
  return {
    id, name, message: "", chunks: [], arguments: null, status: "writing", format: null, raw: null, repairs: [], effect: null,
    error: null, hash: "", reason: "", decided: null, started: null, seconds: null, code: null, result: null, inside: [],
  };
}

/** Put a new message where it belongs: an answer before the messages that are still queued. */
function insert(state, message) {
  state.messages.set(message.id, message);
  let place = state.order.length;
  if (message.role === "assistant") while (place && state.messages.get(state.order[place - 1]).queued) place--;
  state.order.splice(place, 0, message.id);
  return message;
}

/** The answer with an id, made if it is new. */
function assistant(state, id) {
  let message = state.messages.get(id);
  if (!message) {
    message = insert(state, newMessage(id, "assistant"));
    message.open = true;
    if (state.run !== null) state.runs.get(state.run)?.add(id);
  }
  return message;
}

/** Empty an answer that is sent again. Its place stays. */
function clear(state, id) {
  const { role, parts } = state.messages.get(id);
  for (const part of parts) if (part.kind === "call") state.calls.delete(part.id);
  state.messages.set(id, { ...newMessage(id, role), open: true });
}

function add(message, kind, delta, name) {
  const last = message.parts.at(-1);
  message.open = true;
  if (last?.kind === kind && last.name === name && !last.done) last.chunks.push(delta);
  else message.parts.push({ kind, chunks: [delta], ...(name === undefined ? {} : { name }) });
  return [message.id];
}

function addCall(state, message, call) {
  call.message = message.id;
  state.calls.set(call.id, call);
  message.parts.push({ kind: "call", id: call.id });
}

const ofReasoning = (id) => id.replace(/-r\d+$/, "");

function endThinking(state, messageId) {
  const message = state.messages.get(ofReasoning(messageId));
  const last = message?.parts.findLast((part) => part.kind === "thinking");
  if (last) last.done = true;
  return last && [message.id];
}

/** Change a call. @returns {string[]|undefined} its message */
function change(state, id, how) {
  const call = state.calls.get(id);
  if (!call) return;
  how(call);
  return [call.message];
}

/** A call by its id; `outer/inner` is a call inside another one. */
function find(state, id) {
  if (state.calls.has(id)) return { call: state.calls.get(id), inner: null };
  for (let at = id.indexOf("/"); at > 0; at = id.indexOf("/", at + 1)) {
    const call = state.calls.get(id.slice(0, at));
    if (call) return { call, inner: call.inside.find((one) => one.id === id) ?? null };
  }
}

function wait(state, value) {
  const found = find(state, value.toolCallId);
  if (!found || isFinal(found.call)) return [];
  const { call } = found;
  const about = known(value, ["hash", "reason", "name", "arguments", "effect"]);
  call.status = "waiting";
  if (value.toolCallId === call.id) Object.assign(call, about, { decided: null });
  else if (found.inner) Object.assign(found.inner, about, { decided: null });
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

/** End a run's answers. What is still written or running did not come to its end. */
function settle(state, run, how) {
  const ids = [...(state.runs.get(run) ?? [])];
  if (state.run === run) state.run = null;
  for (const id of ids) {
    const message = state.messages.get(id);
    if (message.open && how !== "complete" && message === state.messages.get(ids.at(-1))) message.state = how;
    close(message);
    for (const part of message.parts) {
      if (part.kind !== "call") continue;
      end(state.calls.get(part.id), how);
      cutByStop(state.calls.get(part.id), message);
    }
  }
  return ids;
}

/** A call that was being written when a person stopped the reply did not fail. */
function cutByStop(call, message) {
  if (call.code === "truncated_call" && message.state === "stopped") call.status = "stopped";
}

function end(call, how) {
  if (call.status === "writing") call.status = how === "error" ? "failed" : "stopped";
  else if (call.status === "running") call.status = how === "stopped" ? "stopped" : "interrupted";
  else if (call.status !== "waiting" && !isFinal(call)) call.status = how === "complete" ? call.status : "stopped";
}

function close(message) {
  message.open = false;
  for (const part of message.parts) if (part.kind === "thinking") part.done = true;
}

/** The process that ran an interrupted thread is dead, which may show only once its lease has expired: its calls are unknown. */
function lose({ thread, calls }) {
  const lost = thread?.state === "interrupted" ? [...calls.values()].filter(({ status }) => status === "running") : [];
  for (const call of lost) call.status = "unknown";
  return lost.map(({ message }) => message);
}

/** The named members that are given. */
function known(from, names) {
  return Object.fromEntries(names.filter((name) => from?.[name] != null).map((name) => [name, from[name]]));
}

function take(message, about) {
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
    if (message.role === "user") take(Object.assign(insert(state, newMessage(message.id, "user")), { content: message.content }), message.metadata?.agentkit);
    else if (message.role === "assistant") loadAnswer(state, message);
    else if (message.role === "tool") EVENTS.TOOL_CALL_RESULT(state, message);
  }
  lose(state);
  return [ALL];
}

function loadAnswer(state, { id, content, toolCalls = [], metadata }) {
  const about = metadata?.agentkit ?? {};
  const message = insert(state, newMessage(id, "assistant"));
  const calls = new Map(toolCalls.map((call) => [call.id, call]));
  const thinking = about.thinking ? [{ thinking: about.thinking }] : [];
  const parts = about.parts ?? [...thinking, ...(content ? [{ text: content }] : []), ...toolCalls.map((call) => ({ call: call.id }))];
  take(message, about);
  for (const part of parts) {
    if (part.call !== undefined) loadCall(state, message, calls.get(part.call));
    else if (part.thinking !== undefined) message.parts.push({ kind: "thinking", chunks: [part.thinking], done: true });
    else message.parts.push({ kind: "text", chunks: [part.text] });
  }
}

const STATUS = { planned: "planned", waiting: "waiting", approved: "approved", running: "running", unknown: "unknown", answered: "done" };

function loadCall(state, message, stored) {
  if (!stored) return;
  const about = stored.metadata?.agentkit ?? {};
  const call = newCall(stored.id, stored.function.name);
  Object.assign(call, known(about, ["arguments", "format", "raw", "repairs", "effect", "error", "hash", "reason", "started", "decided"]));
  call.arguments ??= parsed(stored.function.arguments) ?? {};
  call.status = STATUS[about.status] ?? "done";
  if (about.started && about.ended) call.seconds = about.ended - about.started;
  call.inside = (about.inside ?? []).map((one) => ({ decided: null, ...one }));
  if (call.inside.length && !isFinal(call)) call.status = "waiting";
  addCall(state, message, call);
}
