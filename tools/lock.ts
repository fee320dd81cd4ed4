// `node tools/lock.ts [FILE]`: rejects a lockfile with the addresses from which packages were downloaded. Integrity hashes identify the packages;
// with addresses, every other machine would use one machine's mirror.

import { readFileSync } from 'node:fs';

const file = process.argv[2] ?? 'package-lock.json';
const found = readFileSync(file, 'utf8')
  .split('\n')
  .flatMap((line, index) => (/"resolved": *"https?:/i.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : []));
if (found.length > 0) {
  console.error(`${found.join('\n')}\n${file} names addresses of a registry. Write it anew with omit-lockfile-registry-resolved (.npmrc).`);
  process.exitCode = 1;
}
