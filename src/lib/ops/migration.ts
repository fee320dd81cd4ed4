// Reads scripts and CI files, and tells of each call of cf in them what becomes of it with kf.

import { resolve } from 'node:path';
import { KfError } from '../errors.ts';
import { breaks, callsIn, severity, type Call, type CallStatus } from '../migration/calls.ts';
import { scriptsOf } from '../migration/scripts.ts';
import { readSmallFile } from '../small-file.ts';

export interface CheckedCall extends Call {
  file: string;
}

export interface CheckedFiles {
  calls: CheckedCall[];
  /** Calls by status. */
  totals: Partial<Record<CallStatus, number>>;
  /** Calls that fail with kf. */
  broken: number;
}

async function textOf(file: string): Promise<string> {
  try {
    return await readSmallFile({ path: resolve(file), asGiven: file, what: 'a script' });
  } catch (error) {
    if (error instanceof KfError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new KfError('not-found', `There is no file '${file}'.`, { hints: ['kf help migrate'], cause: error });
    if (code === 'EISDIR') throw new KfError('usage', `'${file}' is a folder.`, { hints: [`kf migrate check ${file}/*`], cause: error });
    throw new KfError('usage', `The file '${file}' cannot be read: ${(error as Error).message}.`, { cause: error });
  }
}

/** @throws KfError for a file that cannot be read */
export async function checkFiles(files: readonly string[]): Promise<CheckedFiles> {
  const texts = await Promise.all(files.map(textOf));
  const calls = files.flatMap((file, at) => callsIn(scriptsOf(file, texts[at] ?? '')).map((call) => ({ file, ...call })));
  const byStatus = Map.groupBy(calls, ({ status }) => status);
  const totals = Object.fromEntries(
    severity.flatMap((status): [CallStatus, number][] => {
      const found = byStatus.get(status);
      return found === undefined ? [] : [[status, found.length]];
    }),
  );
  return { calls, totals, broken: calls.filter(({ status }) => breaks(status)).length };
}
