// Ready images: new, unchanged, replaced, scaled, and messages of failures.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/lib/api/object.ts';
import { countRequests } from '../support/audit.ts';
import { reportTime } from '../support/figures.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { privateRegistryUser } from '../../tools/cluster/addresses.ts';
import { untilQuotaHolds } from '../support/quota.ts';
import { applyAsAdmin } from '../support/members.ts';
import { until } from '../support/until.ts';

interface PodList {
  items: { metadata: { name: string; uid: string } }[];
}

const registry = process.env['KF_CLUSTER_NODE_REGISTRY'] ?? '';
const sample = (version: number): string => `${registry}/kf/sample:${version}`;
let kf: Kf;

/** Like the first command of a pipeline: nothing is cached, and requests are counted in this state. */
beforeAll(async () => {
  kf = await Kf.create();
});
afterAll(async () => {
  for (const app of ['image-app', 'bound-app']) await kf.run(['delete', app, '-r', '-f']);
  await kf.remove();
});

const podsOf = async (guid: string): Promise<string[]> => {
  const list = await kubectlJson<PodList>(
    'get',
    'pods',
    '-n',
    ringEnv('KF_TEST_SPACE_GUID'),
    '-l',
    `korifi.cloudfoundry.org/app-guid=${guid}`,
  );
  return list.items.map((pod) => pod.metadata.uid).sort();
};

interface PushResult {
  apps: { guid: string; name: string; unchanged: boolean; layerBytesSent: number }[];
}

describe('push of a ready image', () => {
  let guid = '';

  test('a new app answers on its URL', async () => {
    const push = () => kf.json<PushResult>('push', 'image-app', '-o', sample(1), '-m', '128M');
    const { result, requests } = await countRequests(push);
    guid = result.apps[0]?.guid ?? '';
    expect((await get('image-app.apps.localhost')).status).toBe(200);
    expect(requests.api).toBeGreaterThan(5);
    expect(requests.api).toBeLessThanOrEqual(25);
  });

  test('an unchanged push starts no new pod', async () => {
    const before = await podsOf(guid);
    const push = () => kf.json<PushResult>('push', 'image-app', '-o', sample(1), '-m', '128M');
    const { result, requests } = await countRequests(push);
    expect(result.apps[0]?.unchanged).toBe(true);
    expect(await podsOf(guid)).toEqual(before);
    expect(requests.api).toBeLessThanOrEqual(12);
  });

  test('another image replaces it without a failed request', async () => {
    const first = (await get('image-app.apps.localhost')).body;
    const statuses: number[] = [];
    let probing = true;
    const probe = (async () => {
      while (probing)
        statuses.push(
          await get('image-app.apps.localhost').then(
            (answer) => answer.status,
            () => 0,
          ),
        );
    })();
    await kf.ok('push', 'image-app', '-o', sample(2), '-m', '128M');
    await until('the new version to answer', async () => (await get('image-app.apps.localhost')).body !== first);
    await until('the old pod to go', async () => (await podsOf(guid)).length === 1);
    probing = false;
    await probe;
    expect(statuses.length).toBeGreaterThan(20);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
  });

  test('a rollback returns to the first image without a push, and the next one to the second', async () => {
    const revisions = async (): Promise<{ version: number; deployed: boolean; deployable: boolean; description: string }[]> =>
      kf.json('revisions', 'image-app');
    expect(await revisions()).toMatchObject([
      { version: 2, deployed: true, deployable: true, description: 'New droplet deployed.' },
      { version: 1, deployed: false, deployable: true, description: 'Initial revision.' },
    ]);
    const second = (await get('image-app.apps.localhost')).body;
    const ran = await kf.ok('rollback', 'image-app', '--version', '1', '-f');
    reportTime('a rollback', ran.milliseconds);
    await until('the first version to answer', async () => (await get('image-app.apps.localhost')).body !== second);
    expect((await revisions())[0]).toMatchObject({
      version: 3,
      deployed: true,
      description: 'New droplet deployed. Rolled back to revision 1.',
    });
    await kf.ok('rollback', 'image-app', '--version', '2', '-f');
    await until('the second version to answer', async () => (await get('image-app.apps.localhost')).body === second);
    await until('the other pods to go', async () => (await podsOf(guid)).length === 1);
  });

  test('scale gives three instances that are all ready', async () => {
    await kf.ok('scale', 'image-app', '-i', '3');
    expect(await podsOf(guid)).toHaveLength(3);
    const app = await kf.json<{ processes: { type: string; running: number; instances: number }[] }>('app', 'image-app');
    expect(app.processes.find((process) => process.type === 'web')).toMatchObject({ running: 3, instances: 3 });
  });
});

