// Makes text of others (apps, builds, names of objects) harmless for a terminal. Output to a pipe or a file keeps its bytes.
// Sources: ECMA-48 (control sequences); xterm's "Control Sequences"; Unicode Standard Annex 9 (directional formatting characters).

/** C0 except tab and line feed, DEL, C1, line and paragraph separators, and characters that change the direction of text. */
const harmful = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const harmfulInCell = new RegExp(`[\\t\\n]|${harmful.source}`, 'g');

/**
 * CSI; OSC, DCS, SOS, PM and APC with their end on the same line; other escapes; a line's end; single characters. The classes of each part are
 * disjoint, so nothing backtracks, and an incomplete sequence matches as single characters.
 */
const tokens = new RegExp(
  String.raw`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\${'`'}-~]|\n|` + harmful.source,
  'g',
);

const reset = '\x1b[0m';
const longestColour = 64;
/** Attributes that only hide or move text: slow and fast blinking, concealed. */
const refusedAttributes = new Set([5, 6, 8]);
/** Bright background colours; nothing is defined beyond them. */
const highestAttribute = 107;
const colours = new Set([38, 48, 58]);
/** How many numbers follow each mode of a colour: 38;5;N and 38;2;R;G;B. */
const colourNumbers = new Map([
  ['5', 1],
  ['2', 3],
]);
/** Values with colons: a style of underlining, and a colour. */
const withColons = /^0*(?:4:[0-5]|[345]8:(?:5:\d{1,3}|2(?::\d{0,3}){3,6}))$/;
/** The code that ends each attribute; 0 ends all. */
const endOf = new Map<number, readonly number[]>([
  [22, [1, 2]],
  [23, [3, 20]],
  [24, [4, 21]],
  [27, [7]],
  [29, [9]],
  [55, [53]],
]);

/** `^[`, `\x9b`, `\u202e`: visible and without effect. */
function visible(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code === 9) return String.raw`\t`;
  if (code === 10) return String.raw`\n`;
  if (code < 0x20) return `^${String.fromCodePoint(code + 0x40)}`;
  if (code === 0x7f) return '^?';
  return code < 0x100 ? `\\x${code.toString(16)}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/**
 * The attributes of a select-graphic-rendition sequence, colours as 38, 48 and 58; undefined for another sequence, or with a refused attribute. Also
 * for a colour of an unknown mode or without all its numbers: a terminal may take what follows as attributes.
 */
function attributesOf(sequence: string): number[] | undefined {
  const parameters = /^\x1b\[([0-9;:]*)m$/.exec(sequence)?.[1];
  if (parameters === undefined || sequence.length > longestColour) return undefined;
  const attributes: number[] = [];
  const rest = parameters.split(';');
  for (let part = rest.shift(); part !== undefined; part = rest.shift()) {
    const hasColons = part.includes(':');
    const attribute = Number(part.split(':')[0]);
    if (refusedAttributes.has(attribute) || attribute > highestAttribute || (hasColons && !withColons.test(part))) return undefined;
    attributes.push(attribute);
    if (hasColons || !colours.has(attribute)) continue;
    const count = colourNumbers.get(rest.shift() ?? '');
    if (count === undefined || rest.length < count || !rest.splice(0, count).every((number) => /^\d{0,3}$/.test(number))) return undefined;
  }
  return attributes;
}

/** Updates the set of active attributes. */
function applyTo(on: Set<number>, attributes: readonly number[]): void {
  for (const attribute of attributes) {
    if (attribute === 0) on.clear();
    else if (attribute === 39)
      for (const one of [...on].filter((other) => isBetween(other, 30, 38) || isBetween(other, 90, 97))) on.delete(one);
    else if (attribute === 49)
      for (const one of [...on].filter((other) => isBetween(other, 40, 48) || isBetween(other, 100, 107))) on.delete(one);
    else if (endOf.has(attribute)) for (const one of endOf.get(attribute) ?? []) on.delete(one);
    else on.add(attribute);
  }
}

const isBetween = (value: number, first: number, last: number): boolean => value >= first && value <= last;

/**
 * Text that is safe for a terminal: colours are kept and end with their line; other complete control sequences are removed; single control
 * characters and incomplete sequences are shown as `^[`, `\x9b` or `\u202e`. Each call is independent, so a sequence split over two calls has no
 * effect.
 */
export function safeText(text: string): string {
  if (!harmful.test(text)) return text;
  const on = new Set<number>();
  const safe = text.replace(tokens, (token) => {
    if (token === '\n') {
      const end = on.size === 0 ? token : `${reset}${token}`;
      on.clear();
      return end;
    }
    if (token.length === 1) return visible(token);
    const attributes = attributesOf(token);
    if (attributes === undefined) return '';
    applyTo(on, attributes);
    return token;
  });
  return on.size === 0 ? safe : `${safe}${reset}`;
}

/** A name or a table cell that is safe for a terminal: one line, with everything in it visible. */
export function safeName(text: string): string {
  return text.replace(harmfulInCell, visible);
}

/** A JSON document in which everything is escaped that a terminal could interpret; its meaning stays the same. */
export function safeJson(document: string): string {
  return document.replace(
    new RegExp(harmful.source, 'g'),
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}
