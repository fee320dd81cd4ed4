// Builds on a real node: what a build step can see, how builds end, and which port of the registry accepts which credential.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { installingApp } from '../support/installing-app.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

const fixtures = path.resolve('test/fixtures/apps');
let kf: Kf;
let folder: string;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-build-'));
});
afterAll(async () => {
  for (const app of ['nosy', 'greedy', 'slow', 'static', 'unmatched']) await kf.run(['delete', app, '-f', '-r']);
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

// The pattern is assembled at run time, so that the script does not find itself.
const search = `
P="bui""ld\\.[0-9a-f-]{8,}|pu""sh\\.[0-9a-f-]{8,}|pu""ll\\.[0-9a-f-]{8,}|CNB_REG""ISTRY_AUTH|eyJhb""GciOi|dockerconfig""json"
echo "bui""ld.00000000-planted" > /tmp/planted
echo "ENVIRONMENT $(env | grep -cE "$P")"
for p in /proc/[0-9]*; do
  cat $p/environ $p/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -qE "$P" && echo "PROCESS $p"
done
grep -rIlE "$P" /kf /platform /workspace /layers /tmp /home /root /run /var /etc /mnt /opt /srv /dev/shm 2>/dev/null | sed 's/^/FILE /'
ls /kf | sed 's/^/KF /'
[ -e /var/run/secrets/kubernetes.io ] && echo TOKEN
echo SEARCHED
`;

describe('a build', () => {
  test('that searches its environment, files and processes for credentials finds none', async () => {
    const ran = await kf.run(['push', 'nosy', '-p', await installingApp(folder, 'nosy', search)]);
    const lines = ran.stdout
      .split('\n')
      .flatMap((line) => /npm error (ENVIRONMENT|PROCESS|FILE|KF|TOKEN|SEARCHED)(.*)$/.exec(line)?.slice(1, 3).join('') ?? []);
    expect(ran.code).toBe(1);
    // The planted file shows that the search works.
    expect([...new Set(lines)]).toEqual(['ENVIRONMENT 0', 'FILE /tmp/planted', 'KF hand', 'SEARCHED']);
    expect((await why(kf, 'nosy', '--build')).cause).toBe('build-failed');
  });

  test('that runs out of memory reports it', async () => {
    const ran = await kf.run([
      'push',
      'greedy',
      '-p',
      await installingApp(folder, 'greedy', 'node -e "const a=[];for(;;)a.push(Buffer.alloc(5e7,1))"'),
    ]);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/ran out of memory in its build container \(limit 1024 MB\)/);
    expect((await why(kf, 'greedy', '--build')).cause).toBe('build-oom');
  });

  test('with a buildpack that the builder lacks fails and names the buildpacks that the builder has', async () => {
    const ran = await kf.run(['push', 'static', '-p', path.join(fixtures, 'static-site'), '-b', 'cobol_buildpack', '--no-start']);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/The builder has no buildpack 'cobol_buildpack'\. It has: .*kf\/staticfile/);
    const good = await kf.run(['push', 'static', '-p', path.join(fixtures, 'static-site'), '-b', 'staticfile_buildpack', '--no-start']);
    expect([good.code, good.stderr]).toEqual([0, expect.not.stringContaining('FAILED')]);
  });

  test('that no buildpack recognises keeps what each of them looked for when its Job is gone, also for an auditor', async () => {
    const space = ringEnv('KF_TEST_SPACE_GUID');
    const auditor = await Kf.create('auditor');
    try {
      expect((await kf.run(['push', 'unmatched', '-p', path.join(fixtures, 'no-match')])).code).toBe(1);
      const first = await why(auditor, 'unmatched', '--build');
      expect(first).toMatchObject({ kind: 'build', state: 'failed', cause: 'no-buildpack', container: 'build' });
      for (const file of ['package.json', 'go.mod', 'requirements.txt', 'Staticfile or index.html', 'Procfile or an executable file'])
        expect([...(first.log?.head ?? []), ...(first.log?.tail ?? [])]).toContainEqual(expect.stringContaining(`looked for ${file}`));
      // As the cluster does after six hours. The Job has the name of the build.
      await kubectl('delete', 'job', '-n', space, first.name);
      const selector = `korifi.cloudfoundry.org/build-guid=${first.name}`;
      await until('its pod to go', async () => (await kubectl('get', 'pods', '-n', space, '-l', selector, '-o', 'name')).trim() === '');
      expect({ ...(await why(auditor, 'unmatched', '--build')), events: [] }).toEqual({ ...first, events: [] });
      expect({ ...(await why(auditor, 'unmatched')), events: [] }).toEqual({ ...first, events: [] });
    } finally {
      await auditor.remove();
    }
  });

  test('whose pod is deleted ends with that cause, leaves no credential and does not start again', async () => {
    const space = ringEnv('KF_TEST_SPACE_GUID');
    const push = kf.run(['push', 'slow', '-p', await installingApp(folder, 'slow', 'echo WAITING; sleep 120')]);
    interface Pods {
      items: { metadata: { name: string; labels: Record<string, string> }; status: { phase: string } }[];
    }
    const guid = await until('the app', async () => (await kf.ok('app', 'slow', '--guid')).stdout.trim());
    const pod = await until('the running build pod', async () => {
      const selector = `korifi.cloudfoundry.org/build-guid,korifi.cloudfoundry.org/app-guid=${guid}`;
      const running = ['-l', selector, '--field-selector=status.phase=Running'];
      return (await kubectlJson<Pods>('get', 'pods', '-n', space, ...running)).items[0];
    });
    await kubectl('delete', 'pod', '-n', space, pod.metadata.name, '--grace-period=0', '--force');
    const ran = await push;
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/The build's pod is gone/);
    expect((await why(kf, 'slow', '--build')).logLost).toBe('The pod was gone before its last lines were read.');
    const build = pod.metadata.labels['korifi.cloudfoundry.org/build-guid'] ?? '';
    await until(
      'the credential to be gone',
      async () => !(await kubectl('get', 'secrets', '-n', space, '-o', 'name')).includes(`${build}-registry`),
    );
    expect(
      (await kubectlJson<Pods>('get', 'pods', '-n', space, '-l', `korifi.cloudfoundry.org/build-guid=${build}`)).items.filter(
        (item) => item.status.phase === 'Running',
      ),
    ).toEqual([]);
  });
});

