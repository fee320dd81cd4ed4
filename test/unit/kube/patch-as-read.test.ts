import { beforeEach, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { KfError } from '../../../src/lib/errors.ts';
import { patchAsRead } from '../../../src/lib/kube/patch-as-read.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const ns = 'space';
let cluster: MemoryCluster;
let app: Stored<CFApp>;

const make = (): Promise<Stored<CFApp>> =>
  cluster.create(kinds.app, {
    metadata: { name: 'app', namespace: ns },
    spec: { displayName: 'app', desiredState: 'STOPPED', lifecycle: { type: 'buildpack', data: { stack: '' } } },
  });

beforeEach(async () => {
  cluster = new MemoryCluster();
  app = await make();
});

const gone = (): KfError => new KfError('not-found', 'It was deleted meanwhile.');
const read = () => ({ type: kinds.app, object: app, gone });
const mark = (key: string) => ({ metadata: { annotations: { [key]: 'yes' } } });

it('the patch is computed again after changes by others', async () => {
  await cluster.mergePatch(kinds.app, ns, 'app', mark('theirs'));
  const seen: (string | undefined)[] = [];
  const { object, isWritten } = await patchAsRead(cluster, read(), (live) => {
    seen.push(live.metadata.annotations?.['theirs']);
    return mark('own');
  });
  expect(seen).toEqual([undefined, 'yes']);
  expect(isWritten).toBe(true);
  expect(object.metadata.annotations).toMatchObject({ theirs: 'yes', own: 'yes' });
});

it('nothing is written if there is nothing to do, and that is reported', async () => {
  expect(await patchAsRead(cluster, read(), () => undefined)).toEqual({ object: app, isWritten: false });
});

it('another object of the same name is not changed', async () => {
  await cluster.delete(kinds.app, ns, 'app');
  await expect(patchAsRead(cluster, read(), () => mark('own'))).rejects.toThrow();
  await make();
  await expect(patchAsRead(cluster, read(), () => mark('own'))).rejects.toThrow('It was deleted meanwhile.');
  expect(cluster.peek(kinds.app, ns, 'app')?.metadata.annotations).toBeUndefined();
});
