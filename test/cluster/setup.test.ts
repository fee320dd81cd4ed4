// kf setup on a real cluster: its duration, no changes in a second run, and the separation of spaces in the registry.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { rootCertificates } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { feed } from '../support/feed.ts';
import { getSecurely } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';

const execute = promisify(execFile);

interface SetupResult {
  created: number;
  changed: number;
  unchanged: number;
  requests: { cpuMilli: number; memoryMiB: number };
  reach: { reachable: boolean; url: string; https?: { reachable: boolean; url: string } };
}

interface ObjectList {
  items: {
    kind: string;
    metadata: { name: string; namespace?: string; resourceVersion: string; generation?: number; labels?: object; annotations?: object };
  }[];
}

let admin: Kf;

beforeAll(async () => {
  admin = await Kf.create('admin');
  // The controller has to read the builder's image first; its writes about it do not belong to a second setup.
  await kubectl('wait', '--for=condition=Ready', 'builderinfos', '--all', '-n', 'cf', '--timeout=120s');
});
afterAll(async () => {
  await admin.remove();
});

const kindsOfSetup = [
  'crds,namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings',
  'mutatingadmissionpolicies,mutatingadmissionpolicybindings',
  'deployments,services,configmaps,secrets,serviceaccounts,persistentvolumeclaims,roles,rolebindings',
  'networkpolicies,gatewayclasses,gateways,httproutes,referencegrants,cfdomains,cforgs,cfspaces,builderinfos,runnerinfos',
].join(',');
/** Version of every declared object: its generation where the API server counts that, because other programs write the status. */
async function versions(): Promise<Record<string, string>> {
  const { items } = await kubectlJson<ObjectList>('get', kindsOfSetup, '-A', '-l', 'kf.cloudfoundry.org/part-of=setup');
  const version = ({ metadata: { resourceVersion, generation, labels, annotations } }: ObjectList['items'][number]): string =>
    generation === undefined ? resourceVersion : JSON.stringify({ generation, labels, annotations });
  return Object.fromEntries(items.map((item) => [`${item.kind} ${item.metadata.namespace ?? ''}/${item.metadata.name}`, version(item)]));
}