describe('the ports of the registry', () => {
  const mine = ringEnv('KF_TEST_SPACE_GUID');
  const other = { name: `ports-${randomUUID().slice(0, 8)}`, guid: '' };
  let admin: Kf;

  interface Spaces {
    items: { metadata: { name: string; namespace: string }; spec: { displayName: string } }[];
  }
  const spaceOf = async (name: string) =>
    (await kubectlJson<Spaces>('get', 'cfspaces', '-A')).items.find((space) => space.spec.displayName === name);

  beforeAll(async () => {
    admin = await Kf.create('admin');
    await admin.ok('create-space', other.name);
    other.guid = (await spaceOf(other.name))?.metadata.name ?? '';
  });
  afterAll(async () => {
    const space = await spaceOf(other.name);
    if (space !== undefined) await kubectl('delete', 'cfspace', '-n', space.metadata.namespace, space.metadata.name, '--timeout=120s');
    await admin.remove();
  });

  async function credential(space: string, kind: 'push' | 'pull'): Promise<string> {
    interface Secret {
      data: Record<string, string>;
    }
    const decode = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString();
    if (kind === 'push') {
      const { data } = await kubectlJson<Secret>('get', 'secret', 'kf-registry-push', '-n', space);
      return `${decode(data['username'])}:${decode(data['password'])}`;
    }
    const { data } = await kubectlJson<Secret>('get', 'secret', 'image-registry-credentials', '-n', space);
    const config = JSON.parse(decode(data['.dockerconfigjson'])) as { auths: Record<string, { auth: string }> };
    return decode(Object.values(config.auths)[0]?.auth);
  }

  /** Both ports on loopback, by port-forward. */
  async function withPorts<T>(use: (ports: { push: string; pull: string }) => Promise<T>): Promise<T> {
    const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') };
    const forward = execFile('kubectl', ['port-forward', '-n', 'kf-system', 'deploy/kf-registry', ':5000', ':5001'], { env });
    const ports = await new Promise<Record<string, string>>((resolve, reject) => {
      const found: Record<string, string> = {};
      forward.stdout?.on('data', (text: string) => {
        for (const [, local = '', remote = ''] of text.matchAll(/127\.0\.0\.1:(\d+) -> (\d+)/g)) found[remote] = local;
        if (Object.keys(found).length === 2) resolve(found);
      });
      forward.on('exit', () => reject(new Error('kubectl port-forward ended')));
    });
    try {
      return await use({ push: `http://127.0.0.1:${ports['5000'] ?? ''}`, pull: `http://127.0.0.1:${ports['5001'] ?? ''}` });
    } finally {
      forward.removeAllListeners('exit');
      forward.kill();
    }
  }

  test('are closed to requests without a credential or with a credential of another space, in every way that was tried', async () => {
    const users = { none: '', push: await credential(mine, 'push'), pull: await credential(mine, 'pull') };
    const repository = `${other.guid}/app-packages`;
    const tries: [string, string][] = [
      ['GET', `/v2/${repository}/tags/list`],
      ['GET', `/v2/${repository}/manifests/latest`],
      ['HEAD', `/v2/${repository}/blobs/sha256:${'0'.repeat(64)}`],
      ['POST', `/v2/${repository}/blobs/uploads/`],
      ['PUT', `/v2/${repository}/manifests/latest`],
      ['DELETE', `/v2/${repository}/manifests/latest`],
      ['GET', '/v2/_catalog'],
    ];
    await withPorts(async (ports) => {
      for (const [port, base] of Object.entries(ports))
        for (const [user, secret] of Object.entries(users))
          for (const [method, target] of tries) {
            const headers = secret === '' ? {} : { authorization: `Basic ${Buffer.from(secret).toString('base64')}` };
            const { status } = await fetch(base + target, { method, headers });
            const expected = user === 'none' ? [401] : [403, 404, 405];
            expect([port, user, method, target, expected.includes(status) ? 'refused' : status]).toEqual([
              port,
              user,
              method,
              target,
              'refused',
            ]);
          }
    });
  });

  test('let a space read what it pushed, with the pull credential at its own pull port', async () => {
    const call = (base: string, method: string, target: string, secret: string) =>
      fetch(base + target, { method, headers: { authorization: `Basic ${Buffer.from(secret).toString('base64')}` } });
    const [push, pull] = [await credential(other.guid, 'push'), await credential(other.guid, 'pull')];
    const tags = `/v2/${other.guid}/app-packages/tags/list`;
    await withPorts(async (ports) => {
      const started = await call(ports.push, 'POST', `/v2/${other.guid}/app-packages/blobs/uploads/`, push);
      expect([started.status, started.headers.get('location')?.startsWith(`/v2/${other.guid}/app-packages/blobs/uploads/`)]).toEqual([
        202,
        true,
      ]);
      const session = started.headers.get('location') ?? '';
      expect((await call(ports.push, 'PATCH', session, await credential(mine, 'push'))).status).toBe(403);
      // Another repository's path with this session: the registry has no session of that number there.
      expect((await call(ports.push, 'PATCH', session.replace(other.guid, mine), await credential(mine, 'push'))).status).toBe(404);
      expect((await call(ports.pull, 'GET', tags, pull)).status).toBe(404);
      expect([(await call(ports.pull, 'GET', tags, push)).status, (await call(ports.push, 'GET', tags, pull)).status]).toEqual([403, 403]);
      expect((await call(ports.pull, 'PUT', `/v2/${other.guid}/app-packages/manifests/latest`, pull)).status).toBe(403);
    });
  });
});
