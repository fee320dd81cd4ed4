// The facts and the decisions: what cf's commands are (cf-v8.yaml), and what is said of kf's (decisions/, a file for each group of `cf help -a`).

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

export interface CfFlag {
  short?: string;
  long?: string;
  type: string;
  /** Of an enum. */
  values?: string[];
  required?: boolean;
  repeatable?: boolean;
  /** Not in cf's help. */
  hidden?: boolean;
  /** On cf's branch, in no release. */
  unreleased?: boolean;
}

export interface CfArg {
  name: string;
  required: boolean;
  type?: string;
  values?: string[];
  repeatable?: boolean;
}

export interface CfCommandFacts {
  name: string;
  alias?: string;
  group: string;
  tier: 1 | 2 | 3;
  unreleased?: boolean;
  args?: CfArg[];
  flags?: CfFlag[];
  env?: string[];
}

export interface CfFacts {
  global: { flags: CfFlag[]; env: string[] };
  commands: CfCommandFacts[];
}

/** A test that sees the effect: `FILE TITLE`, the file as `contract/cli/frame`. */
export type ShownBy = string;

/** What is said of one flag, argument, variable or value. Without `differs`, `ignored` and `refused` it does what cf's does. */
export interface Decision {
  shown?: ShownBy | ShownBy[];
  /** Why it does something else. */
  differs?: string;
  /** Why it is accepted without an effect. */
  ignored?: string;
  /** What to write instead. */
  refused?: string;
  /** Single values that differ or are refused. */
  values?: Record<string, Pick<Decision, 'differs' | 'refused' | 'ignored'>>;
}

export interface CommandDecision extends Omit<Decision, 'values'> {
  args?: Record<string, Decision>;
  /** By `--long`, or `-s` for a flag without a long name; a text is its `shown`. */
  flags?: Record<string, Decision | ShownBy>;
  env?: Record<string, Decision | ShownBy>;
}

export interface DecisionFile {
  /** `apps` for decisions/apps.yaml. */
  name: string;
  commands: Record<string, CommandDecision>;
}

export async function readFacts(root: string): Promise<CfFacts> {
  return parse(await readFile(join(root, 'tools/surface/cf-v8.yaml'), 'utf8')) as CfFacts;
}

export async function readDecisions(root: string): Promise<DecisionFile[]> {
  const folder = join(root, 'tools/surface/decisions');
  const files = (await readdir(folder)).filter((file) => file.endsWith('.yaml')).toSorted();
  return Promise.all(
    files.map(async (file) => ({
      name: file.replace(/\.yaml$/, ''),
      commands: (parse(await readFile(join(folder, file), 'utf8')) ?? {}) as DecisionFile['commands'],
    })),
  );
}

/** The file of a group's decisions: `getting-started`. */
export const fileOfGroup = (group: string): string => group.toLowerCase().replaceAll(/[^a-z]+/g, '-');

/** How decisions and messages name a flag. */
export const flagName = ({ short, long }: Pick<CfFlag, 'short' | 'long'>): string => (long === undefined ? `-${short}` : `--${long}`);
