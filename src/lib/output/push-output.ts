// The output of a push: one app after the other as in cf, each under its name when there are several.

import type { AppDetails } from '../api/results.ts';
import type { KfError } from '../errors.ts';
import type { AppOutput, PushedDetails } from '../ops/push/all.ts';
import type { DiffLine } from '../manifest/diff.ts';
import { renderAnswer, renderApp } from '../views/apps.ts';
import { line } from '../views/block.ts';
import { failureLines } from './error.ts';
import { reportOn, type Display } from './progress.ts';
import { openBlocks, type OutputBlock } from './side-by-side.ts';
import type { Terminal } from './terminal.ts';

/** The lines of a manifest compared with the cluster, below their heading. */
export function attributeTexts(lines: readonly DiffLine[], { ink }: Terminal): string[] {
  const texts = lines.map(({ sign, text }) => {
    const shown = `${sign} ${text}`;
    return sign === '+' ? ink.good(shown) : sign === '-' ? ink.bad(shown) : shown;
  });
  return ['', 'Updating with these attributes...', ...texts];
}

function outputOn(block: OutputBlock, terminal: Terminal, bin: string): AppOutput {
  const { ink } = terminal;
  return {
    report: reportOn(block, bin),
    attributes: (lines: readonly DiffLine[]): void => {
      for (const text of attributeTexts(lines, terminal)) block.say(text);
    },
    pushed: (details: PushedDetails): void => {
      const { name, unchanged, answer } = details;
      if (unchanged) block.say(`App ${ink.name(name)} is unchanged: nothing uploaded, built or restarted.`);
      block.print([line(), ...renderApp(details, { commands: true })]);
      if (answer !== undefined) block.note(renderAnswer(answer));
    },
    summary: ({ deployment: _toldByTheError, ...details }: AppDetails): void => {
      block.print([line(), ...renderApp(details, { commands: true }), line()]);
    },
    failed: (error: KfError): void => {
      for (const text of failureLines(error, terminal)) block.note(text);
    },
    end: () => block.end(),
  };
}

/** The output of each app by its name. */
export function openPushOutput(
  { terminal, display, bin }: { terminal: Terminal; display: Display; bin: string },
  names: readonly string[],
): (name: string) => AppOutput {
  const blocks = openBlocks(terminal, display, names, (name) => `Pushing app ${terminal.ink.name(name)}...`);
  return (name) => {
    const block = blocks.get(name);
    if (block === undefined) throw new Error(`there is no output for app ${name}`);
    return outputOn(block, terminal, bin);
  };
}