describe('an image of a registry that asks for a password', () => {
  const image = `${ringEnv('KF_CLUSTER_PRIVATE_REGISTRY')}/kf/sample:1`;
  const push = (password: string, ...flags: string[]) =>
    kf.run(['push', 'private-app', '-o', image, '-m', '64M', ...flags], { env: { CF_DOCKER_PASSWORD: password } });
  afterAll(() => kf.run(['delete', 'private-app', '-r', '-f']));

  test('is not read without a user or with a wrong password, and the push says how to give them', async () => {
    const without = await push('');
    expect(without.code).toBe(1);
    expect(without.stderr).toContain(`No credential is configured for '${ringEnv('KF_CLUSTER_PRIVATE_REGISTRY')}'.`);
    expect(without.stderr).toContain('If the registry asks for a user, push with --docker-username USER and set CF_DOCKER_PASSWORD.');
    const wrong = await push('wrong-password', '--docker-username', privateRegistryUser.name);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toMatch(/credential that was sent: user and password of Secret '[^']+-image-pull'\./);
    expect(wrong.stderr).toContain('Check the user (--docker-username) and the password (CF_DOCKER_PASSWORD).');
    expect(wrong.stdout + wrong.stderr).not.toContain('wrong-password');
  });

  test('is run by a kubelet that could not read the password at its first try', async () => {
    const space = ringEnv('KF_TEST_SPACE_GUID');
    const prepared = await push(privateRegistryUser.password, '--docker-username', privateRegistryUser.name, '-i', '0');
    expect([prepared.code, prepared.stderr.slice(0, 500)]).toEqual([0, expect.any(String)]);
    await kf.ok('stop', 'private-app');
    await kf.ok('scale', 'private-app', '-i', '1');
    const guid = (await kf.ok('app', 'private-app', '--guid')).stdout.trim();
    const secret = await kubectlJson<KubeObject>('get', 'secret', '-n', space, `${guid}-image-pull`);
    await kubectl('delete', 'secret', '-n', space, `${guid}-image-pull`);
    const starting = kf.run(['start', 'private-app']);
    const said = ['get', 'pods', '-n', space, '-l', `korifi.cloudfoundry.org/app-guid=${guid}`, '-o', 'jsonpath={..state.waiting.message}'];
    await until('a try without the password', async () => (await kubectl(...said)).includes('no basic auth credentials'));
    const { name, namespace, labels, ownerReferences } = secret.metadata;
    await applyAsAdmin({ ...secret, metadata: { name, namespace, labels, ownerReferences } });
    const started = await starting;
    expect([started.code, started.stderr.slice(0, 1_000)]).toEqual([0, expect.any(String)]);
    expect((await get('private-app.apps.localhost')).status).toBe(200);
    await kf.ok('delete', 'private-app', '-r', '-f');
  });

  test('is read and run with the user and the password, which is in a Secret that goes with the app', async () => {
    const ran = await push(privateRegistryUser.password, '--docker-username', privateRegistryUser.name, '-v');
    expect([ran.code, ran.stderr.slice(0, 500)]).toEqual([0, expect.any(String)]);
    expect(ran.stdout + ran.stderr).not.toContain(privateRegistryUser.password);
    expect((await get('private-app.apps.localhost')).status).toBe(200);
    const guid = (await kf.ok('app', 'private-app', '--guid')).stdout.trim();
    const space = ringEnv('KF_TEST_SPACE_GUID');
    const selector = `korifi.cloudfoundry.org/app-guid=${guid}`;
    const { items } = await kubectlJson<{ items: { spec: { imagePullSecrets: { name: string }[] } }[] }>(
      ...['get', 'pods', '-n', space, '-l', selector],
    );
    expect(items[0]?.spec.imagePullSecrets).toEqual([{ name: `${guid}-image-pull` }]);
    await kf.ok('delete', 'private-app', '-r', '-f');
    await until('no Secret', async () => !(await kubectl('get', 'secrets', '-n', space, '-o', 'name')).includes(`${guid}-image-pull`));
  });
});

