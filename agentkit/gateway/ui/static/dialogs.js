// Dialogs: a question, the key, the list of keys. Escape closes; the focus returns by itself.

import { make } from "./dom.js";

function show(dialog) {
	document.body.append(dialog);
	const closed = new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue), { once: true }));
	// A click on the backdrop has the dialog itself as its target.
	dialog.addEventListener("click", (event) => event.target === dialog && dialog.close(""));
	dialog.showModal();
	dialog.scrollTop = 0; // the focus is on a button at its end
	return closed.finally(() => {
		dialog.remove();
		// Chromium: the focus returned, but the caret was removed with the dialog.
		const { activeElement: field } = document;
		if (field?.type?.startsWith("text")) field.setSelectionRange(field.selectionStart, field.selectionEnd);
	});
}

// A dialog with a title and buttons. → the value of the button.
function ask(title, content, ...buttons) {
	const form = make("form", { method: "dialog", class: "buttons" }, ...buttons);
	const heading = make("h2", { id: "dialog-title" }, title);
	return show(make("dialog", { "aria-labelledby": heading.id }, heading, content, form));
}

// Ask for yes or no. → true when the person chose `yes`.
export async function confirm(title, text, yes) {
	const buttons = [make("button", { value: "" }, "Cancel"), make("button", { value: "yes", class: "danger" }, yes)];
	return (await ask(title, make("p", {}, text), ...buttons)) === "yes";
}

// Ask for the gateway's key until there is one.
export async function askForKey() {
	const field = make("input", { type: "password", "aria-label": "Key", autocomplete: "current-password" });
	const text = "The program that started it printed an address with the key, or names the variable that has it.";
	do await ask("This gateway asks for a key", make("p", {}, text), field, make("button", { class: "primary" }, "Open"));
	while (!field.value.trim());
	return field.value.trim();
}

// The list of keys: rows of [keys, what they do].
export function showKeys(rows) {
	const list = make("dl", { class: "keys" });
	for (const [keys, text] of rows) {
		list.append(make("dt", {}, ...keys.split(" ").map((key) => make("kbd", {}, key))), make("dd", {}, text));
	}
	return ask("Keys", list, make("button", {}, "Close"));
}
