// Elements and icons, made without markup text: the page's policy refuses innerHTML.

// An element. `props`: functions are listeners (`onclick`), true is an empty attribute, false and null are left out.
export function make(tag, props = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(props)) {
		if (typeof value === "function") element.addEventListener(name.slice(2), value);
		else if (value === true) element.setAttribute(name, "");
		else if (value !== false && value != null) element.setAttribute(name, value);
	}
	element.append(...children.filter((child) => child || child === 0));
	return element;
}

export const button = (text, onclick, props = {}) => make("button", { type: "button", onclick, ...props }, text);

// Set the properties that have other values: also an equal one would cost a layout.
export function change(element, values) {
	for (const [name, value] of Object.entries(values)) if (element[name] !== value) element[name] = value;
}

const PATHS = {
	close: "M5 5l10 10M15 5L5 15",
	threads: "M3 5h14M3 10h14M3 15h9",
	hide: "M12 5l-5 5 5 5",
	menu: "M10 4.5v.01M10 10v.01M10 15.5v.01",
	attach: "M15.5 9.5l-5.6 5.6a3.6 3.6 0 0 1-5.1-5.1l6-6a2.4 2.4 0 0 1 3.4 3.4l-5.9 5.9a1.2 1.2 0 0 1-1.7-1.7l5.3-5.3",
	running: "M10 3a7 7 0 1 1-7 7",
	waiting: "M7 4v12M13 4v12",
	interrupted: "M10 4v7M10 15.5v.01",
	damaged: "M10 3l8 14H2zM10 8v4M10 14.5v.01",
};

export function icon(name) {
	const [svg, path] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
	const about = { viewBox: "0 0 20 20", "aria-hidden": "true", class: `svg ${name}` };
	for (const [key, value] of Object.entries(about)) svg.setAttribute(key, value);
	path.setAttribute("d", PATHS[name]);
	svg.append(path);
	return svg;
}

export const $ = (id) => document.getElementById(id);

export const on = (id, type, run) => $(id).addEventListener(type, run);

// One sentence for screen readers, and for nobody else.
export function say(text) {
	$("status").textContent = text;
}

// A store that may be full or refused: then nothing is kept, and nothing fails.
export const kept = {
	get(name, fallback) {
		try {
			return JSON.parse(sessionStorage.getItem(name)) ?? fallback;
		} catch {
			return fallback;
		}
	},
	set(name, value) {
		try {
			if (value === null) sessionStorage.removeItem(name);
			else sessionStorage.setItem(name, JSON.stringify(value));
		} catch {
			// Full: a large picture. The message itself is still in memory.
		}
	},
};
