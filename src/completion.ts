// The hidden command of completion scripts. Loaded only for it.

import { declaredBy, type CommandStatics } from './declared.ts';
import type { Frame } from './frame.ts';
import { commandCandidates, commandOf, expectedIn, type Candidate, type Expected } from './lib/cf/completion.ts';
import { namesFor } from './lib/ops/completion/names.ts';
import { listCommands } from './lib/output/overview.ts';
import { safeName } from './lib/output/safe-text.ts';

/** What main.ts knows of commands. */
export interface Commands {
  resolve(typed: string): Promise<string | undefined>;
  load(name: string): Promise<CommandStatics>;
  isAvailable(name: string): boolean;
}

/** The value of a flag among words: `--org x`, `--org=x`, `-o x`. */
function given(words: readonly string[], ...names: string[]): string | undefined {
  for (const [index, word] of words.entries()) {
    if (names.includes(word)) return words[index + 1];
    const [name = '', value] = word.split('=', 2);
    if (value !== undefined && names.includes(name)) return value;
  }
  return undefined;
}

async function candidatesOf(expected: Expected, words: readonly string[], frame: Frame): Promise<Candidate[]> {
  if (expected === undefined) return [];
  if ('candidates' in expected) return expected.candidates;
  const { names, before, partial } = expected;
  const { env, signal, bin } = frame;
  const place = { context: given(words, '--context'), org: given(words, '--org'), space: given(words, '--space') };
  const found = await namesFor(names, { env, signal, bin, ...place });
  // Others chose the names, and a shell would take a line feed as the end of one.
  const harmless = found.filter((name) => name === safeName(name));
  return harmless.filter((name) => name.startsWith(partial)).map((name) => ({ text: `${before}${name}` }));
}

/** Prints what may follow the words, one candidate per line. @param words the last one is unfinished and may be '' */
export async function complete(words: readonly string[], frame: Frame, commands: Commands): Promise<number> {
  const { command, rest } = commandOf(words);
  const print = (candidates: readonly Candidate[]): void => {
    for (const { text, summary } of candidates) frame.terminal.out(summary === undefined ? text : `${text}\t${summary}`);
  };
  const partial = rest.at(-1) ?? '';
  if (command === undefined) {
    const rows = listCommands({ all: false, isAvailable: commands.isAvailable });
    print(commandCandidates(rows, partial));
    return 0;
  }
  if (command === 'help' || command === 'h') {
    print(commandCandidates(listCommands({ all: false, isAvailable: commands.isAvailable }), partial));
    return 0;
  }
  const name = await commands.resolve(command);
  if (name === undefined) return 0;
  const expected = expectedIn(name, rest, declaredBy(await commands.load(name)));
  print(await candidatesOf(expected, words.slice(0, -1), frame));
  return 0;
}
