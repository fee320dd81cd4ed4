import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { outcomeOf } from '../../../src/controller/builds/outcome.ts';
import { dropletLimits, factsFromLabel, factsFromMetadata, parseExportReport } from '../../../src/controller/builds/report.ts';
import { readBuilderReport } from '../../../src/controller/builds/builder-report.ts';
import { readJson, readToml, textsIn, unpackText } from '../../../src/controller/builds/untrusted.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const packed = (text: string): string => gzipSync(text).toString('base64');
const blanks = ' '.repeat(60_000);

describe('output of a build', () => {
  // The second one is valid TOML, which the exporter accepts: the previous parser searched it for a table's name in cubic time.
  test.each([
    ['blanks inside of brackets that never close', `[${blanks}\n`],
    ['the same inside of a text of several lines', `x = """\n[${blanks}\n"""\n`],
    ['blanks inside of brackets', `[${blanks}a${blanks}]\n`],
    ['brackets only', '['.repeat(100_000)],
    ['lists in lists', `x = ${'['.repeat(100_000)}`],
    ['a text that never ends', `x = "${'\\"'.repeat(60_000)}`],
    ['comments only', '#\n'.repeat(100_000)],
    ['a key of many parts', `${'a.'.repeat(100_000)}a = 1`],
    ['a table of prototypes', '[__proto__]\nx = 1\n[constructor.prototype]\ny = 2\n'],
  ])('is read to its end: %s', (_, toml) => {
    const report = parseExportReport(`digest=${digest}\nmetadata=${packed(toml)}\n`);
    expect(report?.digest).toBe(digest);
    expect(report?.facts?.processTypes ?? []).toEqual([]);
    expect(({} as { x?: number; y?: number }).x ?? ({} as { y?: number }).y).toBeUndefined();
  });

  test('is not unpacked beyond its limit', () => {
    const bomb = packed('#'.repeat(300_000));
    expect(bomb.length).toBeLessThan(1_000);
    expect(() => unpackText(bomb, 'It')).toThrow('It unpacks to more than 262144 bytes.');
    expect(parseExportReport(`digest=${digest}\nmetadata=${bomb}`)).toEqual({ digest });
    expect(() => unpackText('AAAA', 'It')).toThrow('It is not packed with gzip.');
  });

  test('is refused with a sentence if it is too large or missing', () => {
    const types = (count: number, command = 'x'): string =>
      Array.from({ length: count }, (_, index) => `[[processes]]\ntype = "t${index}"\ncommand = ["${command}"]\n`).join('');
    expect(factsFromMetadata(types(dropletLimits.processTypes)).processTypes).toHaveLength(dropletLimits.processTypes);
    expect(() => factsFromMetadata(types(dropletLimits.processTypes + 1))).toThrow(
      'The build declares 65 process types; at most 64 are taken.',
    );
    expect(() => factsFromMetadata(types(3, 'x'.repeat(6_000)))).toThrow(
      /start commands of the build have 18000 characters in all; at most 16384/,
    );
    expect(() => factsFromMetadata(`[[processes]]\ntype = "${'t'.repeat(64)}"\n`)).toThrow('a process type of 64 characters; at most 63');
    expect(() => readToml('x = 1\ny', 'It')).toThrow('It is not valid TOML (line 2, column 1).');
    expect(() => readToml('#'.repeat(300_000), 'It')).toThrow('It has 300000 characters; at most 262144 of them are read.');
  });
});

describe('data from an image', () => {
  test.each(['', '{', '[]', 'null', '"x"', '5'])('is refused if it is not an object: %s', (text) =>
    expect(() => factsFromLabel(text)).toThrow(/^The droplet's label io.buildpacks.build.metadata is not (valid JSON|a JSON object)\.$/),
  );

  test.each([
    { processes: 5, buildpacks: 'x' },
    { processes: [null, 5, [], { type: { a: 1 } }, { command: ['x'] }], buildpacks: [null, 7] },
    { processes: { length: 2 }, buildpacks: { map: 1 } },
  ])('is ignored if it has another shape: %j', (label) =>
    expect(factsFromLabel(JSON.stringify(label))).toEqual({ processTypes: [], buildpacks: [] }),
  );

  test('has one command per process type, the last one', () => {
    const processes = [
      { type: 'web', command: ['a'] },
      { type: 'web', command: ['b', 5], args: [null, 'c'] },
    ];
    expect(factsFromLabel(JSON.stringify({ processes })).processTypes).toEqual([{ type: 'web', command: 'b "c"'.replaceAll('"', '') }]);
  });

  test('is reduced to the expected shapes', () => {
    expect(textsIn(['a', 1, null, 'b'])).toEqual(['a', 'b']);
    expect(textsIn(undefined)).toEqual([]);
    expect(() => readJson('x'.repeat(300_000), 'It')).toThrow('It has 300000 characters');
  });
});

describe('the last words of a container', () => {
  test.each([
    ['blanks', blanks],
    ['what a detector prints', `fail: ${'a@'.repeat(2_000)}`],
    ['colours that never end', '\u001b['.repeat(2_000)],
    ['one long line', 'x'.repeat(4_096)],
    ['halves of characters', `${'x'.repeat(499)}${'\u{1F600}'.repeat(100)}`],
  ])('become a sentence of at most a thousand characters: %s', (_, message) => {
    const state = { terminated: { exitCode: 20, message, reason: 'Error', finishedAt: '2026-01-01T00:00:00Z' } };
    const status = { name: 'build', image: 'i', imageID: '', ready: false, restartCount: 0, state };
    for (const exitCode of [20, 1]) {
      const containerStatuses = [{ ...status, state: { terminated: { ...state.terminated, exitCode } } }];
      const pod = { metadata: { name: 'p' }, status: { containerStatuses } };
      const outcome = outcomeOf(pod, { memoryMB: 1, timeoutSeconds: 900 });
      expect(outcome).toMatchObject({ state: 'failed' });
      const said = 'message' in outcome ? outcome.message : '';
      expect(said.length).toBeLessThan(5_000);
      expect(said.isWellFormed()).toBe(true);
    }
  });

  test('of a builder contain the readable part of its order', () => {
    const order = (text: string) => readBuilderReport(`uid=1\norder=${packed(text)}\n`).buildpacks;
    expect(order('[[order]]\n[[order.group]]\nid = "a"\nversion = "1"\n[[order.group]]\nid = 5\n')).toEqual([{ id: 'a', version: '1' }]);
    expect(order(`[${blanks}`)).toEqual([]);
    const many = Array.from({ length: 2_000 }, (_, index) => `[[order.group]]\nid = "b${index}"\n`).join('');
    expect(order(`[[order]]\n${many}`)).toHaveLength(500);
    expect(readBuilderReport(`machine=${'m'.repeat(4_000)}`).architecture).toHaveLength(255);
  });
});
