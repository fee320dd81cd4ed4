// Reads folders that others change at the same time: what is missing is no error.

import { open, opendir, readdir, stat } from 'node:fs/promises';

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? '';

export const isGone = (error: unknown): boolean => codeOf(error) === 'ENOENT';

/** Names in a folder; empty if the folder does not exist. */
export async function namesIn(folder: string, pattern: RegExp): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => pattern.test(name));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return [];
    throw error;
  }
}

/** The same as a generator: a space may have too many to hold them all in memory. */
export async function* namesOneByOne(folder: string, pattern: RegExp): AsyncGenerator<string> {
  try {
    for await (const { name } of await opendir(folder, { bufferSize: 256 })) if (pattern.test(name)) yield name;
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error))) throw error;
  }
}

/** Size and time of the last change of a file; undefined if it does not exist. */
export async function factsOf(file: string): Promise<{ size: number; mtimeMs: number } | undefined> {
  try {
    return await stat(file);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/**
 * The bytes of a file; undefined if it does not exist.
 * @throws Error if it has more than `most`: then no more than that is read
 */
export async function readAtMost(path: string, most: number): Promise<Buffer | undefined> {
  try {
    await using file = await open(path);
    const chunks: Buffer[] = [];
    let length = (await file.stat()).size;
    // `end` is inclusive, and the file may have grown.
    if (length <= most) for await (const chunk of file.createReadStream({ end: most, autoClose: false })) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    length = Math.max(length, bytes.length);
    if (length > most) throw new Error(`a file of ${length} bytes where at most ${most} are expected: ${path}`);
    return bytes;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}
