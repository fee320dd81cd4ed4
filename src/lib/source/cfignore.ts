// Which files a push leaves out, by the rules of cf (docs: `.cfignore`). They look like git's and differ in several places: folders are not
// pruned, patterns float unless they begin with a slash, `?` is itself, brackets and parentheses are regular-expression text. The matcher is
// therefore a translation of each line to a regular expression, character for character what cf makes of it.

import { setFlagsFromString } from 'node:v8';
import { KfError } from '../errors.ts';

export interface IgnoreRules {
  /** Whether the entry at this path (relative, with `/`) stays at home. */
  ignores(path: string): boolean;
  /** Whether nothing below this ignored folder can come back, so that it need not be read. */
  prunes(path: string): boolean;
}

/** Always left out, at every depth, and not to be brought back by `!`. */
const DEFAULTS = new Set(['.cfignore', '.DS_Store', '.git', '.gitignore', '.hg', '.svn', '_darcs', 'manifest.yaml', 'manifest.yml']);

/** As long as a path can be. */
const longestLine = 4096;

let asksLinear: boolean | undefined;

/**
 * V8's second engine takes over where a match goes back too often: its time grows with the text alone, as that of cf's (RE2). Returns whether the
 * flag `l` is there, by which the engine says which expressions it can take.
 */
function boundMatching(): boolean {
  if (asksLinear === undefined) {
    setFlagsFromString('--enable-experimental-regexp-engine');
    setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
    asksLinear = canCompile('a', 'l');
  }
  return asksLinear;
}

function canCompile(expression: string, flags = ''): boolean {
  try {
    return new RegExp(expression, flags).source !== '';
  } catch {
    return false;
  }
}

/** The rules of one folder; `text` is its `.cfignore`, if there is one. @throws KfError `usage` for a line that could keep kf busy for ever */
export function parseIgnoreRules(text = ''): IgnoreRules {
  const patterns = text.split('\n').flatMap((line, index) => patternFromLine(line, index + 1) ?? []);
  const isListed = (path: string): boolean =>
    patterns.reduce((ignored, { regex, negated }) => (regex.test(path) ? !negated : ignored), false);
  // A pattern that matches a folder matches all below it too, unless it ends somewhere by itself.
  const canPrune = patterns.every(({ regex, negated }) => !negated && !/\$.|\\[bB]/.test(regex.source));
  return {
    ignores: (path) => hasDefault(path) || isListed(path),
    prunes: (path) => hasDefault(path) || (canPrune && isListed(path)),
  };
}

function hasDefault(path: string): boolean {
  return path.split('/').some((segment) => DEFAULTS.has(segment));
}

interface Pattern {
  regex: RegExp;
  negated: boolean;
}

/** Backslashes before what Go's regular expressions do not know (or give a meaning that no file name has): the line matches nothing. */
const FOREIGN_ESCAPE = /\\(?:[^\x00-\x7f]|(?!x[0-9A-Fa-f]{2})[ac-ceg-mo-qux-zACE-RT-VX-Z0-9_])/;

/** The text without any of that character at its end. */
function without(character: string, text: string): string {
  let end = text.length;
  while (text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}

/** Go knows neither looking around nor back: such a line is no regular expression of cf's. */
const LOOKS_AROUND = /\(\?<?[=!]/;

function patternFromLine(raw: string, number: number): Pattern | undefined {
  const line = without('\r', raw);
  if (line.startsWith('#')) return undefined;
  if (line.length > longestLine) throw new KfError('usage', `.cfignore: line ${number} has more than ${longestLine} characters.`);
  const trimmed = without(' ', line.replace(/^ +/, ''));
  if (trimmed === '') return undefined;
  const negated = trimmed.startsWith('!');
  // One more `#` or `!` is dropped without a meaning.
  const glob = (negated ? trimmed.slice(1) : trimmed).replace(/^[#!]/, '');
  if (FOREIGN_ESCAPE.test(glob) || LOOKS_AROUND.test(glob)) return undefined;
  const expression = expressionFromGlob(glob);
  const canAsk = boundMatching();
  // What is not a regular expression matches nothing.
  if (!canCompile(expression)) return undefined;
  if (canAsk && !canCompile(expression, 'l')) {
    throw new KfError('usage', `.cfignore: line ${number} ('${trimmed}') repeats something too often to be matched in a bounded time.`, {
      hints: ['Write + instead of a count in braces, or list the names.'],
    });
  }
  return { regex: new RegExp(expression), negated };
}

/** What becomes of each piece, in the order in which the pieces are looked for; the rest of the text stays as it is. */
const PIECES: [piece: string, expression: string][] = [
  ['.', '\\.'],
  ['/**/', '(/|/.+/)'],
  ['**/', '(|.*/)'],
  ['/**', '(|/.*)'],
  ['\\*', '\\*'],
  ['*', '([^/]*)'],
  ['?', '\\?'],
];
/** Stand-ins for found pieces, so that no later piece is found inside the expression of an earlier one. */
const FIRST_STAND_IN = 0xe000;

function expressionFromGlob(glob: string): string {
  // `dir/*.ext`: a slash behind something and a `*.` after it fix the pattern to the root.
  const anchored = /[^/+]\/.*\*\./.test(glob) && !glob.startsWith('/') ? `/${glob}` : glob;
  let text = anchored.startsWith('/**/') ? anchored.slice(1) : anchored;
  PIECES.forEach(([piece], index) => {
    text = text.replaceAll(piece, String.fromCharCode(FIRST_STAND_IN + index));
  });
  const body = text.replace(/[\ue000-\ue006]/g, (standIn) => PIECES[standIn.charCodeAt(0) - FIRST_STAND_IN]?.[1] ?? '');
  const below = body.endsWith('/') ? `${body}(|.*)$` : `${body}(|/.*)$`;
  return below.startsWith('/') ? `^(|/)${below.slice(1)}` : `^(|.*/)${below}`;
}
