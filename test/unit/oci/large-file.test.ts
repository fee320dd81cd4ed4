// A file beyond 2 GiB, where sizes no longer fit into 32 bits. It takes no disk space, and its archive is counted, not kept.
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { extract } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BlockPool, tarBlocks } from '../../../src/lib/oci/tar.ts';

const size = 2 ** 31 + 4099;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kf-large-'));
  writeFileSync(join(folder, 'model.bin'), '');
  truncateSync(join(folder, 'model.bin'), size);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a file of more than 2 GiB is packed whole, in a memory of few blocks, and the entry after it is in its place', async () => {
  const memory = new Set<ArrayBufferLike>();
  const pool = new BlockPool();
  let bytes = 0;
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  const entries = [
    { type: 'file', name: 'model.bin', source: join(folder, 'model.bin') },
    { type: 'file', name: 'next.txt', source: Buffer.from('after it') },
  ] as const;
  for await (const block of tarBlocks(entries, pool)) {
    memory.add(block.buffer);
    if (bytes === 0) head = Buffer.from(block.subarray(0, 512));
    tail = Buffer.concat([tail, block]).subarray(-4 * 512);
    bytes += block.length;
    pool.give(block);
  }
  // Header and content, padded to records of 512 bytes; header and content of the next file; two empty records at the end.
  expect(bytes).toBe(512 + Math.ceil(size / 512) * 512 + 4 * 512);
  expect(memory.size).toBeLessThan(4);
  const reader = extract();
  reader.on('error', () => undefined);
  Readable.from([head]).pipe(reader);
  for await (const entry of reader) {
    expect([entry.header.name, entry.header.size]).toEqual(['model.bin', size]);
    reader.destroy();
    break;
  }
  expect(tail.toString('latin1', 0, 8)).toBe('next.txt');
  expect(tail.toString('latin1', 512, 520)).toBe('after it');
});
