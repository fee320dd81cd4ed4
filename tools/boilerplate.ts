// `node tools/boilerplate.ts`: counts the lines of each command that every command needs (decision 49): imports, loading its session and
// its ops, taking the session apart, naming the place and the user, and the braces of the class and of `run`.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const folder = path.join(import.meta.dirname, '../src/commands');

const always = [
  /^import /,
  /^(export default class|\s*async run\(\))/,
  /^( {2})?\}$/,
  /^\s*const \{ (org|space|user)(, (org|space|user))* \} = session;$/,
  /this\.say`.* as \$\{/,
  /^\s*this\.say``;$/,
];

/** Line numbers of statements that await the session and the modules of ops. */
function loading(lines: readonly string[]): Set<number> {
  const found = new Set<number>();
  let open = false;
  for (const [index, text] of lines.entries()) {
    if (/^\s*const .*await (Promise\.all\(\[|this\.(inSpace|inOrg|inCluster|\w+Session|load)\(|import\()/.test(text)) open = true;
    if (open) found.add(index);
    if (text.endsWith(';')) open = false;
  }
  return found;
}

const counts = readdirSync(folder)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => {
    const lines = readFileSync(path.join(folder, file), 'utf8').split('\n');
    const loaded = loading(lines);
    const boilerplate = lines.filter((text, index) => loaded.has(index) || always.some((pattern) => pattern.test(text))).length;
    return { file: file.replace('.ts', ''), lines: lines.length - 1, boilerplate };
  });
const sum = (of: 'lines' | 'boilerplate'): number => counts.reduce((total, command) => total + command[of], 0);
for (const { file, lines, boilerplate } of counts)
  console.log(`${file.padEnd(32)}${String(lines).padStart(4)}${String(boilerplate).padStart(4)}`);
const mean = (sum('boilerplate') / counts.length).toFixed(1);
console.log(`${counts.length} commands: ${sum('lines')} lines, ${sum('boilerplate')} of them boilerplate, ${mean} for each.`);
