import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { traced, traceSink } from '../../../src/lib/session/trace.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const nobody = { print: () => undefined, warn: () => undefined };

describe('a trace', () => {
  it('has a line per request with its end, and no data of a Secret', async () => {
    const lines: string[] = [];
    const cluster = traced(new MemoryCluster(), (line) => lines.push(line));
    await cluster.list(kinds.app, { ns: 'space' });
    await cluster.create(secretType, { metadata: { name: 'key', namespace: 'space' }, data: { password: 'c2VjcmV0' } });
    await cluster.mergePatch(kinds.app, 'space', 'gone', {}).catch(() => undefined);
    expect(lines.map((line) => line.replace(/\d+ ms$/, 'N ms'))).toEqual([
      'list korifi.cloudfoundry.org/v1alpha1 cfapps space: done, N ms',
      'create v1 secrets space key: done, N ms',
      'mergePatch korifi.cloudfoundry.org/v1alpha1 cfapps space gone: Error from Kubernetes: cfapps "gone" not found, N ms',
    ]);
    expect(lines.join()).not.toContain('c2VjcmV0');
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
