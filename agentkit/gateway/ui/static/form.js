// A form for a call's arguments, made from the tool's JSON schema. What has no plain field is written as JSON.

import { make } from "./dom.js";
import { writeJson } from "./json.js";
import { parsed } from "./state.js";
import { asText, shown } from "./values.js";

let count = 0;

/** Fields for all properties of a schema and for all arguments. */
export class ArgumentForm {
  /** @param {Record<string, unknown>} given @param {any} schema */
  constructor(given, schema) {
    const properties = schema?.properties ?? {};
    const required = new Set(schema?.required ?? []);
    const names = [...new Set([...Object.keys(given), ...Object.keys(properties)])];
    this.fields = names.map((name) => new Field(name, given, plain(Object.hasOwn(properties, name) ? properties[name] : {}), required.has(name)));
    this.element = make("div", { class: "form" }, ...this.fields.map((field) => field.element));
  }

  /** The arguments, or null if a field is not JSON. */
  read() {
    const values = this.fields.map((field) => [field.name, field.read()]);
    if (values.some(([, value]) => value === INVALID)) return null;
    return Object.fromEntries(values.filter(([, value]) => value !== ABSENT)); // also a name such as "__proto__"
  }

  /** Show errors by path (`a`, `a.b`, `/a/b`). @returns {boolean} whether there are any */
  showErrors(errors) {
    for (const field of this.fields) field.fault.textContent = "";
    const found = Object.entries(errors ?? {});
    for (const [path, text] of found) {
      const names = path.replace(/^[/$.]+/, "").split(/[/.[\]]/);
      const field = this.fields.find(({ name }) => name === names[0]) ?? this.fields[0];
      if (field) field.showError(field.name === names[0] ? text : `${path}: ${text}`);
    }
    return found.length > 0;
  }

  focus() {
    this.fields[0]?.input.focus();
  }
}

const ABSENT = Symbol("absent");
const INVALID = Symbol("invalid");

/** A schema whose only alternative to null is taken. */
function plain(schema) {
  const some = (schema.anyOf ?? schema.oneOf)?.filter((one) => one.type !== "null");
  if (some?.length === 1) return { ...schema, ...some[0] };
  return Array.isArray(schema.type) && schema.type.length === 2 && schema.type.includes("null") ? { ...schema, type: schema.type.find((type) => type !== "null") } : schema;
}

class Field {
  constructor(name, given, schema, required) {
    this.name = name;
    this.given = Object.hasOwn(given, name);
    this.original = given[name];
    this.required = required;
    this.kind = kindOf(schema, this.original, this.given);
    this.touched = false;
    const id = `field-${++count}`;
    this.input = this.#input(schema, id);
    this.input.addEventListener("input", () => this.#changed());
    this.before = make("del", { hidden: true });
    this.fault = make("span", { class: "fault", id: `${id}-fault`, role: "alert" });
    this.element = make(
      "div",
      { class: "field" },
      make("label", { for: id }, shown(name), make("span", { class: "small" }, ` ${this.kind}${required ? "" : ", optional"}`)),
      schema.description ? make("span", { class: "small", id: `${id}-about` }, shown(schema.description)) : null,
      this.before,
      this.input,
      this.fault,
    );
  }

  read() {
    if (!this.touched) return this.given ? this.original : ABSENT;
    const text = this.input.value;
    if (text === "" && !(this.kind === "text" && this.given) && !(this.kind === "text" && this.required)) return ABSENT;
    const value = READ[this.kind](text);
    this.fault.textContent = "";
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
    const original = this.given ? toField(this.kind, this.original) : "";
    this.before.hidden = this.input.value === original || !this.given;
    this.before.textContent = shown(original || "empty");
  }

  #input(schema, id) {
    const value = this.given ? toField(this.kind, this.original) : "";
    const about = [`${id}-fault`, schema.description && `${id}-about`].filter(Boolean).join(" ");
    const common = { id, "aria-describedby": about, autocomplete: "off", spellcheck: "false" };
    const options = this.kind === "yes or no" ? [true, false] : schema.enum;
    if (this.kind === "yes or no" || this.kind === "choice") {
      const texts = options.map((option) => writeJson(option));
      if (!this.given || !texts.includes(value)) texts.unshift(value);
      const choice = make("select", common, ...texts.map((text) => make("option", { value: text }, shown(parsed(text) === undefined ? text || "not given" : asText(parsed(text))))));
      choice.value = value;
      return choice;
    }
    const long = this.kind === "JSON" || (this.kind === "text" && (value.length > 60 || value.includes("\n")));
    const input = long ? make("textarea", { ...common, rows: String(Math.min(14, value.split("\n").length + 1)) }) : make("input", { ...common, type: "text", ...(this.kind === "text" ? {} : { inputmode: "decimal" }) });
    input.value = value;
    return input;
  }
}

const number = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : INVALID);
const json = (text) => parsed(text) ?? (text.trim() === "null" ? null : INVALID);
const READ = { text: (text) => text, number, "integer": number, "yes or no": json, choice: json, JSON: json };

function kindOf(schema, value, given) {
  if (schema.enum) return "choice";
  const kinds = { string: "text", number: "number", integer: "integer", boolean: "yes or no" };
  const kind = kinds[schema.type ?? (given ? typeof value : "")] ?? "JSON";
  // A value of another type than the schema's is shown as it is.
  const fits = !given || { text: "string", number: "number", "integer": "number", "yes or no": "boolean" }[kind] === typeof value;
  return fits ? kind : "JSON";
}

const toField = (kind, value) => (kind === "text" ? value : writeJson(value, kind === "JSON" ? 2 : 0));
