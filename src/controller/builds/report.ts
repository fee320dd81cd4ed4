// What the registry container reports about the droplet, and the same facts from an image's labels.

import type { Droplet } from '../../lib/api/types.generated.ts';
import { cutText } from '../../lib/api/text.ts';
import { isDigest } from '../../lib/oci/descriptor.ts';
import { readJson, readToml, tablesIn, textIn, textsIn, unpackText, UntrustedError } from './untrusted.ts';
import type { UntrustedTable } from './untrusted.ts';

/** What of a droplet the lifecycle tells; places and names are the caller's. */
export interface DropletFacts {
  processTypes: NonNullable<Droplet['processTypes']>;
  buildpacks: NonNullable<Droplet['buildpacks']>;
}

export interface ExportReport {
  digest: string;
  /** Left out when the message had no room for it, or what it holds cannot be judged. */
  facts?: DropletFacts;
}

interface Process {
  type: string;
  command: string[];
  args: string[];
  direct: boolean;
}

// The launcher runs what it is given through a shell; words are kept whole by quoting those that need it.
function quoted(word: string, direct: boolean): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  // The arguments of an indirect process are shell text themselves: variables in them count.
  return direct ? `'${word.replaceAll("'", `'\\''`)}'` : `"${word.replace(/["\\`]/g, '\\$&')}"`;
}

/** What `bash -c '<script>'` runs: the launcher gives every command to a shell, so the script alone means the same. */
function shellScript(all: string[]): string | undefined {
  const [program = '', flag, script, ...more] = all;
  return /^(\/(usr\/)?bin\/)?(ba)?sh$/.test(program) && flag === '-c' && more.length === 0 ? script : undefined;
}

/** The start command of a process type as one line for a shell. */
export function commandLine({ command, args, direct }: Pick<Process, 'command' | 'args' | 'direct'>): string {
  const script = shellScript([...command, ...args]);
  if (script !== undefined) return script;
  const [program = '', ...words] = command;
  const first = direct ? quoted(program, true) : program;
  return [first, ...[...words, ...args].map((word) => quoted(word, direct))].join(' ');
}

/** Of one droplet: what a status holds, twice per build, for each build that is kept. */
export const dropletLimits = {
  processTypes: 64,
  typeCharacters: 63,
  longestCommand: 8192,
  commandCharacters: 16 * 1024,
  buildpacks: 64,
  nameCharacters: 255,
} as const;

function processesIn(value: unknown): Process[] {
  return tablesIn(value).map(({ type, command, args, direct }) => ({
    type: textIn(type),
    command: textsIn(command),
    args: textsIn(args),
    direct: direct === true,
  }));
}

function processTypesIn(value: unknown): DropletFacts['processTypes'] {
  const processes = processesIn(value).filter(({ type }) => type !== '');
  const { processTypes: most, typeCharacters, longestCommand, commandCharacters } = dropletLimits;
  if (processes.length > most) throw new UntrustedError(`The build declares ${processes.length} process types; at most ${most} are taken.`);
  const long = processes.find(({ type }) => type.length > typeCharacters);
  if (long !== undefined)
    throw new UntrustedError(`The build declares a process type of ${long.type.length} characters; at most ${typeCharacters} are taken.`);
  // A type that stands twice counts as it stands last, as in the lifecycle.
  const types = [...new Map(processes.map((process) => [process.type, commandLine(process)]))];
  const characters = types.reduce((sum, [, command]) => sum + command.length, 0);
  const longest = Math.max(0, ...types.map(([, command]) => command.length));
  if (longest > longestCommand)
    throw new UntrustedError(`The build declares a start command of ${longest} characters; at most ${longestCommand} are taken.`);
  if (characters > commandCharacters)
    throw new UntrustedError(
      `The start commands of the build have ${characters} characters in all; at most ${commandCharacters} are taken.`,
    );
  return types.map(([type, command]) => ({ type, command }));
}

function buildpacksIn(value: unknown): DropletFacts['buildpacks'] {
  const cut = (text: unknown): string => cutText(textIn(text), dropletLimits.nameCharacters);
  return tablesIn(value)
    .slice(0, dropletLimits.buildpacks)
    .map(({ id, version }) => ({ name: cut(id), version: cut(version) }));
}

const factsIn = ({ processes, buildpacks }: UntrustedTable): DropletFacts => ({
  processTypes: processTypesIn(processes),
  buildpacks: buildpacksIn(buildpacks),
});

/** The facts of a metadata.toml (/layers/config/metadata.toml). Throws UntrustedError. */
export function factsFromMetadata(toml: string): DropletFacts {
  return factsIn(readToml(toml, "The build's metadata.toml"));
}

/** The facts of image label `io.buildpacks.build.metadata`. Throws UntrustedError. */
export function factsFromLabel(json: string): DropletFacts {
  return factsIn(readJson(json, "The droplet's label io.buildpacks.build.metadata"));
}

function lineOf(message: string, key: string): string | undefined {
  const line = message.split('\n').find((candidate) => candidate.startsWith(`${key}=`));
  return line?.slice(key.length + 1);
}

/** The registry container's termination message; undefined when it is none. Facts that cannot be judged are left to the image's label. */
export function parseExportReport(message: string): ExportReport | undefined {
  const digest = lineOf(message, 'digest');
  if (digest === undefined || !isDigest(digest)) return undefined;
  const packed = lineOf(message, 'metadata') ?? '';
  if (packed === '') return { digest };
  try {
    return { digest, facts: factsFromMetadata(unpackText(packed, "The build's metadata.toml")) };
  } catch (error) {
    if (error instanceof UntrustedError) return { digest };
    throw error;
  }
}
