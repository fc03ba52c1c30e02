// The clients of pages, driven as their users drive them: `HttpAgent` of @ag-ui/client, and the chat of `ai` 6.
// Reads jobs, {url, protocol, decision}, and writes what a client then has, a line of JSON each.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const installed = createRequire(process.argv[2] + "/");
const load = (name) => import(pathToFileURL(installed.resolve(name)).href);
let warnings = [];
for (const kind of ["log", "info", "debug", "warn", "error"]) console[kind] = (...words) => warnings.push(words.join(" "));

async function agUi({ url, decision }) {
  const { HttpAgent } = await load("@ag-ui/client");
  const agent = new HttpAgent({ url, threadId: "t" });
  const seen = [];
  agent.subscribe({ onEvent: ({ event }) => void seen.push(event.name ?? event.type) });
  agent.messages.push({ id: "u1", role: "user", content: "Hi" });
  let error = null;
  const run = (parameters) => agent.runAgent(parameters).catch((e) => (error = e.message));
  await run({ runId: "run1" });
  const interrupts = agent.pendingInterrupts;
  if (decision && interrupts.length) {
    const resume = interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: decision }));
    await run({ runId: "run2", resume });
  }
  return { messages: agent.messages, seen, interrupts, open: agent.pendingInterrupts.length, error };
}

async function aiSdk({ url, decision }) {
  const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } = await load("ai");
  const state = {
    status: "ready", error: undefined, messages: [],
    pushMessage: (message) => (state.messages = [...state.messages, message]),
    popMessage: () => (state.messages = state.messages.slice(0, -1)),
    replaceMessage: (at, message) => (state.messages = state.messages.with(at, message)),
    snapshot: (value) => structuredClone(value),
  };
  class Chat extends AbstractChat {}
  const seen = [];
  const transport = new DefaultChatTransport({ api: url });
  const send = transport.sendMessages.bind(transport);
  transport.sendMessages = async (options) => (await send(options)).pipeThrough(
    new TransformStream({ transform: (chunk, out) => (seen.push(chunk.type), out.enqueue(chunk)) }),
  );
  let [error, finished] = [null, null];
  const chat = new Chat({
    id: "t", state, transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: (e) => (error = e.message),
    onFinish: ({ finishReason, isAbort }) => (finished = isAbort ? "abort" : finishReason),
  });
  await chat.sendMessage({ text: "Hi" });
  const asked = chat.messages.at(-1).parts.filter((part) => part.state === "approval-requested");
  for (const part of decision ? asked : [])
    await chat.addToolApprovalResponse({ id: part.approval.id, approved: decision.approved, reason: decision.reason });
  while (decision && ["submitted", "streaming"].includes(state.status)) await new Promise((next) => setTimeout(next, 5));
  return { messages: chat.messages, seen, asked: asked.length, status: state.status, error, finished };
}

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  warnings = [];
  const found = await { "ag-ui": agUi, "ai-sdk": aiSdk }[job.protocol](job);
  process.stdout.write(JSON.stringify({ ...found, warnings }) + "\n");
}
