// Decides which files a push leaves out, by the rules of cf (docs: `.cfignore`). The rules look like git's and differ in several places: folders
// are not pruned, patterns match at any depth unless they begin with a slash, `?` is literal, brackets and parentheses are regular-expression
// text. So the matcher translates each line to a regular expression, character by character as cf does.

import { setFlagsFromString } from 'node:v8';
import { KfError } from '../errors.ts';

export interface IgnoreRules {
  /** Whether the entry at this path (relative, with `/`) is left out. */
  ignores(path: string): boolean;
  /** Whether nothing below this ignored folder can be included again, so that the folder need not be read. */
  prunes(path: string): boolean;
}

/** Always left out, at every depth, also in spite of `!`. */
const defaults = new Set(['.cfignore', '.DS_Store', '.git', '.gitignore', '.hg', '.svn', '_darcs', 'manifest.yaml', 'manifest.yml']);

/** PATH_MAX of Linux: no path is longer, so no useful pattern is. */
const longestLine = 4096;

let isLinearEngineOn = false;

/** Lets V8's second engine take over when a match backtracks too often: its time grows only with the text, like that of cf's engine (RE2). */
function enableLinearEngine(): void {
  if (isLinearEngineOn) return;
  setFlagsFromString('--enable-experimental-regexp-engine');
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
  isLinearEngineOn = true;
}

/** Whether the linear engine supports the expression: with flag `l` it rejects the others. True if this version of V8 lacks the flag. */
function isLinear(expression: string): boolean {
  return !canCompile('a', 'l') || canCompile(expression, 'l');
}

function canCompile(expression: string, flags = ''): boolean {
  try {
    return new RegExp(expression, flags).source !== '';
  } catch {
    return false;
  }
}

/** The rules of one folder; `text` is its `.cfignore`, if it has one. @throws KfError `usage` for a line that could keep kf busy for ever */
export function parseIgnoreRules(text = ''): IgnoreRules {
  const patterns = text.split('\n').flatMap((line, index) => patternFromLine(line, index + 1) ?? []);
  const isListed = (path: string): boolean =>
    patterns.reduce((ignored, { regex, negated }) => (regex.test(path) ? !negated : ignored), false);
  // A pattern that matches a folder also matches everything below it, unless it contains an end anchor or a word boundary.
  const canPrune = patterns.every(({ regex, negated }) => !negated && !/\$.|\\[bB]/.test(regex.source));
  return {
    ignores: (path) => hasDefault(path) || isListed(path),
    prunes: (path) => hasDefault(path) || (canPrune && isListed(path)),
  };
}

function hasDefault(path: string): boolean {
  return path.split('/').some((segment) => defaults.has(segment));
}

interface Pattern {
  regex: RegExp;
  negated: boolean;
}

/**
 * Backslashes before characters that Go's regular expressions do not accept (or that no file name contains): the line matches nothing. Both
 * languages know b, d, f, n, r, s, t, v, w, B, D, S, W, `\xHH` and punctuation.
 */
const foreignEscape = /\\(?![bdfnrstvwBDSW]|x[0-9A-Fa-f]{2})[^\x00-/:-@[-^`{-\x7f]/;

/** The text without that character at its end. In linear time, which a regular expression for it does not have. */
function trimEnd(text: string, character: string): string {
  let end = text.length;
  while (text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}

/** Go has no lookahead and no lookbehind, so such a line is not a valid regular expression in cf. */
const lookaround = /\(\?<?[=!]/;

function patternFromLine(raw: string, number: number): Pattern | undefined {
  const line = trimEnd(raw, '\r');
  if (line.startsWith('#')) return undefined;
  if (line.length > longestLine) throw new KfError('usage', `.cfignore: line ${number} has more than ${longestLine} characters.`);
  const trimmed = trimEnd(line.replace(/^ +/, ''), ' ');
  if (trimmed === '') return undefined;
  const negated = trimmed.startsWith('!');
  // One more `#` or `!` is dropped without an effect.
  const glob = (negated ? trimmed.slice(1) : trimmed).replace(/^[#!]/, '');
  if (foreignEscape.test(glob) || lookaround.test(glob)) return undefined;
  const expression = expressionFromGlob(glob);
  enableLinearEngine();
  // A line that is not a valid regular expression matches nothing.
  if (!canCompile(expression)) return undefined;
  if (!isLinear(expression)) {
    throw new KfError('usage', `.cfignore: line ${number} ('${trimmed}') repeats something too often to be matched in a bounded time.`, {
      hints: ['Write + instead of a count in braces, or list the names.'],
    });
  }
  return { regex: new RegExp(expression), negated };
}

/** Go's `.`; that of JavaScript excludes CR, U+2028 and U+2029 too, and macOS has files called `Icon\r`. */
const any = '[^\\n]';

/** The replacements of all pieces, in the order in which they are searched; other text is unchanged. */
const pieces: [piece: string, expression: string][] = [
  ['.', '\\.'],
  ['/**/', `(/|/${any}+/)`],
  ['**/', `(|${any}*/)`],
  ['/**', `(|/${any}*)`],
  ['\\*', '\\*'],
  ['*', '([^/]*)'],
  ['?', '\\?'],
];
/** Each found piece becomes a placeholder, so that no later piece is found inside the expression of an earlier one. */
const firstPlaceholder = 0xe000;

function expressionFromGlob(glob: string): string {
  // `dir/*.ext`: a slash after something and a `*.` after that anchor the pattern at the root.
  const anchored = /[^/+]\/.*\*\./.test(glob) && !glob.startsWith('/') ? `/${glob}` : glob;
  let text = anchored.startsWith('/**/') ? anchored.slice(1) : anchored;
  pieces.forEach(([piece], index) => {
    text = text.replaceAll(piece, String.fromCharCode(firstPlaceholder + index));
  });
  const body = text.replace(/[\ue000-\ue006]/g, (placeholder) => pieces[placeholder.charCodeAt(0) - firstPlaceholder]?.[1] ?? '');
  const below = body.endsWith('/') ? `${body}(|${any}*)$` : `${body}(|/${any}*)$`;
  return below.startsWith('/') ? `^(|/)${below.slice(1)}` : `^(|${any}*/)${below}`;
}
