// Makes the tree that the pack bench measures: 10,000 files, 300 MB, like an app with its dependencies (most of it text, some of it not
// compressible), equal on every machine.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FILES = 10_000;
const TOTAL_BYTES = 300_000_000;
const FILES_PER_FOLDER = 100;
/** Every tenth file is random, as pictures, fonts and archives are. */
const NOISE_EVERY = 10;

/** A small linear congruential generator: `Math.random` cannot be seeded. */
function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0);
}

export function makeTree(root: string): void {
  const next = numbers(1);
  const words = Array.from({ length: 4096 }, () => `${next().toString(36)}${next() % 3 === 0 ? ' = ' : ' '}`);
  const text = Buffer.from(Array.from({ length: 6_000_000 }, () => words[(next() >>> 8) % words.length]).join(''));
  const noise = Buffer.from(Array.from({ length: 16_000_000 }, () => next() >>> 24));
  // Sizes from a tenth to ten times the mean, scaled so that the sum is right.
  const weights = Array.from({ length: FILES }, () => 10 ** (((next() >>> 8) % 2000) / 1000 - 1));
  const scale = TOTAL_BYTES / weights.reduce((sum, weight) => sum + weight, 0);
  weights.forEach((weight, index) => {
    const folder = join(root, `package-${Math.floor(index / FILES_PER_FOLDER)}`, 'lib');
    if (index % FILES_PER_FOLDER === 0) mkdirSync(folder, { recursive: true });
    const size = Math.round(weight * scale);
    writeFileSync(join(folder, `file-${index}.js`), slice(index % NOISE_EVERY === 0 ? noise : text, next() % 10_000_000, size));
  });
}

function slice(from: Buffer, start: number, size: number): Buffer {
  const parts: Buffer[] = [];
  for (let left = size, at = start; left > 0; at = 0) {
    const part = from.subarray(at, at + left);
    parts.push(part);
    left -= part.length;
  }
  return Buffer.concat(parts);
}
