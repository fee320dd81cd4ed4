import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { everydayFiles, hasTimeForPart, longForms, partOfRing, partsOfRing } from '../../support/ring-parts.ts';

const parts = partsOfRing();
const every = [...everydayFiles(), ...parts.flat()];
const names = readdirSync('test/cluster', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'));
const runs = (seed: string): string[] => partOfRing(seed).files;

describe('the files of the cluster ring', () => {
  test('exist, and each runs always or in one part', () => {
    expect(every.filter((file) => !existsSync(file))).toEqual([]);
    expect(every.toSorted()).toEqual(['test/session/session.test.ts', ...names.map((name) => `test/cluster/${name}`)].toSorted());
  });

  test('run in parts with some attacks each, whose name tells the files, and the way to the others', () => {
    expect(parts.map((_part, index) => runs(String(index + 1)))).toEqual(parts);
    expect(parts.map((files) => files.filter((file) => file.includes('/attacks/')).length > 3)).toEqual(parts.map(() => true));
    const { name, others } = partOfRing('2');
    expect(name).toContain('part 2 of 6 (logs, chaos, ');
    expect(others).toContain('KF_TEST_PART=1 or 3 or 4 or 5 or 6');
  });

  test('are those of the same part for the same commit, and each part has its commits', () => {
    const commits = ['a', 'b', 'c', 'd', 'e', 'f'].map((digit) => `5f5c81eeaa00000000000000000000000000000${digit}`);
    expect(new Set(commits.map((commit) => runs(commit).join())).size).toBe(6);
    expect(runs(commits[0] ?? '')).toEqual(runs(commits[0] ?? ''));
  });

  test.each(['0', '7', '', 'main', '1.5'])('are not chosen by %j', (seed) => {
    expect(() => partOfRing(seed)).toThrow(`There is no part '${seed}' of the cluster ring.`);
  });

  test('of a part run in CI only when they can end in time', () => {
    const minutes = (sinceStart: number, everyday: number): boolean => hasTimeForPart(sinceStart * 60_000, everyday * 60_000);
    expect([minutes(28, 15), minutes(40, 15), minutes(50, 16), minutes(70, 40)]).toEqual([true, true, false, false]);
  });
});

test.each(Object.entries(longForms))(
  'each variable with which --all makes tests of the %s ring longer is read by one',
  (ring, variables) => {
    const sources = readdirSync(`test/${ring}`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => readFileSync(`test/${ring}/${name}`, 'utf8'));
    for (const name of Object.keys(variables))
      expect([name, sources.some((text) => text.includes(`process.env['${name}']`))]).toEqual([name, true]);
  },
);
