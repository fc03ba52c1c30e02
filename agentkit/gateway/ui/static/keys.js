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

// Whether a bare key is the page's there: in the conversation and the list (WCAG 2.1.4), while nothing is typed.
const isOurs = (element) => element.closest("#conversation, #threads") && !element.matches("input, textarea, select");

// Install the keys. `table`: rows of [key, text, run]; "Ctrl x" works anywhere.
export function installKeys(table) {
	const help = () => showKeys([...OTHERS, ...rows, ...CARD]);
	const rows = [...table, ["?", "This list", help]];
	const all = new Map(rows.map(([key, , run]) => [key.toLowerCase(), run]));
	document.addEventListener("keydown", (event) => {
		if (event.defaultPrevented || event.isComposing || event.altKey || document.querySelector("dialog[open]")) return;
		const control = event.ctrlKey || event.metaKey;
		if (!control && !isOurs(event.target)) return;
		const run = all.get((control ? "ctrl " : "") + event.key.toLowerCase());
		if (!run) return;
		event.preventDefault();
		run();
	});
	return help;
}
