// Files that people write: manifests, variables, settings, .cfignore. They are read into memory and parsed at once, so they have a limit.

import { open } from 'node:fs/promises';
import { KfError } from './errors.ts';

/** Enough for ten thousand apps; parsing it as YAML takes at most two seconds. */
export const smallFileBytes = 1024 * 1024;

export interface SmallFile {
  path: string;
  /** As the user named it. */
  asGiven: string;
  /** Its kind, with an article: "a manifest". */
  what: string;
}

/**
 * The text of a file, also of a pipe or a device, whose size is not known beforehand.
 * @throws KfError `usage` when it is too large; the system's error when it cannot be read
 */
export async function readSmallFile({ path, asGiven, what }: SmallFile): Promise<string> {
  const file = await open(path, 'r');
  try {
    const buffer = Buffer.allocUnsafe(smallFileBytes + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
      length += bytesRead;
      if (length > smallFileBytes)
        throw new KfError('usage', `The file '${asGiven}' is larger than 1 MB, the most that ${what} can have.`, {
          details: { file: asGiven },
        });
      if (bytesRead === 0) return buffer.toString('utf8', 0, length);
    }
  } finally {
    await file.close();
  }
}
