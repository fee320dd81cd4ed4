import { describe, expect, test } from 'vitest';
import { endsOf, linesFrom, upTo } from '../../../src/lib/kube/lines.ts';
import { queryString, resourcePath } from '../../../src/lib/kube/paths.ts';
import { namespaceType, statefulSetType } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';

async function* chunks(...parts: Buffer[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield await Promise.resolve(part);
}

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  let all = '';
  for await (const chunk of stream) all += chunk.toString();
  return all;
}

async function collect(stream: AsyncIterable<Buffer>, keepRest: boolean): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesFrom(stream, { keepRest })) lines.push(line);
  return lines;
}

describe('lines of a stream', () => {
  test('characters that are split between chunks stay whole, wherever the split is', async () => {
    const text = Buffer.from('a\nГород 🚀 köln\n\nend\n');
    for (let at = 0; at <= text.length; at++) {
      expect(await collect(chunks(text.subarray(0, at), text.subarray(at)), false)).toEqual(['a', 'Город 🚀 köln', '', 'end']);
    }
  });

  test('a line over many chunks is returned once', async () => {
    const parts = [...'hello world\nrest'].map((character) => Buffer.from(character));
    expect(await collect(chunks(...parts), false)).toEqual(['hello world']);
    expect(await collect(chunks(...parts), true)).toEqual(['hello world', 'rest']);
  });
});

describe('a line without an end', () => {
  test('is returned once, up to the maximum length, and the next line is separate again', async () => {
    const parts = ['12345', '678', '9', '0\nnext', '\n'].map((part) => Buffer.from(part));
    const lines: string[] = [];
    for await (const line of linesFrom(chunks(...parts), { keepRest: false, longest: 7 })) lines.push(line);
    expect(lines).toEqual(['1234567', 'next']);
  });
});

describe('the first and last lines of a log', () => {
  const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `line ${String(index + 1)}`);

  test('are the whole log if it is short', async () => {
    expect(await endsOf(numbered(30))).toEqual({ head: [], omitted: 0, tail: numbered(30) });
    expect(await endsOf(numbered(33))).toEqual({ head: numbered(3), omitted: 0, tail: numbered(33).slice(3) });
  });

  test('are the first 10 and the last 30 lines, with the number of lines between them', async () => {
    expect(await endsOf(numbered(100))).toEqual({ head: numbered(10), omitted: 60, tail: numbered(100).slice(70) });
  });

  test('have at most 500 characters, without blank lines at the end', async () => {
    expect(await endsOf(['x'.repeat(600), '', 'y\r', '', ' '])).toEqual({ head: [], omitted: 0, tail: ['x'.repeat(500), '', 'y'] });
  });

  test("are the app's own, not the kubelet's message when it has no log", async () => {
    const said = ['unable to retrieve container logs for containerd://0123abc'];
    expect(await endsOf(said)).toEqual({ head: [], omitted: 0, tail: [] });
  });

  test('a stream is read up to a limit and no further', async () => {
    const parts = ['abc', 'defg', 'h'].map((part) => Buffer.from(part));
    expect(await text(upTo(chunks(...parts), 4))).toBe('abcd');
    expect(await text(upTo(chunks(...parts), 100))).toBe('abcdefgh');
  });
});

describe('paths of the API', () => {
  test('are those of the Kubernetes API conventions', () => {
    expect(resourcePath(podType, { ns: 'a', name: 'b', subresource: 'status' })).toBe('/api/v1/namespaces/a/pods/b/status');
    expect(resourcePath(statefulSetType)).toBe('/apis/apps/v1/statefulsets');
    expect(resourcePath(namespaceType, { ns: 'ignored', name: 'x' })).toBe('/api/v1/namespaces/x');
    expect(resourcePath(podType, { query: { limit: 500, continue: undefined, labelSelector: 'a=b,c' } })).toBe(
      '/api/v1/pods?limit=500&labelSelector=a%3Db%2Cc',
    );
    expect(queryString({})).toBe('');
  });
});
