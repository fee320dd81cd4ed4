// What a manifest names, read from its text.

import { describe, expect, test } from 'vitest';
import { readNames } from '../../../src/controller/gate/manifest-text.ts';

const hex = (letter: string): string => letter.repeat(64);
const entry = (letter: string): object => ({ digest: `sha256:${hex(letter)}` });

function namesIn(text: string): Record<'layer' | 'manifest', string[]> {
  const names: Record<'layer' | 'manifest', string[]> = { layer: [], manifest: [] };
  readNames(Buffer.from(text), (kind, digest) => names[kind].push(digest[0] ?? ''));
  return names;
}

describe('what a manifest names', () => {
  test('is its config, layers, blobs and manifests, and nothing else', () => {
    const inside = { annotations: { digest: entry('1'), more: [entry('2')] }, platform: entry('3'), ...entry('c') };
    const document = {
      digest: `sha256:${hex('4')}`,
      subject: entry('5'),
      annotations: { layers: [entry('6')], text: '"layers":[{"digest":"\\' },
      config: inside,
      layers: [entry('a'), null, 7, 'x', [entry('8')], { digest: [`sha256:${hex('9')}`] }, { ...inside, ...entry('b') }],
      blobs: [entry('d')],
      manifests: [entry('e'), { digest: 'sha256:none' }, { digest: null }],
    };
    const expected = { layer: ['c', 'a', 'b', 'd'], manifest: ['e'] };
    expect(namesIn(JSON.stringify(document))).toEqual(expected);
    expect(namesIn(`\n${JSON.stringify(document, null, '\t')}\r\n `)).toEqual(expected);
  });

  test('is what each of several fields of a name has, in upper and lower case, and as escapes', () => {
    const digest = `"Digest":"sha256:${hex('a')}"`;
    expect(
      namesIn(
        `{"layers":[{${digest}}],"Layers":[{"digest":"\\u0073ha256:${hex('b')}"}],"l\\u0061ye\u0072\u017f":[${JSON.stringify(entry('c'))}]}`,
      ),
    ).toEqual({
      layer: ['a', 'b', 'c'],
      manifest: [],
    });
    expect(namesIn(`{"manifests":[{${digest},"digest":null}],"MANIFESTS":null}`)).toEqual({ layer: [], manifest: ['a'] });
  });

  test.each([
    'null',
    'true',
    '-1.5e+3',
    '"text"',
    '[]',
    '{}',
    '[[],{},[{"digest":1}]]',
    `{"config":[${JSON.stringify(entry('a'))}],"layers":{}}`,
  ])('is nothing in %s', (text) => {
    expect(namesIn(text)).toEqual({ layer: [], manifest: [] });
  });

  test.each([
    '',
    ' ',
    'not JSON',
    '{',
    '{}}',
    '[}',
    '{]',
    '[1,]',
    '[,1]',
    '[1 2]',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{1:2}',
    '{"a":1 "b":2}',
    '{}{}',
    '"a',
    '"a\n"',
    '{"\\x":1}',
    'nul',
    '\ufeff{}',
    `${'['.repeat(10_001)}${']'.repeat(10_001)}`,
  ])('is not known in %j', (text) => {
    expect(() => namesIn(text)).toThrow('not JSON');
  });
});
