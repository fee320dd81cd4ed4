import { existsSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { partOfRing, partsOfRing } from '../../support/long-files.ts';

const parts = partsOfRing();
const every = parts.flat();
const attacks = readdirSync('test/cluster/attacks').filter((name) => name.endsWith('.test.ts'));
const runs = (seed: string): string[] => every.filter((file) => !partOfRing(seed).excluded.includes(file));

describe('the long files and attacks of the cluster ring', () => {
  test('exist, and each is in one part', () => {
    expect(every.filter((file) => !existsSync(file))).toEqual([]);
    expect(new Set(every).size).toBe(every.length);
    expect(every.filter((file) => file.includes('/attacks/'))).toHaveLength(attacks.length);
    expect(parts.map(({ length }) => length > attacks.length / 3)).toEqual([true, true, true]);
  });

  test('run in parts, and the line names the part, its files and the way to the others', () => {
    expect(parts.map((_part, index) => runs(String(index + 1)))).toEqual(parts);
    const { line } = partOfRing('2');
    expect(line).toContain('part 2 of 3: chaos, ');
    expect(line).toContain('KF_TEST_PART=1 or 3');
  });

  test('are those of the same part for the same commit, and each part has its commits', () => {
    const commits = [
      '5f5c81eeaa00000000000000000000000000000c',
      '5f5c81eeaa00000000000000000000000000000d',
      '5f5c81eeaa00000000000000000000000000000e',
    ];
    expect(new Set(commits.map((commit) => runs(commit).join())).size).toBe(3);
    expect(runs(commits[0] ?? '')).toEqual(runs(commits[0] ?? ''));
  });

  test.each(['0', '4', '', 'main', '1.5'])('are not chosen by %j', (seed) => {
    expect(() => partOfRing(seed)).toThrow(`There is no part '${seed}' of the long files.`);
  });
});
