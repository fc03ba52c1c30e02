// A form for a call's arguments, made from the tool's JSON schema. What has no plain field is written as JSON.

import { make } from "./dom.js";
import { writeJson } from "./json.js";
import { parsed } from "./state.js";
import { asText, shown } from "./values.js";

const ABSENT = Symbol("absent");
const INVALID = Symbol("invalid");

// Fields for all properties of a schema and for all arguments.
export class ArgumentForm {
	constructor(given, schema) {
		const { properties = {}, required = [] } = schema ?? {};
		const names = [...new Set([...Object.keys(given), ...Object.keys(properties)])];
		this.fields = names.map((name) => new Field(name, given, plain(Object.hasOwn(properties, name) ? properties[name] : {}), required.includes(name)));
		this.element = make("div", { class: "form" }, ...this.fields.map((field) => field.element));
	}

	// The arguments, or null if a field is not valid.
	read() {
		const values = this.fields.map((field) => [field.name, field.read()]);
		if (values.some(([, value]) => value === INVALID)) return null;
		return Object.fromEntries(values.filter(([, value]) => value !== ABSENT)); // also a name such as "__proto__"
	}

	// Show errors by path (`a`, `a.b`, `/a/b`). → whether there are any
	showErrors(errors) {
		for (const field of this.fields) field.fault.textContent = "";
		const found = Object.entries(errors ?? {});
		for (const [path, text] of found) {
			const [first] = path.replace(/^[/$.]+/, "").split(/[/.[\]]/);
			const field = this.fields.find(({ name }) => name === first);
			if (field) field.showError(text);
			else this.fields[0]?.showError(`${path}: ${text}`);
		}
		return found.length > 0;
	}

	focus() {
		this.fields[0]?.input.focus();
	}
}

// A schema whose only alternative to null is taken.
function plain(schema) {
	const all = schema.anyOf ?? schema.oneOf ?? [schema.type].flat().map((type) => ({ type }));
	const some = all.filter(({ type }) => type !== "null");
	return some.length === 1 ? { ...schema, ...some[0] } : schema;
}

let count = 0;

class Field {
	constructor(name, given, schema, required) {
		Object.assign(this, { name, required, given: Object.hasOwn(given, name), original: given[name], touched: false });
		this.kind = kindOf(schema, this.original, this.given);
		this.text = this.given ? (this.kind === "text" ? this.original : writeJson(this.original, this.kind === "JSON" ? 2 : 0)) : "";
		const id = `field-${++count}`;
		const about = schema.description && make("span", { class: "small", id: `${id}-about` }, shown(schema.description));
		this.fault = make("span", { class: "fault", id: `${id}-fault`, role: "alert" });
		this.input = this.#input(schema.enum, { id, "aria-describedby": `${this.fault.id} ${about?.id ?? ""}`, autocomplete: "off", spellcheck: "false" });
		this.input.value = this.text;
		this.input.addEventListener("input", () => this.#changed());
		this.before = make("del", { hidden: true }, shown(this.text || "empty"));
		const label = make("label", { for: id }, shown(name), make("span", { class: "small" }, ` (${this.kind}${required ? "" : ", optional"})`));
		this.element = make("div", { class: "field" }, label, about, this.before, this.input, this.fault);
	}

	read() {
		if (!this.touched) return this.given ? this.original : ABSENT;
		const text = this.input.value;
		if (text === "" && !(this.kind === "text" && (this.given || this.required))) return ABSENT;
		this.fault.textContent = "";
		const value = READ[this.kind](text);
		if (value === INVALID) this.showError(this.kind === "JSON" ? "This is not JSON." : "This is not a number.");
		return value;
	}

	showError(text) {
		this.fault.textContent = shown(text);
		this.input.setAttribute("aria-invalid", "true");
	}

	#changed() {
		this.touched = true;
		this.input.removeAttribute("aria-invalid");
		this.fault.textContent = "";
		this.before.hidden = this.input.value === this.text || !this.given;
	}

	#input(choices, props) {
		const { kind, text } = this;
		if (kind === "yes or no" || kind === "choice") {
			const texts = (choices ?? [true, false]).map((value) => writeJson(value));
			if (!texts.includes(text)) texts.unshift(text);
			return make("select", props, ...texts.map((value) => make("option", { value }, value ? shown(asText(parsed(value))) : "not given")));
		}
		const long = kind === "JSON" || (kind === "text" && (text.length > 60 || text.includes("\n")));
		if (long) return make("textarea", { ...props, rows: Math.min(14, text.split("\n").length + 1) });
		return make("input", { ...props, type: "text", inputmode: kind === "text" ? null : "decimal" });
	}
}

const json = (text) => parsed(text) ?? (text.trim() === "null" ? null : INVALID);
const number = (text) => (/^[-\d]/.test(text.trim()) && Number.isFinite(Number(parsed(text))) ? parsed(text) : INVALID);
const READ = { text: (text) => text, number, integer: number, "yes or no": json, choice: json, JSON: json };
const KINDS = { string: "text", number: "number", integer: "integer", boolean: "yes or no" };

// How a value is edited. One of another type than the schema's is shown as it is, as JSON.
function kindOf(schema, value, given) {
	if (schema.enum) return "choice";
	const type = schema.type ?? (given ? typeof value : "");
	const fits = !given || typeof value === (type === "integer" ? "number" : type);
	return (fits && KINDS[type]) || "JSON";
}
