// The text of one Markdown block as elements, settled from the left while it streams.
//
// A mark is decided at most REACH characters after its opening; until then it is drawn as a tail that is thrown away and
// drawn again. Hence a delta costs the same after any length, hostile text takes linear time, and any cutting of a text
// gives the same elements. Knows nothing of blocks. HTML stays text; only http, https and mailto become links.

/** The most characters between the opening of a mark and its end. */
const REACH = 1000;
const DEEPEST = 6; // marks in marks
const MOST = 24; // runs of one character between an opening and its end

const PLAIN = /(?:(?!https?:\/\/)[^\\`*_~[!<&\n ])+/y;
const MAYBE_URL = /h(?:t(?:t(?:p(?:s?(?::\/?)?)?)?)?)?$/;
const URL_TEXT = /https?:\/\/[^\s<>`"*[\]]{1,1000}/y;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]{1,1000}|[\w.+-]{1,64}@[\w.-]{1,255})>/y;
const LINE_BREAK = /<br ?\/?>/iy;
const ENTITY = /&(amp|lt|gt|quot|#39|nbsp);/y;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };
const TARGET = /\( *(?:<([^<>\n]{0,1000})>|((?:[^\s<>()]|\([^\s()]{0,200}\)){0,1000}))(?:[ \n]+(?:"[^"]{0,300}"|'[^']{0,300}'))? *\)/y;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;
const TAGS = { "*1": ["em"], "*2": ["strong"], "*3": ["em", "strong"], _1: ["em"], _2: ["strong"], _3: ["em", "strong"], "~2": ["del"] };

/** @typedef {(string|Node)[]} Items what a mark becomes @typedef {{end: number, items: Items}} Mark */

/** A block's text, drawn into an element. */
export class Inline {
  /** @param {Element} element */
  constructor(element) {
    this.element = element;
    this.text = ""; // what is not settled yet
    this.before = ""; // the character before it
    this.tail = [];
  }

  /** Add text; `show` draws it. @param {string} text */
  add(text) {
    this.text += text;
  }

  /** Draw what is new. @param {boolean} whole whether the block ends here */
  show(whole) {
    for (const node of this.tail) node.remove();
    this.tail = [];
    const settled = this.#settle(whole);
    if (settled) {
      this.before = this.text[settled - 1];
      this.text = this.text.slice(settled);
    }
    if (!this.text) return;
    const items = new Reader(this.text, true, this.before, true).read(0, this.text.length, 0);
    this.tail = nodes(items);
    this.element.append(...this.tail);
  }

  #settle(whole) {
    const reader = new Reader(this.text, whole, this.before);
    const items = [];
    let at = 0;
    while (at < this.text.length) {
      const mark = reader.next(at, this.text.length, 0);
      if (reader.unsure) break;
      items.push(...mark.items);
      at = mark.end;
    }
    put(this.element, items);
    return at;
  }
}

/** Draw a whole text. @param {Element} element @param {string} text */
export function drawInline(element, text) {
  put(element, new Reader(text, true, "").read(0, text.length, 0));
}

/** Add items; texts that follow each other become one node. */
function put(element, items) {
  for (let at = 0; at < items.length; at++) {
    let text = "";
    while (typeof items[at] === "string") text += items[at++];
    const last = element.lastChild;
    if (text && last?.nodeType === Node.TEXT_NODE) last.appendData(text);
    else if (text) element.append(document.createTextNode(text));
    if (at < items.length) element.append(items[at]);
  }
}

function nodes(items) {
  const holder = document.createDocumentFragment();
  put(holder, items);
  return [...holder.childNodes];
}

/** Reads marks. `unsure`: more text may change the mark that was read last. `tail`: draw open marks as if they were closed. */
class Reader {
  constructor(text, whole, before, tail = false) {
    Object.assign(this, { text, whole, before, tail, unsure: false, linked: false });
  }

  /** All items of a span. @returns {Items} */
  read(at, end, depth) {
    const items = [];
    while (at < end) {
      const mark = this.next(at, end, depth);
      items.push(...mark.items);
      at = mark.end;
    }
    return items;
  }

  /** The mark at a place: never longer than the span, never empty. @returns {Mark} */
  next(at, end, depth) {
    this.unsure = false;
    const found = depth <= DEEPEST && MARKS[this.text[at]]?.(this, at, end, depth);
    return found || this.#plain(at, end);
  }

  #plain(at, end) {
    const stop = Math.min(matchEnd(PLAIN, this.text, at) || at + 1, end);
    let sure = stop;
    if (stop === end && !this.whole) sure = end - (MAYBE_URL.exec(this.text.slice(Math.max(at, end - 8), end))?.[0].length ?? 0);
    this.unsure ||= sure === at;
    return { end: Math.max(sure, at + 1), items: [this.text.slice(at, Math.max(sure, at + 1))] };
  }

  /** Note that a mark whose search came to the end of the text is undecided. */
  doubt(at, end, reach = REACH) {
    if (!this.whole && end === this.text.length && end - at < reach) this.unsure = true;
  }

  char(at) {
    return at < 0 ? this.before : this.text[at] ?? "";
  }

  /** Read a span that is known to be whole. */
  inside(at, end, depth, linked = this.linked) {
    const { whole, unsure } = this;
    const before = this.linked;
    Object.assign(this, { whole: true, linked });
    const items = this.read(at, end, depth + 1);
    Object.assign(this, { whole, unsure, linked: before });
    return items;
  }
}

const MARKS = {
  "\\"(reader, at, end) {
    if (at + 1 >= end) return void reader.doubt(at, end);
    const next = reader.text[at + 1];
    if (next === "\n") return { end: at + 2, items: [make("br")] };
    return PUNCTUATION.test(next) && { end: at + 2, items: [next] };
  },
  " "(reader, at, end) {
    const stop = Math.min(runEnd(reader.text, at, " "), end);
    if (stop === reader.text.length && !reader.whole) reader.unsure = true;
    if (reader.text[stop] === "\n" && stop < end) return { end: stop + 1, items: [stop - at > 1 ? make("br") : "\n"] };
    return { end: stop, items: [stop === reader.text.length ? "" : reader.text.slice(at, stop)] };
  },
  "\n": (reader, at) => ({ end: at + 1, items: ["\n"] }),
  "`"(reader, at, end) {
    const start = runEnd(reader.text, at, "`");
    const stop = codeEnd(reader.text, at, start, Math.min(end, at + REACH));
    if (stop + start - at >= end || !stop) reader.doubt(at, end);
    if (!stop) return provisional(reader, start, end, () => [make("code", reader.text.slice(start, end))]) ?? literal(reader, at, start, end);
    const code = reader.text.slice(start, stop).replaceAll("\n", " ");
    const trimmed = code.startsWith(" ") && code.endsWith(" ") && code.trim() ? code.slice(1, -1) : code;
    return { end: stop + start - at, items: [make("code", trimmed)] };
  },
  "*": emphasis,
  _: emphasis,
  "~": emphasis,
  "["(reader, at, end, depth) {
    return !reader.linked && link(reader, at, at, end, depth);
  },
  "!"(reader, at, end, depth) {
    if (at + 1 >= end) return void reader.doubt(at, end);
    return reader.text[at + 1] === "[" && !reader.linked && link(reader, at, at + 1, end, depth);
  },
  "<"(reader, at, end) {
    const line = matchEnd(LINE_BREAK, reader.text, at);
    if (line && line <= end) return { end: line, items: [make("br")] };
    const stop = matchEnd(ANGLE, reader.text, at);
    if (!stop || stop > end) return void ((end - at > 5 && /[\s>]/.test(reader.text.slice(at, at + REACH))) || reader.doubt(at, end));
    const text = reader.text.slice(at + 1, stop - 1);
    return { end: stop, items: linkTo(text.includes(":") ? text : `mailto:${text}`, [text]) };
  },
  "&"(reader, at, end) {
    const stop = matchEnd(ENTITY, reader.text, at);
    if (stop && stop <= end) return { end: stop, items: [ENTITIES[reader.text.slice(at + 1, stop - 1)]] };
    if (end - at < 6) reader.doubt(at, end);
  },
  h(reader, at, end) {
    if (reader.linked || WORD.test(reader.char(at - 1))) return;
    const found = Math.min(matchEnd(URL_TEXT, reader.text, at), end);
    if (!found) return void (end - at < 9 && reader.doubt(at, end));
    if (found === end) reader.doubt(at, end, 2 * REACH);
    const text = withoutEnd(reader.text.slice(at, found));
    return { end: at + text.length, items: linkTo(text, [text]) };
  },
};

/** The text of an address without the punctuation of the sentence around it. */
function withoutEnd(text) {
  let end = text.length;
  while (/[.,:;!?'")_~]/.test(text[end - 1]) && !(text[end - 1] === ")" && text.slice(0, end).includes("("))) end--;
  return text.slice(0, end);
}

function emphasis(reader, at, end, depth) {
  const char = reader.text[at];
  const start = Math.min(runEnd(reader.text, at, char), end);
  const length = start - at;
  if (start === end) return void reader.doubt(at, end);
  if (length > 3 || !opens(reader, char, at, start)) return literal(reader, at, start, end);
  for (const size of length === 3 ? [3, 1, 2] : [length]) {
    const tags = TAGS[char + size];
    const stop = tags && emphasisEnd(reader, char, at + size, size, Math.min(end, at + REACH));
    if (stop && stop + size === end) reader.doubt(at, end);
    if (stop) return { end: stop + size, items: [wrap(tags, reader.inside(at + size, stop, depth))] };
    if (tags && !stop) reader.doubt(at, end);
  }
  const tags = TAGS[char + length];
  return (tags && provisional(reader, start, end, () => [wrap(tags, reader.inside(start, end, depth))])) ?? literal(reader, at, start, end);
}

/** What a mark without its end is drawn as while the text may still bring the end: as if it were there. */
function provisional(reader, start, end, items) {
  return reader.tail && start < end && end === reader.text.length && end - start < REACH ? { end, items: items() } : null;
}

function literal(reader, at, stop, end) {
  return { end: Math.min(stop, end), items: [reader.text.slice(at, Math.min(stop, end))] };
}

function opens(reader, char, at, start) {
  const [before, after] = [reader.char(at - 1), reader.char(start)];
  if (/\s/.test(after) || !after) return false;
  if (char === "_" && WORD.test(before)) return false;
  return !PUNCTUATION.test(after) || !before || /\s/.test(before) || PUNCTUATION.test(before);
}

function closes(reader, char, at, stop) {
  const before = reader.char(at - 1);
  return !/\s/.test(before) && !(char === "_" && WORD.test(reader.char(stop)));
}

/** Where the marks that end an emphasis start; 0 if there are none. Code and escapes are skipped, inner emphasis is counted. */
function emphasisEnd(reader, char, from, size, end) {
  const { text } = reader;
  const inner = [];
  let runs = 0;
  for (let at = from; at < end; ) {
    if (text[at] === "\\") at += 2;
    else if (text[at] === "`") at = skipCode(reader, at, end);
    else if (text[at] !== char) at++;
    else {
      if (++runs > MOST) return 0;
      const stop = Math.min(runEnd(text, at, char), end);
      let left = stop - at;
      if (at > from && closes(reader, char, at, stop)) {
        while (inner.length && left >= inner.at(-1)) left -= inner.pop();
        if (!inner.length && (left === size || left === 3)) return stop - left;
      }
      if (left === stop - at && left <= 3 && opens(reader, char, at, stop)) inner.push(left);
      at = stop;
    }
  }
  return 0;
}

function skipCode(reader, at, end) {
  const start = runEnd(reader.text, at, "`");
  const stop = codeEnd(reader.text, at, start, end);
  if (!stop) reader.doubt(at, end);
  return stop ? stop + start - at : start;
}

/** Where the run of backticks starts that ends a code span; 0 if there is none. */
function codeEnd(text, at, start, end) {
  for (let from = text.indexOf("`", start); from >= 0 && from < end; ) {
    const stop = runEnd(text, from, "`");
    if (stop - from === start - at) return from;
    from = text.indexOf("`", stop);
  }
  return 0;
}

function link(reader, at, open, end, depth) {
  const close = bracketEnd(reader, open, Math.min(end, open + REACH));
  if (!close || close + 1 === end) return void reader.doubt(at, end, 2 * REACH);
  if (reader.text[close + 1] !== "(") return;
  TARGET.lastIndex = close + 1;
  const target = TARGET.exec(reader.text.slice(0, Math.min(end, close + 3 * REACH)));
  if (!target) reader.doubt(at, end, 4 * REACH);
  if (!target) return provisional(reader, close, end, () => reader.inside(open + 1, close, depth, true));
  const address = target[1] ?? target[2];
  const items = open > at ? imageLink(address, reader.text.slice(open + 1, close)) : linkTo(address, reader.inside(open + 1, close, depth, true));
  return { end: close + 1 + target[0].length, items };
}

/** Where the bracket that ends a link's text is; 0 if there is none. */
function bracketEnd(reader, open, end) {
  const { text } = reader;
  let depth = 0;
  for (let at = open; at < end; ) {
    if (text[at] === "\\") at += 2;
    else if (text[at] === "`") at = skipCode(reader, at, end);
    else {
      if (text[at] === "[" && ++depth > DEEPEST) return 0;
      else if (text[at] === "]" && --depth === 0) return at;
      at++;
    }
  }
  return 0;
}

/** The address of a link that may be followed, else null. @returns {URL|null} */
export function safeAddress(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/** A link, followed by its host where the text does not show it; only the text if the address is not safe. @returns {Items} */
function linkTo(address, items) {
  const url = safeAddress(address);
  if (!url) return items;
  const a = wrap(["a"], items);
  a.setAttribute("href", url.href);
  a.setAttribute("rel", "noopener noreferrer");
  a.setAttribute("target", "_blank");
  const host = url.host || url.pathname;
  const shown = a.textContent.toLowerCase().replace(/^(?:https?:\/\/|mailto:)/, "");
  if (!url.username && (shown === host || shown.startsWith(`${host}/`))) return [a];
  return [a, make("span", ` (${host})`, "host")];
}

/** A picture is never loaded: it is a link to it. @returns {Items} */
function imageLink(address, alt) {
  const url = safeAddress(address);
  if (!url) return [alt || "image"];
  const items = linkTo(address, [`image: ${url.host || url.pathname}${alt && ` (${alt})`}`]);
  return items.slice(0, 1);
}

function wrap(tags, items) {
  const [outer, ...inner] = tags.map((tag) => make(tag));
  const last = inner.reduce((parent, element) => (parent.append(element), element), outer);
  put(last, items);
  return outer;
}

function make(tag, text = "", name = "") {
  const element = document.createElement(tag);
  if (text) element.append(document.createTextNode(text));
  if (name) element.className = name;
  return element;
}

function runEnd(text, at, char) {
  while (text[at] === char) at++;
  return at;
}

function matchEnd(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : 0;
}
