// JSON in which whole numbers stay exact: one that a JavaScript number cannot hold, such as a 64-bit id, is a BigInt.

const LONG = /\d{16}/;

const exact = (_, value, about) => (typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(about?.source) ? BigInt(about.source) : value);

export const readJson = (text) => JSON.parse(text, LONG.test(text) ? exact : undefined);

export const writeJson = (value, indent) => JSON.stringify(value, (_, one) => (typeof one === "bigint" ? JSON.rawJSON(one) : one), indent);
