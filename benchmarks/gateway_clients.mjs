// The programs of `tests/support/client_programs.py` in JavaScript: openai, @anthropic-ai/sdk and the AI SDK.
// Started by `gateway_clients.py` in a folder with node_modules: reads jobs, writes what a client saw, a line each.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const installed = createRequire(process.argv[2] + "/");
const load = (name) => import(pathToFileURL(installed.resolve(name)).href);
const { question, results, tools: declared } = JSON.parse(process.argv[3]);
const TURNS = 5;
for (const kind of ["log", "info", "debug"]) console[kind] = console.error; // standard output has the answers

function newTools() {
  const calls = [];
  const run = {
    find_city: ({ name, country }) => (calls.push(["find_city", { name, country }]), results.find_city),
    read_weather: ({ city, unit }) => (calls.push(["read_weather", { city, unit }]), results[unit]),
  };
  return {
    call: (name, input) => run[name](typeof input === "string" ? JSON.parse(input) : input),
    seen: (texts) => ({ calls, text: texts.join(" ").split(/\s+/).filter(Boolean).join(" ") }),
  };
}

function check(condition, what) {
  if (!condition) throw new Error(what);
}

async function openaiChat(url, model, streamed) {
  const { default: OpenAI } = await load("openai");
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k", maxRetries: 0 });
  const [mine, texts, messages] = [newTools(), [], [{ role: "user", content: question }]];
  const tools = declared.map(([name, description, parameters]) => ({
    type: "function", function: { name, description, parameters },
  }));
  for (let turn = 0; turn < TURNS; turn++) {
    let completion;
    if (streamed) {
      const stream = client.chat.completions.stream({ model, messages, tools });
      let text = "";
      stream.on("content", (delta) => (text += delta));
      completion = await stream.finalChatCompletion();
      check(text === (completion.choices[0].message.content ?? ""), `deltas differ: ${text}`);
    } else completion = await client.chat.completions.create({ model, messages, tools });
    const { message, finish_reason } = completion.choices[0];
    const calls = message.tool_calls ?? [];
    texts.push(message.content ?? "");
    check(finish_reason === (calls.length ? "tool_calls" : "stop"), `finish: ${finish_reason}`);
    if (!calls.length) break;
    messages.push(message);
    for (const call of calls)
      messages.push({ role: "tool", tool_call_id: call.id, content: mine.call(call.function.name, call.function.arguments) });
  }
  return mine.seen(texts);
}

async function openaiResponses(url, model, streamed) {
  const { default: OpenAI } = await load("openai");
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k", maxRetries: 0 });
  const [mine, texts, input] = [newTools(), [], [{ role: "user", content: question }]];
  const tools = declared.map(([name, description, parameters]) => ({
    type: "function", name, description, parameters, strict: false,
  }));
  for (let turn = 0; turn < TURNS; turn++) {
    let response;
    if (streamed) {
      const stream = client.responses.stream({ model, input, tools, store: false });
      let text = "";
      stream.on("response.output_text.delta", (event) => (text += event.delta));
      response = await stream.finalResponse();
      check(text === response.output_text, `deltas differ: ${text}`);
    } else response = await client.responses.create({ model, input, tools, store: false });
    texts.push(response.output_text);
    check(response.status === "completed", `status: ${response.status}`);
    const calls = response.output.filter((item) => item.type === "function_call");
    input.push(...response.output.map(({ parsed_arguments, ...item }) => item));
    if (!calls.length) break;
    for (const { call_id, name, arguments: given } of calls)
      input.push({ type: "function_call_output", call_id, output: mine.call(name, given) });
  }
  return mine.seen(texts);
}

async function anthropic(url, model, streamed) {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");
  const client = new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 });
  const [mine, texts, messages] = [newTools(), [], [{ role: "user", content: question }]];
  const tools = declared.map(([name, description, input_schema]) => ({ name, description, input_schema }));
  for (let turn = 0; turn < TURNS; turn++) {
    const asked = { model, messages, tools, max_tokens: 500 };
    let message;
    if (streamed) {
      const stream = client.messages.stream(asked);
      let text = "";
      stream.on("text", (delta) => (text += delta));
      message = await stream.finalMessage();
      const whole = message.content.filter((block) => block.type === "text").map((block) => block.text).join("");
      check(text === whole, `deltas differ: ${text}`);
    } else message = await client.messages.create(asked);
    texts.push(...message.content.filter((block) => block.type === "text").map((block) => block.text));
    const calls = message.content.filter((block) => block.type === "tool_use");
    check(message.stop_reason === (calls.length ? "tool_use" : "end_turn"), `stop: ${message.stop_reason}`);
    if (!calls.length) break;
    messages.push({ role: "assistant", content: message.content });
    const content = calls.map(({ id, name, input }) => ({
      type: "tool_result", tool_use_id: id, content: mine.call(name, input),
    }));
    messages.push({ role: "user", content });
  }
  return mine.seen(texts);
}

async function aiSdk(wire, url, model, streamed) {
  const { generateText, streamText, stepCountIs, tool, jsonSchema } = await load("ai");
  const { createOpenAI } = await load("@ai-sdk/openai");
  const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: "k" });
  const mine = newTools();
  const tools = Object.fromEntries(
    declared.map(([name, description, schema]) => [
      name,
      tool({ description, inputSchema: jsonSchema(schema), execute: async (input) => mine.call(name, input) }),
    ]),
  );
  const asked = {
    model: provider[wire](model), prompt: question, tools, stopWhen: stepCountIs(TURNS), maxRetries: 0,
    providerOptions: { openai: { store: false } },
  };
  if (!streamed) {
    const result = await generateText(asked);
    return mine.seen(result.steps.map((step) => step.text));
  }
  const result = streamText({ ...asked, onError: () => {} });
  const texts = [];
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-start") texts.push("");
    if (part.type === "text-delta") texts[texts.length - 1] += part.text;
  }
  return mine.seen(texts);
}

const PROGRAMS = {
  "openai chat": openaiChat,
  "openai responses": openaiResponses,
  "anthropic": anthropic,
  "AI SDK chat": (...job) => aiSdk("chat", ...job),
  "AI SDK responses": (...job) => aiSdk("responses", ...job),
};

for await (const line of createInterface({ input: process.stdin })) {
  const [client, ...job] = JSON.parse(line);
  let found;
  try {
    found = await PROGRAMS[client](...job);
  } catch (error) {
    found = { error: `${error.name}: ${error.message} ${error.cause ?? ""}`.slice(0, 600) };
  }
  process.stdout.write(JSON.stringify(found) + "\n");
}