describe('kf setup', () => {
  test('ends its first run with a request that the gateway answered, and requests few resources', async () => {
    const { result } = JSON.parse(await readFile(ringEnv('KF_TEST_SETUP_RESULT'), 'utf8')) as { result: SetupResult };
    expect(result.reach).toMatchObject({ reachable: true, https: { reachable: true, url: expect.stringMatching(/^https:/) as string } });
    expect(result.created).toBeGreaterThan(50);
    expect(result.requests.cpuMilli).toBeLessThanOrEqual(150);
    expect(result.requests.memoryMiB).toBeLessThanOrEqual(256);
  });

  test.each([
    ['with the file of the first', () => ['-f', ringEnv('KF_TEST_SETUP_FILE')], /^(?![^]*Settings that)/],
    ['without options', () => [], /^Settings that stay: .*gatewayPort.*images.*insecureRegistries.* \(others: kf setup -f FILE\)$/m],
  ] as const)('changes nothing in a second run %s, and says so', async (_, options, told) => {
    const before = await versions();
    const ran = await admin.ok('setup', ...options());
    expect(ran.stderr).toMatch(told);
    const [, seen] = /nothing to change: all (\d+) objects/.exec(ran.stdout) ?? [];
    // These are made once: setup does not look at their contents again.
    const keys = ['kf-registry-key', 'kf-ca', 'kf-gateway-tls'];
    expect(Object.keys(before)).toHaveLength(Number(seen) + keys.length);
    for (const key of keys) expect(before).toHaveProperty([`Secret kf-system/${key}`]);
    expect(await versions()).toEqual(before);
  });

  test('reads an installation without a record of its settings from its objects, and writes only the record', async () => {
    const record = 'ConfigMap kf-system/kf-setup';
    const { [record]: _, ...others } = await versions();
    await kubectl('delete', 'configmap', '-n', 'kf-system', 'kf-setup');
    const ran = await admin.ok('setup');
    expect(ran.stdout).toMatch(/changes: +1 of \d+ objects created, 0 changed/);
    // Not the port: setup uses 80 by default, and the ring's cluster has it if no other program does.
    expect(ran.stderr).toMatch(
      /^This installation has no record of its settings; these were read from its objects and stay: (?=.*images)(?=.*insecureRegistries)/m,
    );
    const { [record]: made, ...after } = await versions();
    expect(made).toBeDefined();
    expect(after).toEqual(others);
    await admin.ok('setup', '-f', ringEnv('KF_TEST_SETUP_FILE'));
  });

  test('makes the domain apps.internal, as an upgrade does when it is missing, unless its namespace is not for kf', async () => {
    const shown = async (): Promise<string | undefined> => /^apps\.internal .*$/m.exec((await admin.ok('domains')).stdout)?.[0];
    expect(await shown()).toMatch(/^apps\.internal +shared +true +http$/);
    await admin.ok('delete-shared-domain', 'apps.internal', '-f');
    await kubectl('wait', '--for=delete', 'namespace/internal', '--timeout=60s');
    await kubectl('create', 'namespace', 'internal');
    const without = await admin.ok('setup', '-f', ringEnv('KF_TEST_SETUP_FILE'));
    expect(without.stderr).toContain("The namespace 'internal' exists and is not kf's, so there is no domain apps.internal");
    expect(await shown()).toBeUndefined();
    await kubectl('delete', 'namespace', 'internal');
    const upgraded = await admin.ok('setup', '-f', ringEnv('KF_TEST_SETUP_FILE'));
    expect(upgraded.stdout).toMatch(/changes: +4 of \d+ objects created, 0 changed/);
    expect(await shown()).toMatch(/^apps\.internal +shared +true +http$/);
    expect(await kubectl('get', 'endpointslices', '-n', 'internal', '--as', 'system:serviceaccount:kf-system:kf-controller')).toBe('');
  });

  test('removes the rights that kf 0.1.0 gave the controller', async () => {
    for (const ns of ['cf', 'kf-system']) {
      await kubectl(
        'create',
        'rolebinding',
        'kf-controller-space',
        '-n',
        ns,
        '--clusterrole=view',
        '--serviceaccount=kf-system:kf-controller',
      );
      await kubectl('label', 'rolebinding', 'kf-controller-space', '-n', ns, 'kf.cloudfoundry.org/part-of=setup');
    }
    await admin.ok('setup', '-f', ringEnv('KF_TEST_SETUP_FILE'));
    for (const ns of ['cf', 'kf-system']) {
      const left = await kubectl('get', 'rolebindings', '-n', ns, '-o', 'name');
      expect(left).not.toContain('kf-controller-space');
      expect(left).toContain(ns === 'cf' ? 'kf-controller-root' : 'kf-controller-system');
    }
  });

  test('removes objects that an earlier kf left running, and names them', async () => {
    const label = 'kf.cloudfoundry.org/part-of=setup';
    await kubectl('create', 'deployment', 'kf-former', '-n', 'kf-system', '--image=none', '--replicas=0');
    await kubectl('create', 'service', 'clusterip', 'kf-former', '-n', 'kf-system', '--tcp=80');
    await kubectl('create', 'clusterrole', 'kf-former', '--verb=get', '--resource=pods');
    await kubectl('label', 'deployment,service', 'kf-former', '-n', 'kf-system', label);
    await kubectl('label', 'clusterrole', 'kf-former', label);
    const ran = await admin.ok('setup', '-f', ringEnv('KF_TEST_SETUP_FILE'));
    const names = 'ClusterRole kf-former, Deployment kf-system/kf-former, Service kf-system/kf-former';
    expect(ran.stdout).toMatch(new RegExp(`^to remove: +${names}$`, 'm'));
    expect(ran.stdout).toMatch(new RegExp(`^removed: +${names}$`, 'm'));
    expect(await kubectl('get', 'deployments,services', '-n', 'kf-system', '-o', 'name')).not.toContain('kf-former');
    expect(await kubectl('get', 'clusterroles', '-o', 'name')).not.toContain('kf-former');
  });

  test('with --dry-run prints objects that kubectl accepts, and writes nothing', async () => {
    const before = await versions();
    const { stdout } = await admin.ok('setup', '-f', ringEnv('KF_TEST_SETUP_FILE'), '--dry-run', '-o', 'yaml');
    const child = execute('kubectl', ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '-f', '-'], {
      env: { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') },
      maxBuffer: 64 * 1024 * 1024,
    });
    feed(child.child, stdout);
    expect((await child).stdout).toContain('deployment.apps/kf-controller serverside-applied (server dry run)');
    expect(await versions()).toEqual(before);
  });

  test('names an unknown key of the settings file and the known keys', async () => {
    const ran = await admin.run(['setup', '-f', 'package.json'], { cwd: process.cwd() });
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/unknown key 'name'/);
    expect(ran.stderr).toContain('gatewayExposure');
  });

  test('refuses a developer and names the missing right', async () => {
    const developer = await Kf.create('developer');
    const ran = await developer.run(['setup', '-f', ringEnv('KF_TEST_SETUP_FILE')]);
    await developer.remove();
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/the user ".*spacedeveloper.*" may not (get|list|create|patch) "[a-z.]+[a-z0-9.]*"/);
  });
});

