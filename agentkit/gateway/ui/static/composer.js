// The message field: text, attachments, a draft per thread, what is on its way. Decides nothing about runs.

import { $, button, icon, kept, make, on, say } from "./dom.js";

const MOST = 10 * 1000 * 1000; // bytes of all attachments of one message
const MEDIA = /^(?:(image)\/(?:png|jpeg|gif|webp)|(audio|video)\/.+|application\/pdf)$/;

const dataOf = (file) =>
	new Promise((done) => {
		const reader = new FileReader();
		reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
		reader.readAsDataURL(file);
	});

// A file as a part of the message. → null for what no model reads.
async function partOf(file) {
	const { name, type } = file;
	const [all, image, av] = MEDIA.exec(type) ?? [];
	if (all) return { type: image ?? av ?? "document", source: { type: "data", value: await dataOf(file), mimeType: type }, metadata: { name } };
	let text;
	try {
		text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
	} catch {
		return null;
	}
	if (text.includes("\0")) return null;
	let fence = "```";
	while (text.includes(fence)) fence += "`";
	return { type: "text", text: `${name}:\n${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}\n` };
}

const bytesOf = ({ text, source }) => text?.length ?? source.value.length * 0.75;
const nameOf = ({ text, metadata }) => metadata?.name ?? text.split(":\n", 1)[0];

export class Composer {
	attachments = []; // parts of the message
	thread = null;
	last = ""; // the person's last message in this thread
	mode = { live: false, waiting: 0, queued: 0, closed: "" };

	constructor({ send, stop, next, notify }) {
		Object.assign(this, { send, stop, notify });
		this.text = $("text");
		$("attach").append(icon("attach"));
		on("composer", "submit", (event) => {
			event.preventDefault();
			this.submit();
		});
		on("text", "input", () => this.changed());
		on("text", "keydown", (event) => this.key(event));
		on("text", "paste", (event) => {
			const files = [...event.clipboardData.files];
			if (files.length) event.preventDefault();
			this.attach(files);
		});
		on("stop", "click", stop);
		on("waiting", "click", next);
		on("attach", "click", () => $("files").click());
		on("files", "change", async () => {
			await this.attach([...$("files").files]);
			$("files").value = "";
			this.text.focus();
		});
		for (const type of ["dragover", "dragleave", "drop"]) document.addEventListener(type, (event) => this.drag(event));
	}

	drag(event) {
		const { type, dataTransfer } = event;
		if (!dataTransfer.types.includes("Files")) return;
		event.preventDefault();
		$("composer").classList.toggle("drop", type === "dragover");
		if (type === "drop") this.attach([...dataTransfer.files]);
	}

	// Another thread, and its draft.
	open(thread) {
		this.thread = thread;
		this.last = "";
		this.text.value = kept.get(this.draft, "");
		this.attached([]);
		this.changed();
	}

	get draft() {
		return `agentkit.draft.${this.thread ?? "new"}`;
	}

	key(event) {
		if (event.isComposing) return;
		if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
			event.preventDefault();
			this.submit();
		} else if (event.key === "ArrowUp" && !this.text.value && this.last) {
			event.preventDefault();
			this.put(this.last);
		}
	}

	// Escape: stop what runs, else clear the field.
	escape() {
		if (this.mode.live) this.stop();
		else this.put("");
	}

	put(text) {
		this.text.value = text;
		this.changed();
		this.text.focus();
	}

	changed() {
		kept.set(this.draft, this.text.value || null);
		this.text.style.height = "auto";
		this.text.style.height = `${this.text.scrollHeight}px`;
		this.drawButtons();
	}

	get content() {
		const text = this.text.value.trim();
		return [...this.attachments, ...(text ? [{ type: "text", text }] : [])];
	}

	// A message that was not sent comes back, before what is written here now.
	takeBack(content) {
		const [last] = content.slice(-1);
		this.attached([...content.slice(0, last.text ? -1 : undefined), ...this.attachments]);
		this.put([last.text, this.text.value].filter(Boolean).join("\n"));
	}

	async submit() {
		const { content } = this;
		if (!content.length || this.mode.closed) return;
		this.attached([]);
		this.put("");
		try {
			await this.send(content);
		} catch (error) {
			this.takeBack(content);
			this.notify(error.message);
		}
	}

	async attach(files) {
		for (const file of files) {
			const sum = this.attachments.reduce((bytes, part) => bytes + bytesOf(part), file.size);
			const part = sum <= MOST ? await partOf(file) : null;
			if (part) this.attached([...this.attachments, part]);
			else this.notify(`${file.name}: ${sum > MOST ? "10 MB at most for the attachments of one message" : "only images, PDF, audio, video and text"}.`);
		}
		if (files.length) say(`${this.attachments.length} attached`);
	}

	attached(attachments) {
		this.attachments = attachments;
		const rows = attachments.map((part) => {
			const remove = () => {
				this.attached(this.attachments.filter((each) => each !== part));
				this.text.focus();
			};
			const image = part.type === "image" && make("img", { src: `data:${part.source.mimeType};base64,${part.source.value}`, alt: "" });
			const name = nameOf(part);
			return make("li", {}, image, make("span", {}, name), button(icon("close"), remove, { class: "icon", "aria-label": `Remove ${name}` }));
		});
		$("attachments").replaceChildren(...rows);
		$("attachments").hidden = !rows.length;
		this.drawButtons();
	}

	// `mode`: {live, waiting, queued, closed: the reason why nothing can be sent}
	show(mode) {
		this.mode = mode;
		this.drawButtons();
	}

	drawButtons() {
		const { live, waiting, queued, closed } = this.mode;
		const busy = live || waiting > 0;
		$("stop").hidden = !busy;
		$("send").hidden = busy && !this.content.length;
		$("send").textContent = live ? "Queue" : waiting ? `Send, and stop the ${waiting} waiting` : "Send";
		$("send").disabled = Boolean(closed) || !this.content.length;
		$("hint").textContent = queued ? `${queued} queued` : "";
		$("waiting").hidden = !waiting;
		$("waiting").textContent = `${waiting} waiting for you`;
		this.text.placeholder = closed || (busy ? "Write the next message" : "Write a message");
		this.text.disabled = Boolean(closed);
	}

	drawOutbox(outbox) {
		const edit = (item) => {
			outbox.remove(item);
			this.takeBack(item.content);
		};
		const rows = outbox.items.filter(({ thread }) => thread === this.thread).map((item) => {
			const { content, error } = item;
			const action = (name, run) => error && button(name, () => run(item), { class: "quiet" });
			const name = make("span", { class: "name" }, content.map(nameOf).join(" · "));
			return make("li", { class: error && "refused" }, name, error ? `Not sent: ${error}` : "Sending…", action("Try again", outbox.again), action("Edit", edit));
		});
		$("outbox").replaceChildren(...rows);
		$("outbox").hidden = !rows.length;
	}
}
