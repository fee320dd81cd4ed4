// Writes zip archives (APPNOTE.TXT 6.3), also those that no zip program writes.

import { crc32, deflateRawSync } from 'node:zlib';

export interface Zipped {
  name: string | Buffer;
  content?: string | Buffer;
  /** With the type bits of Unix; default: a regular file, or a folder if the name ends with a slash. 0: the archive has no modes. */
  mode?: number;
  /** What the archive says, in place of the truth. */
  says?: { method?: number; flags?: number; crc?: number; size?: number; compressedSize?: number };
}

export const symlinkMode = 0o120777;

/** @param says the number of entries that the end of the archive has */
export function zipOf(entries: readonly Zipped[], says: { count?: number } = {}): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const { local, central } = recordsOf(entry, offset);
    locals.push(local);
    directory.push(central);
    offset += local.length;
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  return Buffer.concat([...locals, ...directory, endOf(says.count ?? entries.length, size, offset)]);
}

function recordsOf({ name, content = '', mode, says = {} }: Zipped, offset: number): { local: Buffer; central: Buffer } {
  const path = Buffer.from(name);
  const data = Buffer.from(content);
  const body = says.method === 0 ? data : deflateRawSync(data);
  const attributes = mode ?? (path.at(-1) === 0x2f ? 0o040755 : 0o100644);
  const method = says.method ?? 8;
  // From the flags (0x800: the name is UTF-8) to the length of the extra field; both records have these.
  const shared = Buffer.alloc(24);
  shared.writeUInt16LE(says.flags ?? 0x800, 0);
  shared.writeUInt16LE(method, 2);
  shared.writeUInt32LE(says.crc ?? crc32(data), 8);
  shared.writeUInt32LE(says.compressedSize ?? body.length, 12);
  shared.writeUInt32LE(says.size ?? data.length, 16);
  shared.writeUInt16LE(path.length, 20);
  const local = Buffer.concat([signed(0x04034b50, 45), shared, path, body]);
  const rest = Buffer.alloc(14);
  rest.writeUInt32LE(attributes * 0x10000, 6);
  rest.writeUInt32LE(offset, 10);
  const madeBy = attributes === 0 ? 0 : 3;
  const central = Buffer.concat([signed(0x02014b50, (madeBy << 8) + 45, 45), shared, rest, path]);
  return { local, central };
}

/** The end of the archive, with that of Zip64. */
function endOf(count: number, size: number, offset: number): Buffer {
  const end64 = Buffer.alloc(56);
  end64.writeUInt32LE(0x06064b50, 0);
  end64.writeBigUInt64LE(44n, 4);
  end64.writeBigUInt64LE(BigInt(count), 24);
  end64.writeBigUInt64LE(BigInt(count), 32);
  end64.writeBigUInt64LE(BigInt(size), 40);
  end64.writeBigUInt64LE(BigInt(offset), 48);
  const locator = Buffer.alloc(20);
  locator.writeUInt32LE(0x07064b50, 0);
  locator.writeBigUInt64LE(BigInt(offset + size), 8);
  locator.writeUInt32LE(1, 16);
  const end = Buffer.alloc(22, 0xff);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt32LE(0, 4);
  end.writeUInt16LE(0, 20);
  return Buffer.concat([end64, locator, end]);
}

function signed(signature: number, ...numbers: number[]): Buffer {
  const bytes = Buffer.alloc(4 + 2 * numbers.length);
  bytes.writeUInt32LE(signature, 0);
  numbers.forEach((number, index) => bytes.writeUInt16LE(number, 4 + 2 * index));
  return bytes;
}