describe('https', () => {
  const host = 'no-such-app.apps.localhost';

  test('answers every host of the default domain with a certificate of the authority that kf ca-certificate prints', async () => {
    const developer = await Kf.create('developer');
    const { stdout } = await developer.ok('ca-certificate');
    await developer.remove();
    const [with404, refused] = await Promise.all([
      getSecurely(host, { ca: stdout }),
      getSecurely(host, { ca: rootCertificates }).catch(String),
    ]);
    expect(with404).toMatchObject({ status: 404, body: expect.stringContaining(host) as string });
    expect(refused).toMatch(/unable to verify the first certificate|self-signed/);
  });

  test('has keys that no role of people can read, and a certificate that every user can', async () => {
    const account = ['--as', 'somebody', '--as-group', 'system:authenticated'];
    const may = (...args: string[]): Promise<string> =>
      execute('kubectl', ['auth', 'can-i', ...args], { env: { ...process.env, KUBECONFIG: ringEnv('KF_TEST_DEVELOPER') } }).then(
        ({ stdout }) => stdout.trim(),
        (error: { stdout: string }) => error.stdout.trim(),
      );
    for (const key of ['kf-ca', 'kf-gateway-tls']) {
      for (const verb of ['get', 'update', 'patch', 'delete']) expect(await may(verb, `secrets/${key}`, '-n', 'kf-system')).toBe('no');
    }
    expect(await may('list', 'secrets', '-n', 'kf-system')).toBe('no');
    expect(await may('patch', 'configmaps/kf-ca-certificate', '-n', 'cf')).toBe('no');
    const published = await kubectl('get', 'configmap', 'kf-ca-certificate', '-n', 'cf', '-o', 'jsonpath={.data}', ...account);
    expect(published).toContain('BEGIN CERTIFICATE');
    expect(published).not.toContain('PRIVATE KEY');
  });
});

describe('the registry separates spaces', () => {
  const gatePath = '/api/v1/namespaces/kf-system/services/http:kf-registry:5000/proxy';

  /** Status of a request at the push port through the API server's service proxy, by kubectl's own transport. */
  async function statusAt(urlPath: string, credential?: { username: string; password: string }): Promise<number> {
    const proxy = execFile('kubectl', ['proxy', '--port=0', '--disable-filter=true'], {
      env: { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') },
    });
    const port = await new Promise<string>((resolve, reject) => {
      proxy.stdout?.on('data', (text: string) => resolve(/:(\d+)/.exec(text)?.[1] ?? ''));
      proxy.on('exit', () => reject(new Error('kubectl proxy ended')));
    });
    const basic = credential === undefined ? undefined : Buffer.from(`${credential.username}:${credential.password}`).toString('base64');
    try {
      const answer = await fetch(`http://127.0.0.1:${port}${gatePath}${urlPath}`, {
        headers: basic === undefined ? {} : { 'X-Kf-Authorization': `Basic ${basic}` },
      });
      return answer.status;
    } finally {
      proxy.removeAllListeners('exit');
      proxy.kill();
    }
  }

  async function pushCredential(space: string): Promise<{ username: string; password: string }> {
    const secret = JSON.parse(await kubectl('get', 'secret', 'kf-registry-push', '-n', space, '-o', 'json')) as {
      data: Record<string, string>;
    };
    const text = (key: string): string => Buffer.from(secret.data[key] ?? '', 'base64').toString();
    return { username: text('username'), password: text('password') };
  }

  test('requests without a credential are refused', async () => {
    expect(await statusAt('/v2/')).toBe(401);
    expect(await statusAt(`/v2/${ringEnv('KF_TEST_SPACE_GUID')}/x-packages/tags/list`)).toBe(401);
  });

  test('the credential of a space works for its own repositories only', async () => {
    const space = ringEnv('KF_TEST_SPACE_GUID');
    const credential = await pushCredential(space);
    expect(await statusAt(`/v2/${space}/none-packages/tags/list`, credential)).toBe(404);
    for (const other of ['00000000-0000-4000-8000-000000000000/app-packages', `${space}x/app-packages`, `${space}/../other/app-packages`]) {
      expect([401, 403, 404], other).toContain(await statusAt(`/v2/${other}/tags/list`, credential));
      expect(await statusAt(`/v2/${other}/tags/list`, credential), other).not.toBe(200);
    }
    expect([401, 403, 404]).toContain(await statusAt('/v2/_catalog', credential));
  });

  test("an app's pod mounts no credential and no token", async () => {
    interface Pods {
      items: {
        metadata: { labels?: Record<string, string> };
        spec: { automountServiceAccountToken?: boolean; volumes?: { secret?: { secretName: string } }[] };
      }[];
    }
    const pods = await kubectlJson<Pods>('get', 'pods', '-n', ringEnv('KF_TEST_SPACE_GUID'), '-l', 'korifi.cloudfoundry.org/process-type');
    for (const pod of pods.items) {
      expect(pod.spec.automountServiceAccountToken).toBe(false);
      const secrets = (pod.spec.volumes ?? []).map((volume) => volume.secret?.secretName ?? '');
      expect(secrets.filter((name) => /registry/.test(name))).toEqual([]);
    }
  });
});
