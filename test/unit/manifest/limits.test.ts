import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { KfError } from '../../../src/lib/errors.ts';
import { parseManifest } from '../../../src/lib/manifest/parse.ts';
import { readManifest } from '../../../src/lib/manifest/read.ts';
import { readVariables } from '../../../src/lib/manifest/variables.ts';
import { smallFileBytes } from '../../../src/lib/small-file.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kf-limits-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function messageOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (error instanceof KfError && error.code === 'usage') return error.message;
    throw error;
  }
  throw new Error('it was accepted');
}

const parse =
  (text: string, vars = ''): (() => unknown) =>
  () =>
    parseManifest('manifest.yml', text, readVariables(vars === '' ? [] : [{ path: 'vars.yml', text: vars }], []));
const manyKeys = (count: number): string => Array.from({ length: count }, (_, index) => `    K${index}: v\n`).join('');
const laughs = (name: string, levels: number): string =>
  [
    `${name}0: &${name}0 [x, x, x, x, x, x, x, x, x, x]`,
    ...Array.from({ length: levels }, (_, n) => `${name}${n + 1}: &${name}${n + 1} [${Array(10).fill(`*${name}${n}`).join(', ')}]`),
  ].join('\n');

// Each of these took minutes, or the whole memory, with an algorithm of quadratic time or worse: none would end within a test's time.
describe('a manifest that would keep kf busy is refused, and the message names the part', () => {
  test.each([
    [
      'too large',
      () => {
        writeFileSync(path.join(folder, 'manifest.yml'), `applications: [{name: a}]\n${'#'.repeat(smallFileBytes)}`);
        return readManifest(folder, {});
      },
      "The file '.*manifest.yml' is larger than 1 MB, the most that a manifest can have",
    ],
    ['without an end', () => readManifest(folder, { manifest: '/dev/zero' }), "The file '/dev/zero' is larger than 1 MB"],
    [
      'with variables that are too large',
      () => {
        writeFileSync(path.join(folder, 'vars.yml'), '#'.repeat(smallFileBytes + 1));
        return readManifest(folder, { varsFiles: ['vars.yml'] });
      },
      "The file 'vars.yml' is larger than 1 MB, the most that a file of variables can have",
    ],
    [
      'of too many values',
      parse(`applications: [{name: a, services: [${'a,'.repeat(120_000)}]}]`),
      'This file has more than 100000 values',
    ],
    [
      'of aliases of aliases',
      parse(`${laughs('a', 8)}\napplications: [{name: x, services: *a8}]`),
      'more than 100000 values, with what its aliases unfold to',
    ],
    [
      'of many aliases',
      parse(`a: &a x\napplications: [{name: x, services: [${'*a,'.repeat(200_000)}]}]`),
      'This file has more than 100000 values',
    ],
    [
      'of one map merged very often',
      parse(`a: &a\n${manyKeys(2000)}applications:\n- name: x\n${'  <<: *a\n'.repeat(1000)}`),
      'This file has more than 100000 values',
    ],
    [
      'of variables of many values',
      parse(`applications: [{name: x, services: [${'((v)),'.repeat(2000)}]}]`, `v: [${'a,'.repeat(1000)}]`),
      'The variables of this file unfold to more than 100000 values',
    ],
    [
      'of variables of much text',
      parse(`applications: [{name: x, path: '${'((v))'.repeat(2000)}'}]`, `v: ${'a'.repeat(100_000)}`),
      'The variables of this file unfold to more than 8 MB',
    ],
    ['of deep lists', parse('- '.repeat(400_000)), 'nested in more than 100 levels|not valid yaml'],
    ['of deep flow lists', parse(`applications: ${'['.repeat(5000)}${']'.repeat(5000)}`), 'nested in more than 100 levels|not valid yaml'],
    [
      'of two equal keys',
      parse('applications: [{name: a, env: {A: 1, A: 2}}]'),
      "manifest.yml:1:38: The key 'A' stands twice in this map.",
    ],
  ])('%s', async (_, work, message) => {
    expect(await messageOf(work)).toMatch(new RegExp(message));
  });
});

describe('a large manifest is read', () => {
  test('with fifty thousand variables of an app', () => {
    const {
      apps: [app],
    } = parseManifest('m', `applications:\n- name: a\n  env:\n${manyKeys(49_000)}`);
    expect(Object.keys(app?.env ?? {})).toHaveLength(49_000);
  });

  test('with ten thousand apps', () => {
    const text = `applications:\n${Array.from({ length: 10_000 }, (_, index) => `- name: app${index}\n  memory: 1G\n`).join('')}`;
    expect(parseManifest('m', text).apps).toHaveLength(10_000);
  });

  test('with every app an alias that is not the last of its name', () => {
    const {
      apps: [first, second],
    } = parseManifest('m', 'x-a: &a 1G\nx-b: &a 2G\napplications: [{name: a, memory: *a}, {name: b, memory: &a 3G, disk_quota: *a}]');
    expect([first?.processes[0]?.memoryMB, second?.processes[0]?.diskQuotaMB]).toEqual([2048, 3072]);
  });
});
