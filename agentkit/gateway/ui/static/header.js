// The open thread's header: title, model, format, use, menu, rules; and the banners under it.

import { $, button, icon, make, on } from "./dom.js";
import { shown, useText } from "./values.js";

const EXPORTS = [
	["json", "JSON (agentkit)"],
	["openai", "OpenAI messages"],
	["anthropic", "Anthropic messages"],
	["markdown", "Markdown"],
];

function fill(select, options, value) {
	const values = options.map(([each]) => each);
	const all = value && !values.includes(value) ? [[value, value], ...options] : options;
	select.replaceChildren(...all.map(([each, text]) => make("option", { value: each }, text)));
	select.value = value;
}

// The formats that can be chosen for a model: a model object of Python has one of its own.
const formatsOf = ({ choices, formats }, model) => choices.find((each) => each.model === model)?.formats ?? formats;

export class Header {
	// `actions`: change({title} | {model} | {format} | {revoke}), exportAs(form), fork(), remove()
	constructor(actions) {
		this.actions = actions;
		$("menu-button").append(icon("menu"));
		const title = $("title");
		on("title", "keydown", (event) => {
			if (event.key === "Escape") title.value = this.title;
			if (event.key !== "Enter" && event.key !== "Escape") return;
			event.preventDefault();
			title.blur();
			$("text").focus();
		});
		on("title", "change", () => {
			const text = title.value.trim();
			if (text && text !== this.title) actions.change({ title: text });
			else title.value = this.title;
		});
		for (const name of ["model", "format"]) on(name, "change", () => actions.change({ [name]: $(name).value }));
		const item = (text, run, danger) => button(text, () => ($("menu").hidePopover(), run()), { class: danger && "danger" });
		$("menu").append(
			make("p", { id: "menu-usage" }),
			item("Rename", () => this.rename()),
			item("Fork this thread", actions.fork),
			...EXPORTS.map(([form, text]) => item(`Export: ${text}`, () => actions.exportAs(form))),
			item("Delete…", actions.remove, true),
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
		fill($("format"), formats.map((name) => [name, name === "native" ? "native calls" : `text calls: ${name}`]), formats.length > 1 ? format : formats[0]);
		const use = useText(thread?.usage, thread?.cost ?? null);
		$("usage").textContent = use;
		$("menu-usage").textContent = use || "No tokens used yet";
		$("heading").textContent = thread ? this.title || "Untitled" : "New thread";
		this.showAllowed(thread?.allowed ?? []);
	}

	showAllowed(allowed) {
		$("allowed").hidden = !allowed.length;
		const chips = allowed.map(({ text, note }) => {
			const about = { class: "icon", "aria-label": `No longer always allow ${shown(text)}`, title: "Ask again" };
			return make("span", { class: "chip" }, shown(text + note), button(icon("close"), () => this.actions.change({ revoke: text }), about));
		});
		$("allowed").replaceChildren("Always allowed: ", ...chips);
	}
}

// The banners of a thread: rows of {text, kind: "info" | "amber" | "red", action, run}.
export function showBanners(rows) {
	const drawn = JSON.stringify(rows);
	if (showBanners.drawn === drawn) return; // else a button loses the focus at each event
	showBanners.drawn = drawn;
	const icons = { info: "running", red: "damaged", amber: "interrupted" };
	const banner = ({ text, kind, action, run }) =>
		make("div", { class: `banner ${kind}` }, icon(icons[kind]), make("span", {}, text), action && button(action, run));
	$("banners").replaceChildren(...rows.map(banner));
}
