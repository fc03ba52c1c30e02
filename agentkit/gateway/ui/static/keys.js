// The page's keys, as one table: it is what runs and what the help lists.

import { showKeys } from "./dialogs.js";

const OTHERS = [
	["Enter", "Send the message"],
	["Shift Enter", "New line"],
	["Esc", "Stop the run, or clear the message"],
	["↑", "Take your last message into an empty field"],
];
const CARD = [
	["y", "Run the call (on a focused card)"],
	["n", "Deny it"],
	["e", "Edit its arguments"],
	["a", "Always allow its tool in this thread"],
	["p", "Always allow arguments like these"],
];

function isTyping(element) {
	return element.matches?.("input, textarea, select, [contenteditable]");
}

// Install the keys. `table`: rows of [key, text, run]; "Ctrl x" works anywhere, a bare key while nothing is typed.
export function installKeys(table) {
	const help = () => showKeys([...OTHERS, ...rows, ...CARD]);
	const rows = [...table, ["?", "This list", help]];
	const all = new Map(rows.map(([key, , run]) => [key.toLowerCase(), run]));
	document.addEventListener("keydown", (event) => {
		if (event.defaultPrevented || event.isComposing || event.altKey || document.querySelector("dialog[open]")) return;
		const control = event.ctrlKey || event.metaKey;
		if (!control && isTyping(event.target)) return;
		const run = all.get((control ? "ctrl " : "") + event.key.toLowerCase());
		if (!run) return;
		event.preventDefault();
		run();
	});
	return help;
}
