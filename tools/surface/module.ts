// The part of the comparison that `kf migrate check` needs: the flags of each command that is there, and what to know of them.

import type { ComparedCommand, Comparison } from './compare.ts';
import { flagName } from './data.ts';

/** `f,force` for a flag without a value, `p,path=` for one with a value. */
function spec(char: string | undefined, long: string | undefined, takesValue: boolean): string {
  return `${[char, long].filter(Boolean).join(',')}${takesValue ? '=' : ''}`;
}

/** The flags that the class declares, and those of cf that kf refuses. */
function flagsOf({ facts, declared, entries }: ComparedCommand): string {
  const refused = new Set(entries.filter(({ kind, status }) => kind === 'flag' && status === 'refused').map(({ name }) => name));
  return [
    ...declared.map(({ char, name, takesValue }) => spec(char, name, takesValue)),
    ...(facts.flags ?? []).filter((flag) => refused.has(flagName(flag))).map((flag) => spec(flag.short, flag.long, flag.type !== 'bool')),
  ].join(' ');
}

type Note = readonly [status: string, note: string];

/** By flag, `flag=value`, or '' for the command itself. Flags that cf-flags.ts refuses are looked up there. */
function notesOf({ status, note, entries, declared }: ComparedCommand): Record<string, Note> {
  /** A flag of cf without a long name may have one in kf. */
  const nameIn = (name: string): string => {
    const own = declared.find(({ char }) => name === `-${char}`);
    return own === undefined ? name : flagName({ long: own.name });
  };
  const notes: Record<string, Note> = status === 'done' ? {} : { '': [status, note] };
  for (const entry of entries.filter(({ kind }) => kind === 'flag')) {
    const name = nameIn(entry.name);
    if (entry.status === 'differs' || entry.status === 'ignored') notes[name] = [entry.status, entry.note];
    for (const [value, { refused, ignored, differs }] of Object.entries(entry.values)) {
      const word = refused !== undefined ? 'refused' : ignored !== undefined ? 'ignored' : 'differs';
      notes[`${name}=${value}`] = [word, refused ?? ignored ?? differs ?? ''];
    }
  }
  return notes;
}

/** Path and text of the module. */
export function moduleOf({ commands }: Comparison): { file: string; text: string } {
  const there = commands.filter(({ status }) => status !== 'refused' && status !== 'open');
  const rows = there.map((command) => {
    const notes = notesOf(command);
    const { dashesAreData, mostArgs } = command;
    const fields = [
      flagsOf(command),
      Number.isFinite(mostArgs) ? mostArgs : null,
      ...(Object.keys(notes).length > 0 || dashesAreData ? [notes] : []),
      ...(dashesAreData ? [true] : []),
    ];
    return `  ${JSON.stringify(command.facts.name)}: ${JSON.stringify(fields)},`;
  });
  const text = [
    '// Written by tools/generate.ts from tools/surface.',
    '',
    'export type Note = readonly [status: string, text: string];',
    '',
    '/** What a call of a command can have. */',
    'export type CallFacts = readonly [',
    '  /** `short,long`, with `=` for a value. */',
    '  flags: string,',
    '  /** null: any number. */',
    '  mostArgs: number | null,',
    '  /** What to know of the command (under an empty name), of a flag or of a value of a flag. */',
    '  notes?: Readonly<Record<string, Note>>,',
    '  /** Text that looks like an unknown flag is data. */',
    '  dashesAreData?: boolean,',
    '];',
    '',
    'export const surface: Readonly<Record<string, CallFacts>> = {',
    ...rows,
    '};',
    '',
  ];
  return { file: 'src/lib/migration/surface.generated.ts', text: text.join('\n') };
}