describe('a push that fails shows the cause, and the old version still serves', () => {
  test('if the app exits: the exit code and its last line', async () => {
    const ran = await kf.run(['push', 'image-app', '-o', `${registry}/kf/crash:1`]);
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(/FAILED\n$/);
    expect(ran.stderr).toContain('Start unsuccessful: The app ended with exit code 1.\n   cannot start: no database named "orders"\n');
    expect((await get('image-app.apps.localhost')).status).toBe(200);
  });

  test('if the image does not exist', async () => {
    const ran = await kf.run(['push', 'nowhere', '-o', `${registry}/kf/nowhere:1`, '--json']);
    expect(ran.code).toBe(1);
    const { error } = JSON.parse(ran.stdout) as { error: { code: string; message: string } };
    expect(error.code).toBe('build');
    expect(error.message).toContain('kf/nowhere');
  });

  test('if the app listens on the wrong port', async () => {
    const ran = await kf.run(['push', 'wrong-port', '-o', `${registry}/kf/wrongport:1`, '-t', '10', '--json']);
    expect(ran.code).toBe(1);
    const { error } = JSON.parse(ran.stdout) as { error: { message: string; details: { cause: string } } };
    expect(error.details.cause).toBe('wrong-port');
    expect(error.message).toMatch(/ did not answer on port 8080 .*\b9999\b/);
  });

  test('if it needs more memory than any node has', async () => {
    const space = ringEnv('KF_TEST_SPACE_GUID');
    const allow = async (memory: string): Promise<void> => {
      const patch = JSON.stringify({ spec: { hard: { 'requests.memory': memory } } });
      await kubectl('patch', 'resourcequota', 'kf-limits', '-n', space, '--type=merge', '-p', patch);
      await untilQuotaHolds(space, 'kf-limits');
    };
    const refused = await kf.run(['push', 'too-large', '-o', sample(1), '-m', '100G']);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('memory')]);
    // The operator can raise the limits of the space, but not the capacity of the nodes.
    await allow('200Gi');
    const ran = await kf.run(['push', 'too-large', '-o', sample(1), '-m', '100G']).finally(() => allow('16Gi'));
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/[Ii]nsufficient memory/);
    reportTime('an app larger than every node is refused', ran.milliseconds);
  });

  test('a URL whose name another app has can be used once that app is gone', async () => {
    for (const name of ['nowhere', 'wrong-port', 'too-large']) await kf.ok('delete', name, '-r', '-f');
    const left = await kf.json<{ apps: { name: string }[] }>('apps').then((result) => JSON.stringify(result));
    expect(left).not.toContain('too-large');
  });
});

test('a push of the same image after set-env and bind-service has both, one after rename-service has the new name, and one after unset-env and unbind-service has neither', async () => {
  const seen = async (): Promise<unknown> => {
    const env = JSON.parse((await get('bound-app.apps.localhost', '/env')).body) as Record<string, string>;
    return [env['COLOUR'], env['VCAP_SERVICES']?.includes('"bound-db"')];
  };
  const push = () => kf.ok('push', 'bound-app', '-o', sample(1), '-m', '64M');
  await push();
  await kf.ok('cups', 'bound-db', '-p', '{"uri":"db"}');
  await kf.ok('set-env', 'bound-app', 'COLOUR', 'red');
  await kf.ok('bind-service', 'bound-app', 'bound-db');
  await push();
  expect(await seen()).toEqual(['red', true]);
  await kf.ok('rename-service', 'bound-db', 'renamed-db');
  await push();
  expect(await seen()).toEqual(['red', false]);
  await kf.ok('rename-service', 'renamed-db', 'bound-db');
  await kf.ok('unset-env', 'bound-app', 'COLOUR');
  await kf.ok('unbind-service', 'bound-app', 'bound-db');
  // At once: versions of before still end.
  await push();
  expect(await seen()).toEqual([undefined, false]);
  await kf.ok('delete-service', 'bound-db', '-f');
});
