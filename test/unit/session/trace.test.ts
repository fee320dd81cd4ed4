import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { sentBy, visibleJson } from '../../../src/lib/session/trace-bodies.ts';
import { traced, traceSink } from '../../../src/lib/session/trace.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const hidden = '[PRIVATE DATA HIDDEN]';
const nobody = { print: () => undefined, warn: () => undefined };

describe('a trace', () => {
  it('has a line per request with its end, and below it what was sent and what came back', async () => {
    const lines: string[] = [];
    const cluster = traced(new MemoryCluster(), (line) => lines.push(line));
    await cluster.list(kinds.app, { ns: 'space' });
    await cluster.mergePatch(kinds.app, 'space', 'gone', { spec: { desiredState: 'STOPPED' } }).catch(() => undefined);
    const [listed = '', failed] = lines.map((line) => line.replace(/\d+ ms$/m, 'N ms'));
    expect(listed).toMatch(/^list korifi\.cloudfoundry\.org\/v1alpha1 cfapps space: done, N ms\nRESPONSE:\n\{\n  "items": \[\],?\n/);
    expect(failed).toBe(
      [
        'mergePatch korifi.cloudfoundry.org/v1alpha1 cfapps space gone: Error from Kubernetes: cfapps "gone" not found, N ms',
        'REQUEST:',
        JSON.stringify({ spec: { desiredState: 'STOPPED' } }, null, 2),
      ].join('\n'),
    );
  });

  it('shows the keys of a Secret, and no data of it', async () => {
    const lines: string[] = [];
    const cluster = traced(new MemoryCluster(), (line) => lines.push(line));
    await cluster.create(secretType, { metadata: { name: 'key', namespace: 'space' }, data: { colour: 'c2VjcmV0' } });
    await cluster.mergePatch(secretType, 'space', 'key', { data: { colour: 'c2VjcmV0LTI=', old: null }, stringData: { size: 'hush' } });
    await cluster.list(secretType, { ns: 'space' });
    expect(lines).toHaveLength(3);
    expect(lines[1]).toContain(
      `REQUEST:\n${JSON.stringify({ data: { colour: hidden, old: hidden }, stringData: { size: hidden } }, null, 2)}\nRESPONSE:`,
    );
    expect(lines.join('\n')).not.toMatch(/c2VjcmV0|hush/);
  });

  it.each([
    [{ spec: { credentials: { user: 'a' }, secretName: 'b' } }, { spec: { credentials: hidden, secretName: 'b' } }],
    [{ status: { token: 'a', expired: false, passwordAge: 3 } }, { status: { token: hidden, expired: false, passwordAge: 3 } }],
    [
      {
        env: [
          { name: 'KEY', value: 'a' },
          { name: 'REF', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
        ],
      },
      {
        env: [
          { name: 'KEY', value: hidden },
          { name: 'REF', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
        ],
      },
    ],
    [{ uri: 'https://alice:hush@git.example.com/x' }, { uri: `https://${hidden}@git.example.com/x` }],
    [{ items: [{ kind: 'Secret', data: { colour: 'a' } }] }, { items: [{ kind: 'Secret', data: { colour: hidden } }] }],
    [{ metadata: { managedFields: [{ manager: 'kf' }], name: 'shop' } }, { metadata: { name: 'shop' } }],
  ])('hides what is secret in %j', (body, shown) => {
    expect(visibleJson(body)).toBe(JSON.stringify(shown, null, 2));
  });

  it('has the body of a request that is sent as it is, when that is JSON', () => {
    expect(sentBy('raw', [{ method: 'POST', path: '/api', body: '{"a":1}' }])).toEqual({ a: 1 });
    expect(sentBy('raw', [{ method: 'POST', path: '/api', body: 'a=1' }])).toBeUndefined();
  });

  it.each([[undefined], ['false'], ['']])('is off with CF_TRACE=%s', (value) => {
    expect(traceSink({ CF_TRACE: value }, nobody)).toBeUndefined();
  });

  it('is written to the file that CF_TRACE names', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'kf-trace-'));
    const file = path.join(folder, 'trace.log');
    const sink = traceSink({ CF_TRACE: file }, nobody);
    sink?.('one');
    sink?.('two');
    expect(readFileSync(file, 'utf8')).toBe('one\ntwo\n');
    rmSync(folder, { recursive: true });
  });
});
