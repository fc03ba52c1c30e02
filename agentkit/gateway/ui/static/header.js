// The open thread's header: title, model, format, use, menu, allowed tools; and the banners under it.

import { $, icon, make } from "./dom.js";

export const EXPORTS = [
  ["json", "Export: JSON (agentkit)"],
  ["openai", "Export: OpenAI messages"],
  ["anthropic", "Export: Anthropic messages"],
  ["markdown", "Export: Markdown"],
];

function short(count) {
  const [unit, sign] = count < 1000 ? [1, ""] : count < 999500 ? [1e3, "k"] : [1e6, "M"];
  return `${Number((count / unit).toPrecision(3))}${sign}`;
}

function useText({ inputTokens = 0, outputTokens = 0 } = {}, cost = null) {
  if (!inputTokens && !outputTokens) return "";
  const money = cost === null ? "" : ` · $${cost < 0.995 ? cost.toPrecision(2) : cost.toFixed(2)}`;
  return `${short(inputTokens)} in · ${short(outputTokens)} out${money}`;
}

function fill(select, options, value) {
  const values = options.map(([each]) => each);
  const all = value && !values.includes(value) ? [[value, value], ...options] : options;
  select.replaceChildren(...all.map(([each, text]) => make("option", { value: each }, text)));
  select.value = value;
}

// The formats that can be chosen for a model: a model object of Python has one of its own.
export const formatsOf = ({ choices, formats }, model) => choices.find((each) => each.model === model)?.formats ?? formats;

export class Header {
  // `actions`: change({title} | {model} | {format} | {revoke}), exportAs(form), fork(), remove()
  constructor(actions) {
    this.actions = actions;
    $("menu-button").append(icon("menu"));
    const title = $("title");
    title.addEventListener("keydown", (event) => {
      if (event.key === "Escape") title.value = this.title;
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      title.blur();
      $("text").focus();
    });
    title.addEventListener("change", () => {
      const text = title.value.trim();
      if (text && text !== this.title) actions.change({ title: text });
      else title.value = this.title;
    });
    for (const name of ["model", "format"]) {
      $(name).addEventListener("change", () => actions.change({ [name]: $(name).value }));
    }
    this.fillMenu();
  }

  fillMenu() {
    const item = (text, run, danger) => {
      const onclick = () => ($("menu").hidePopover(), run());
      return make("button", { type: "button", class: danger && "danger", onclick }, text);
    };
    $("menu").append(
      make("p", { id: "menu-usage" }),
      item("Rename", () => this.rename()),
      item("Fork this thread", this.actions.fork),
      ...EXPORTS.map(([form, text]) => item(text, () => this.actions.exportAs(form))),
      item("Delete…", this.actions.remove, true),
    );
  }

  rename() {
    $("title").focus();
    $("title").select();
  }

  // `thread`: the object of agentkit:thread, or null on the start page; `chosen`: {model, format} for a new thread.
  show(thread, setup, chosen) {
    this.title = thread?.title ?? "";
    if (document.activeElement !== $("title")) $("title").value = this.title;
    $("title").hidden = !thread;
    $("no-title").hidden = Boolean(thread);
    $("menu-button").hidden = !thread;
    const { model, format } = thread ?? chosen;
    fill($("model"), setup.choices.map((choice) => [choice.model, choice.label]), model);
    const formats = formatsOf(setup, model);
    fill($("format"), formats.map((name) => [name, `calls: ${name}`]), formats.length > 1 ? format : formats[0]);
    const use = useText(thread?.usage, thread?.cost ?? null);
    $("usage").textContent = use;
    $("menu-usage").textContent = use || "No tokens used yet";
    $("heading").textContent = thread ? this.title || "Untitled" : "New thread";
    this.showAllowed(thread?.allowed ?? []);
  }

  showAllowed(allowed) {
    $("allowed").hidden = !allowed.length;
    const chips = allowed.map((tool) => {
      const onclick = () => this.actions.change({ revoke: tool });
      const about = { type: "button", class: "icon", "aria-label": `No longer always allow ${tool}`, title: "Ask again" };
      return make("span", { class: "chip" }, tool, make("button", { ...about, onclick }, icon("close")));
    });
    $("allowed").replaceChildren("Always allowed: ", ...chips);
  }
}

// The banners of a thread: rows of {text, kind: "info" | "amber" | "red", button, run}.
export function showBanners(rows) {
  const drawn = JSON.stringify(rows);
  if (showBanners.drawn === drawn) return; // else a button loses the focus at each event
  showBanners.drawn = drawn;
  $("banners").replaceChildren(
    ...rows.map(({ text, kind, button, run }) =>
      make(
        "div",
        { class: `banner ${kind}` },
        icon(kind === "info" ? "running" : kind === "red" ? "damaged" : "interrupted"),
        make("span", {}, text),
        button ? make("button", { type: "button", onclick: run }, button) : null,
      ),
    ),
  );
}
