// VCAP_SERVICES of an app, whole, for each shape that a binding can have.

import { expect, test } from 'vitest';
import { ensureVcapSecrets } from '../../../src/controller/apps/vcap.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { secretType, type Secret } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp, CFServiceBinding, CFServiceInstance } from '../../../src/lib/api/types.generated.ts';
import { buildAppBinding, buildCredentialsSecret, buildUserProvidedInstance } from '../../../src/templates/service.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { emptyStores } from './stores.ts';

const author = { changedBy: 'alice', now: new Date('2030-01-01') };
const namespace = 'space-guid';
const app = { metadata: { name: 'app-guid', namespace, uid: 'u', resourceVersion: '1' }, spec: { displayName: 'shop' } } as Stored<CFApp>;

interface Shape {
  credentials?: Record<string, unknown>;
  /** The Secret of a database operator, which the instance follows. */
  followed?: Pick<Secret, 'type' | 'data'>;
  instance?: Partial<CFServiceInstance['spec']>;
  bindingName?: string;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

const shapes: Record<string, Shape[]> = {
  'user-provided': [{ credentials: { uri: 'postgres://user:secret@db.example.com:5432/shop', port: 5432 } }],
  'with-binding-name': [{ credentials: { uri: 'amqp://queue.example.com' }, bindingName: 'queue' }],
  'with-tags-and-drain': [{ instance: { tags: ['postgres', 'sql'], syslogDrainUrl: 'syslog-tls://logs.example.com:6514' } }],
  'with-label': [{ credentials: { host: 'cache.example.com' }, instance: { serviceLabel: 'redis', tags: ['key-value'] } }],
  'with-nested-credentials': [{ credentials: { hosts: ['a', 'b'], tls: { ca: 'x', verify: true }, retries: null } }],
  'from-secret': [
    {
      followed: {
        type: 'servicebinding.io/postgresql',
        data: { username: base64('shop'), password: base64('s3cret'), keystore: Buffer.from([0xfe, 0xed, 0xff]).toString('base64') },
      },
    },
  ],
  several: [
    { credentials: { uri: 'smtp://mail.example.com' } },
    { credentials: { uri: 'redis://cache' }, instance: { serviceLabel: 'redis' } },
    { credentials: {} },
  ],
  none: [],
};

const stored = <T>(object: T, name: string): Stored<T & { metadata: object }> => {
  const { metadata } = object as { metadata: object };
  return { ...object, metadata: { ...metadata, uid: name, resourceVersion: '1' } } as unknown as Stored<T & { metadata: object }>;
};

/** What the controller writes into the Secret of an app that is bound to these instances. */
async function written(bound: readonly Shape[], cluster = new MemoryCluster()): Promise<Record<string, string>> {
  const stores = emptyStores();
  const bindings: Stored<CFServiceBinding>[] = [];
  for (const [at, { credentials = {}, followed, instance: fields = {}, bindingName }] of bound.entries()) {
    const guid = `instance-${at + 1}`;
    const secretName = `${guid}-credentials`;
    const input = { guid, namespace, displayName: `service-${at + 1}`, secretName, isFollowed: followed !== undefined };
    const built = buildUserProvidedInstance(input, author);
    const instance = stored<CFServiceInstance>({ ...built, spec: { ...built.spec, ...fields } }, guid);
    stores.put(kinds.serviceInstance, instance);
    const secret =
      followed === undefined
        ? buildCredentialsSecret(instance, credentials, author)
        : { ...followed, metadata: { name: secretName, namespace } };
    await cluster.create(secretType, secret);
    const binding = buildAppBinding({ guid: `binding-${at + 1}`, app, instance, displayName: bindingName }, author);
    bindings.push(stored<CFServiceBinding>({ ...binding, status: { envSecretRef: { name: secretName } } }, `binding-${at + 1}`));
  }
  const processDefaults = { memoryMB: 256, diskQuotaMB: 1024 };
  const info = () => ({ root: 'cf', processDefaults });
  const context = { cluster, stores, memory: new Memory(), info, now: () => 0 } as unknown as Context;
  await ensureVcapSecrets(context, app, bindings);
  const secret = await cluster.get(secretType, namespace, 'app-guid-vcap-services');
  return Object.fromEntries(Object.entries(secret?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
}

test.each(Object.entries(shapes))('VCAP_SERVICES is exact: %s', async (name, bound) => {
  const { VCAP_SERVICES: text = '' } = await written(bound);
  expect(text).toBe(JSON.stringify(JSON.parse(text)));
  await expect(`${JSON.stringify(JSON.parse(text), null, 2)}\n`).toMatchFileSnapshot(`../../golden/vcap-services/${name}.json`);
});

test('a Secret that a member wrote and froze is replaced', async () => {
  const cluster = new MemoryCluster();
  const metadata = { name: 'app-guid-vcap-services', namespace };
  await cluster.create(secretType, { metadata, immutable: true, data: { VCAP_SERVICES: base64('garbage') } });
  expect((await written([], cluster))['VCAP_SERVICES']).toBe('{}');
  expect((await cluster.get(secretType, namespace, metadata.name))?.immutable).toBeUndefined();
});

test('the URL of the first database is beside it for tasks, and gone with its service', async () => {
  const cluster = new MemoryCluster();
  const database: Shape = { credentials: { uri: 'mysql://user:secret@db.example.com/shop' } };
  const urls = async (...bound: Shape[]) => (await written(bound, cluster))['DATABASE_URL'];
  expect(await urls({ credentials: { uri: 'smtp://mail' } }, database)).toBe('mysql2://user:secret@db.example.com/shop');
  await cluster.delete(secretType, namespace, 'instance-1-credentials');
  expect(await urls({ credentials: { uri: 'smtp://mail' } })).toBeUndefined();
});
