import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, finalizers, kinds, labels } from '../../../src/lib/api/group.ts';
import { buildAppBinding, buildCredentialsSecret, buildUserProvidedInstance } from '../../../src/templates/service.ts';
import { app, startScene } from './build-scene.ts';
import type { BuildScene } from './build-scene.ts';
import { settled } from './settled.ts';

const author = { changedBy: 'alice', now: new Date() };

describe('user-provided services', () => {
  let scene: BuildScene;
  beforeEach(async () => void (scene = await startScene()));
  afterEach(() => scene.stop());
  const instanceReady = (name = 'i-1') => scene.condition(kinds.serviceInstance, 's-1', name, 'Ready');
  const bindingReady = (name = 'b-1') => scene.condition(kinds.serviceBinding, 's-1', name, 'Ready');
  const makeInstance = async (credentials: Record<string, unknown>, guid = 'i-1', displayName = 'db') => {
    const made = await scene.cluster.create(
      kinds.serviceInstance,
      buildUserProvidedInstance({ guid, namespace: 's-1', displayName, secretName: `${guid}-c` }, author),
    );
    await scene.cluster.create(secretType, buildCredentialsSecret(made, credentials, author));
    return made;
  };
  const bind = async (guid = 'b-1', displayName?: string) => {
    const owner = scene.cluster.peek(kinds.app, 's-1', 'a-1') ?? (await scene.cluster.create(kinds.app, app('a-1')));
    const instance = scene.cluster.peek(kinds.serviceInstance, 's-1', 'i-1');
    if (instance === undefined) throw new Error('There is no instance to bind.');
    await scene.cluster.create(kinds.serviceBinding, buildAppBinding({ guid, app: owner, instance, displayName }, author));
  };
  const mounted = (name = 'b-1') => {
    const secret = scene.cluster.peek(secretType, 's-1', name);
    const texts = Object.entries(secret?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]);
    return { type: secret?.type, ...Object.fromEntries(texts) } as Record<string, unknown>;
  };

  test('an instance is ready with its credentials, and its status has their version', async () => {
    await makeInstance({ uri: 'x://y' });
    await scene.until(() => expect(instanceReady()?.status).toBe('True'));
    const version = scene.cluster.peek(secretType, 's-1', 'i-1-c')?.metadata.resourceVersion;
    expect(scene.cluster.peek(kinds.serviceInstance, 's-1', 'i-1')?.status).toMatchObject({
      credentials: { name: 'i-1-c' },
      credentialsObservedVersion: version,
      lastOperation: { type: 'create', state: 'succeeded' },
    });
  });

  test('an instance waits for its Secret, and one that is not a JSON object is refused', async () => {
    await scene.cluster.create(
      kinds.serviceInstance,
      buildUserProvidedInstance({ guid: 'i-1', namespace: 's-1', displayName: 'db', secretName: 'c' }, author),
    );
    await scene.until(() => expect(instanceReady()).toMatchObject({ status: 'False', reason: 'CredentialsSecretNotAvailable' }));
    await scene.cluster.create(secretType, {
      metadata: { name: 'c', namespace: 's-1' },
      data: { credentials: Buffer.from('[1]').toString('base64') },
    });
    await scene.until(() =>
      expect(instanceReady()).toMatchObject({
        reason: 'SecretInvalid',
        message: "The Secret 'c' holds no JSON object under the key 'credentials'.",
      }),
    );
    expect(scene.cluster.peek(kinds.serviceInstance, 's-1', 'i-1')?.status?.lastOperation).toMatchObject({ state: 'failed' });
  });

  test('of two instances with one name the second is not effective, and case counts in names', async () => {
    await makeInstance({}, 'i-1', 'db');
    await scene.until(() => expect(instanceReady()?.status).toBe('True'));
    await makeInstance({}, 'i-2', 'db');
    await makeInstance({}, 'i-3', 'DB');
    await scene.until(() => expect([instanceReady('i-2')?.reason, instanceReady('i-3')?.status]).toEqual(['DuplicateName', 'True']));
  });

  test('a binding becomes a Secret that servicebinding.io tools can mount', async () => {
    await makeInstance({ uri: 'x://y', port: 5432, deep: { a: [1] }, 'no key!': 'x', type: 'postgresql' });
    await bind();
    await scene.until(() => expect(bindingReady()?.status).toBe('True'));
    expect(mounted()).toEqual({ type: 'postgresql', uri: 'x://y', port: '5432', deep: '{"a":[1]}' });
    expect(scene.cluster.peek(secretType, 's-1', 'b-1')?.type).toBe('servicebinding.io/postgresql');
    const live = scene.cluster.peek(kinds.serviceBinding, 's-1', 'b-1');
    expect(live?.status).toMatchObject({ envSecretRef: { name: 'i-1-c' }, mountSecretRef: { name: 'b-1' } });
    expect(live?.metadata.annotations?.['korifi.cloudfoundry.org/service-instance-type']).toBe('user-provided');
  });

  test('a binding follows new credentials, also if they change its type', async () => {
    await makeInstance({ uri: 'old' });
    await bind();
    await scene.until(() => expect([mounted()['uri'], bindingReady()?.status]).toEqual(['old', 'True']));
    const seen = (): string | undefined =>
      scene.cluster.peek(kinds.serviceBinding, 's-1', 'b-1')?.metadata.annotations?.[annotations.instanceVersion];
    const credentials = Buffer.from(JSON.stringify({ host: 'new', type: 'redis' })).toString('base64');
    await scene.cluster.mergePatch(secretType, 's-1', 'i-1-c', { data: { credentials } });
    const before = seen();
    await scene.until(() => expect(mounted()).toEqual({ type: 'redis', host: 'new' }));
    // It decides whether two builds are equal.
    const version = scene.cluster.peek(secretType, 's-1', 'i-1-c')?.metadata.resourceVersion ?? '';
    await scene.until(() => expect(seen()).toBe(`${version}/1`));
    expect(before).toMatch(/^\d+\/1$/);
    expect(before).not.toBe(seen());
    expect(scene.cluster.peek(secretType, 's-1', 'b-1')?.type).toBe('servicebinding.io/redis');
  });

  const follow = (secretName: string) =>
    scene.cluster.create(
      kinds.serviceInstance,
      buildUserProvidedInstance({ guid: 'i-1', namespace: 's-1', displayName: 'db', secretName, isFollowed: true }, author),
    );
  const base64 = (value: string | Buffer): string => Buffer.from(value).toString('base64');

  test('an instance follows a Secret that something else maintains: each key is a credential', async () => {
    const keyStore = Buffer.from([0xfe, 0xed, 0xfe, 0xed]);
    await follow('db-app');
    await scene.until(() =>
      expect(instanceReady()).toMatchObject({
        reason: 'CredentialsSecretNotAvailable',
        message: "The Secret 'db-app' with the credentials does not exist in namespace s-1.",
      }),
    );
    const metadata = { name: 'db-app', namespace: 's-1' };
    const data = { password: base64('one'), uri: base64('postgres://one'), 'store.jks': base64(keyStore) };
    await scene.cluster.create(secretType, { metadata, type: 'servicebinding.io/postgresql', data });
    await bind();
    await scene.until(() => expect(bindingReady()?.status).toBe('True'));
    expect(mounted()).toMatchObject({ type: 'postgresql', password: 'one', uri: 'postgres://one' });
    expect(scene.cluster.peek(secretType, 's-1', 'b-1')?.data?.['store.jks']).toBe(base64(keyStore));
    await scene.cluster.mergePatch(secretType, 's-1', 'db-app', { data: { password: base64('two'), uri: null } });
    await scene.until(() => expect(mounted()).toMatchObject({ password: 'two' }));
    expect(mounted()).not.toHaveProperty('uri');
    await scene.cluster.delete(secretType, 's-1', 'db-app');
    const gone = {
      type: 'update',
      state: 'failed',
      description: "The Secret 'db-app' with the credentials does not exist in namespace s-1.",
    };
    await scene.until(() => expect(scene.cluster.peek(kinds.serviceInstance, 's-1', 'i-1')?.status?.lastOperation).toEqual(gone));
    // The last credentials stay where apps and their next instances find them.
    expect(mounted()).toMatchObject({ password: 'two' });
  });

  test.each([
    ["The Secret 's' is one of kf's own, and no service can have it.", { labels: { [labels.managedBy]: 'kf' } }, 'Opaque'],
    [
      "The Secret 's' is one of kf's own, and no service can have it.",
      { ownerReferences: [{ apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFApp', name: 'a', uid: 'u' }] },
      'Opaque',
    ],
    ["The Secret 's' has the type 'kubernetes.io/dockerconfigjson', and no service can have it.", {}, 'kubernetes.io/dockerconfigjson'],
    [
      "The Secret 's' has the type 'kubernetes.io/service-account-token', and no service can have it.",
      {},
      'kubernetes.io/service-account-token',
    ],
  ])('an instance that follows a Secret of others is refused: %s', async (message, metadata, type) => {
    await scene.cluster.create(secretType, {
      metadata: { name: 's', namespace: 's-1', ...metadata },
      type,
      data: { password: base64('x') },
    });
    await follow('s');
    await bind();
    const refused = { status: 'False', reason: 'SecretInvalid', message };
    await scene.until(() => expect([instanceReady(), bindingReady()]).toMatchObject([refused, refused]));
    expect(scene.cluster.peek(secretType, 's-1', 'b-1')).toBeUndefined();
  });

  test('a deleted mount Secret is made again, and is deleted with its binding and that with its app', async () => {
    await makeInstance({ uri: 'x' });
    await bind();
    await scene.until(() => expect(bindingReady()?.status).toBe('True'));
    await scene.cluster.delete(secretType, 's-1', 'b-1');
    await scene.until(() => expect(scene.cluster.peek(secretType, 's-1', 'b-1')).toBeDefined());
    await scene.cluster.delete(kinds.app, 's-1', 'a-1');
    expect([scene.cluster.peek(kinds.serviceBinding, 's-1', 'b-1'), scene.cluster.peek(secretType, 's-1', 'b-1')]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test('a second binding of the same app and instance is refused unless it has its own name', async () => {
    await makeInstance({ uri: 'x' });
    await bind('b-1');
    await scene.until(() => expect(bindingReady('b-1')?.status).toBe('True'));
    await bind('b-2');
    await bind('b-3', 'other');
    await scene.until(() => expect([bindingReady('b-2')?.reason, bindingReady('b-3')?.status]).toEqual(['DuplicateName', 'True']));
    expect(scene.cluster.peek(secretType, 's-1', 'b-2')).toBeUndefined();
  });

  test('a second binding of an app with one name is refused, whatever its instance', async () => {
    await makeInstance({ uri: 'x' });
    const other = await makeInstance({ uri: 'y' }, 'i-2', 'other');
    await bind('b-1', 'shared');
    await scene.until(() => expect(bindingReady('b-1')?.status).toBe('True'));
    const owner = scene.cluster.peek(kinds.app, 's-1', 'a-1');
    if (owner === undefined) throw new Error('There is no app.');
    const second = buildAppBinding({ guid: 'b-2', app: owner, instance: other, displayName: 'shared' }, author);
    await scene.cluster.create(kinds.serviceBinding, second);
    const message = expect.stringContaining(
      'Service binding already exists: shared. Each binding of an app needs a name of its own.',
    ) as string;
    await scene.until(() => expect(bindingReady('b-2')).toMatchObject({ status: 'False', reason: 'DuplicateName', message }));
    expect(scene.cluster.peek(secretType, 's-1', 'b-2')).toBeUndefined();
    // The name is free as soon as its owner is gone.
    await scene.cluster.delete(kinds.serviceBinding, 's-1', 'b-1');
    await scene.until(() => expect(bindingReady('b-2')?.status).toBe('True'));
  });

  test('a binding to an instance of another space gets nothing', async () => {
    await makeInstance({ uri: 'geheim' });
    const binding = {
      metadata: { name: 'b-9', namespace: 's-2' },
      spec: { type: 'app', appRef: { name: 'a' }, parameters: {}, service: { kind: 'CFServiceInstance', name: 'i-1', namespace: 's-1' } },
    } as const;
    await scene.cluster.create(kinds.serviceBinding, structuredClone(binding) as never);
    await scene.until(() =>
      expect(scene.condition(kinds.serviceBinding, 's-2', 'b-9', 'Ready')).toMatchObject({
        status: 'False',
        reason: 'ServiceInstanceNotFound',
      }),
    );
    expect(scene.cluster.peek(secretType, 's-2', 'b-9')).toBeUndefined();
  });

  /** The instance of the binding is gone, and the controller looks at the binding again when so much time has passed. */
  const loseInstance = async (ms: number): Promise<void> => {
    await scene.cluster.delete(kinds.serviceInstance, 's-1', 'i-1');
    await scene.until(() => expect(bindingReady()?.reason).toBe('ServiceInstanceNotFound'));
    scene.pass(ms);
    await scene.cluster.mergePatch(kinds.serviceBinding, 's-1', 'b-1', { metadata: { annotations: { looked: 'again' } } });
  };

  test('a binding that was ready is deleted when its instance is gone', async () => {
    await makeInstance({ uri: 'x' });
    await bind();
    await scene.until(() => expect(bindingReady()?.status).toBe('True'));
    await loseInstance(60_000);
    await scene.until(() => expect(scene.cluster.peek(kinds.serviceBinding, 's-1', 'b-1')).toBeUndefined());
  });

  test('a binding whose instance is there again when the API server is asked stays', async () => {
    await makeInstance({ uri: 'x' });
    await bind();
    await scene.until(() => expect(bindingReady()?.status).toBe('True'));
    const { intercept } = scene.cluster;
    let asked = 0;
    scene.cluster.intercept = async (verb, type, name) => {
      if (verb !== 'get' || type.plural !== kinds.serviceInstance.plural) return intercept(verb, type, name);
      asked += 1;
      if (scene.cluster.peek(kinds.serviceInstance, 's-1', 'i-1') === undefined) await makeInstance({ uri: 'x' });
    };
    await loseInstance(60_000);
    await scene.until(() => expect([asked > 0, bindingReady()?.status]).toEqual([true, 'True']));
  });

  test('a binding stays while its instance is replaced, each time', async () => {
    await makeInstance({ uri: 'x' });
    await bind();
    await scene.until(() => expect(bindingReady()?.status).toBe('True'));
    const uid = () => scene.cluster.peek(kinds.serviceBinding, 's-1', 'b-1')?.metadata.uid;
    const before = uid();
    for (let replacements = 0; replacements < 2; replacements += 1) {
      await loseInstance(40_000);
      await settled(scene.cluster);
      expect(bindingReady()?.reason).toBe('ServiceInstanceNotFound');
      await makeInstance({ uri: 'x' });
      await scene.until(() => expect(bindingReady()?.status).toBe('True'));
    }
    expect(uid()).toBe(before);
  });

  test('a binding that was made before its instance waits for it', async () => {
    const instance = await makeInstance({ uri: 'x' });
    await scene.cluster.delete(kinds.serviceInstance, 's-1', 'i-1');
    const owner = await scene.cluster.create(kinds.app, app('a-1'));
    await scene.cluster.create(
      kinds.serviceBinding,
      buildAppBinding({ guid: 'b-1', app: owner, instance, displayName: undefined }, author),
    );
    await scene.until(() => expect(bindingReady()?.reason).toBe('ServiceInstanceNotFound'));
    await makeInstance({ uri: 'x' });
    await scene.until(() => expect(bindingReady()?.status).toBe('True'));
  });

  test('objects with finalizers of brokers can be deleted', async () => {
    const made = await makeInstance({});
    await scene.cluster.mergePatch(kinds.serviceInstance, 's-1', 'i-1', {
      metadata: { uid: made.metadata.uid, finalizers: [finalizers.serviceInstance] },
    });
    await scene.until(() => expect(scene.cluster.peek(kinds.serviceInstance, 's-1', 'i-1')?.metadata).not.toHaveProperty('finalizers'));
  });

  test('a managed instance gets a message that there is no broker', async () => {
    const instance = buildUserProvidedInstance({ guid: 'm', namespace: 's-1', displayName: 'm', secretName: '' }, author);
    await scene.cluster.create(kinds.serviceInstance, { ...instance, spec: { ...instance.spec, type: 'managed' } });
    await scene.until(() => expect(instanceReady('m')).toMatchObject({ status: 'False', reason: 'ManagedServicesUnavailable' }));
  });
});
