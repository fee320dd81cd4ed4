// A push reports all problems that can be known before anything is written, also for a new app.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { resource, type KubeObject } from '../../../src/lib/api/object.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
const quotas = resource<KubeObject>('', 'v1', 'ResourceQuota', 'resourcequotas');
let cluster: ServedCluster;
let cli: Cli;
/** The answer of the registry. */
let registryStatus = 404;

beforeEach(async () => {
  registryStatus = 404;
  cluster = await (await ServedCluster.start()).installed();
  cluster.server.on('HEAD .*/services/http:kf-registry:5000/proxy/v2/.*', (call) => call.text('', registryStatus));
  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  await cluster.add(secretType, {
    metadata: { name: 'kf-registry-push', namespace: ns },
    data: { username: encoded('push.space-guid'), password: encoded('secret') },
  });
  const at = { creationTimestamp: '2026-08-07T10:16:20Z', updatedTimestamp: '2026-08-07T10:16:20Z' };
  await cluster.add(kinds.builderInfo, { metadata: { name: 'kf-builder', namespace: 'cf' }, spec: {} });
  await cluster.memory.mergePatch(
    kinds.builderInfo,
    'cf',
    'kf-builder',
    {
      status: {
        stacks: [{ name: 'kf', description: '', ...at }],
        buildpacks: [{ name: 'kf/nodejs', stack: 'kf', version: '1.0.0', ...at }],
      },
    },
    { subresource: 'status' },
  );
  cluster.memory.writes.length = 0;
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  mkdirSync(path.join(cli.home, 'app'));
  writeFileSync(path.join(cli.home, 'app', 'server.js'), '');
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

const push = ['push', 'new-app', '-p', 'app'];

/** Runs a push that must fail without a single write. */
async function refused(args: string[]): Promise<string> {
  const run = await cli.run(args);
  expect(run.code).toBe(1);
  expect(run.stdout).toMatch(/FAILED\n$/);
  expect(cluster.memory.writes).toEqual([]);
  return run.stderr;
}

function manifest(...lines: string[]): string[] {
  writeFileSync(path.join(cli.home, 'manifest.yml'), ['applications:', '- name: new-app', '  path: app', ...lines, ''].join('\n'));
  return ['push'];
}

describe('a push of a new app that cannot succeed writes nothing and says why:', () => {
  it('the working directory was removed', async () => {
    const gone = path.join(cli.home, 'gone');
    const run = await cli.run(['push', 'new-app'], { removedFolder: gone });
    expect([run.code, run.stdout]).toEqual([1, 'FAILED\n']);
    expect(run.stderr).toBe('The working directory has been removed: nothing can be pushed from it.\n\nTIP:\n   cd DIRECTORY\n');
    expect(cluster.memory.writes).toEqual([]);
  });

  it('a Dockerfile, by its flag or as all that the folder has', async () => {
    const hint = 'TIP:\n   docker build -t IMAGE . && docker push IMAGE && kf push APP --docker-image IMAGE\n';
    const named = await refused([...push, '--dockerfile', 'Dockerfile']);
    expect(named).toMatch(/^'--dockerfile' of 'push' has no effect in kf: builds run without root /);
    expect(named).toContain(hint);
    mkdirSync(path.join(cli.home, 'docker'));
    writeFileSync(path.join(cli.home, 'docker', 'Dockerfile'), 'FROM scratch\n');
    const only = await refused(['push', 'new-app', '-p', 'docker']);
    expect(only).toContain(
      `In '${path.join(cli.home, 'docker')}' there is only a Dockerfile, which kf does not build: builds run without root `,
    );
    expect(only).toContain(hint);
  });

  it('a stack that the builder does not have', async () => {
    expect(await refused([...push, '-s', 'unknown'])).toContain("Stack 'unknown' not found. The builder of this installation has: kf\n");
  });

  it('a buildpack that the builder does not have', async () => {
    expect(await refused([...push, '-b', 'cobol'])).toContain("The builder has no buildpack 'cobol'. It has: kf/nodejs.\n");
  });

  it('a service instance that does not exist', async () => {
    expect(await refused(manifest('  services: [my-db]'))).toContain("Service instance 'my-db' not found\n");
  });

  it('a domain that does not exist', async () => {
    expect(await refused(manifest('  routes:', '  - route: www.example.org'))).toContain('No domains exist for route www.example.org\n');
  });

  it.each([
    [
      'apps.localhost',
      "Missing host. Routes on domain 'apps.localhost' must have a host.\n\nTIP:\n   Write the route as HOST.apps.localhost.\n",
    ],
    ['my_app.apps.localhost', "The host 'my_app' is not a valid name: use letters, digits and '-', at most 63 characters.\n"],
    ['shop.apps.localhost/a?b=1', "The path '/a?b=1' of a route cannot contain '?'.\n"],
    ['shop.apps.localhost/ä', "The path '/ä' of a route contains characters that a URL may not contain; write them percent-encoded.\n"],
    [`shop.apps.localhost/${'a'.repeat(128)}`, `The path '/${'a'.repeat(128)}' of a route is longer than 128 characters.\n`],
  ])('an impossible route: %s', async (route, text) => {
    expect(await refused(manifest('  routes:', `  - route: ${route}`))).toBe(text);
  });

  it('a missing right of the user', async () => {
    cluster.server.on('POST .*/selfsubjectaccessreviews', (call) =>
      call.json({ status: { allowed: !call.body.includes('"cfroutes"') } }, 201),
    );
    expect(await refused(push)).toContain("may not create routes in org 'example-org' / space 'example-space'.\n");
  });

  it('a registry that the user may not reach', async () => {
    registryStatus = 403;
    cluster.server.on('POST .*/selfsubjectaccessreviews', (call) =>
      call.json({ status: { allowed: !call.body.includes('"proxy"') } }, 201),
    );
    expect(await refused(push)).toContain('may not create "services/proxy" in the namespace "kf-system".\n');
  });

  it('a registry that refuses the credential', async () => {
    registryStatus = 401;
    expect(await refused(push)).toContain('Error from registry: ');
  });

  it.each([
    [
      'requests.memory',
      '2Gi',
      '1536Mi',
      "1 instance takes 1G of memory, and the quota 'limits' has 512M of 2G left (requests.memory).",
      true,
    ],
    ['count/cfapps.korifi.cloudfoundry.org', '3', '3', "it takes 1 more app, and the quota 'limits' has 0 of 3 left", false],
    ['pods', '5', '5', "it takes 1 more pod, and the quota 'limits' has 0 of 5 left (pods).", false],
  ])('a quota of %s that is used up', async (name, hard, used, text, flagsHelp) => {
    await cluster.add(quotas, {
      metadata: { name: 'limits', namespace: ns },
      status: { hard: { [name]: hard }, used: { [name]: used } },
    } as never);
    cluster.memory.writes.length = 0;
    const said = await refused(
      [...push, '--docker-image', 'registry.example.com/shop:1', '-m', '1G'].filter((word) => word !== '-p' && word !== 'app'),
    );
    expect(said).toContain(`App 'new-app' exceeds a quota of space 'example-space': ${text}`);
    expect(said).toContain('   kf apps\n');
    expect(said.includes('   kf push new-app --docker-image registry.example.com/shop:1 -m 128M -i 1\n')).toBe(flagsHelp);
  });
});

/** Acts as a controller that refuses the name of each new app. */
function refuseNames(): void {
  cluster.memory.intercept = (verb, type, name) => {
    if (verb !== 'create' || type.plural !== kinds.app.plural) return;
    const status = { conditions: [{ type: 'Claimed', status: 'False', reason: 'DuplicateName', message: '', lastTransitionTime: '' }] };
    setTimeout(() => void cluster.memory.mergePatch(kinds.app, ns, name, { status }, { subresource: 'status' }).catch(() => undefined), 20);
  };
}

it('a name that another app has in other capitals is refused with the name of that app, and nothing stays behind', async () => {
  const spec = { displayName: 'New-App', desiredState: 'STARTED' as const, lifecycle: { type: 'docker' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'app', namespace: ns }, spec });
  refuseNames();
  const run = await cli.run(['push', 'new-app', '--docker-image', 'registry.example.com/shop:1']);
  expect(run.code).toBe(1);
  expect(run.stderr).toContain(
    "App 'New-App' already exists, and names that differ only in capital letters are the same; nothing was uploaded.\n",
  );
  expect(run.stderr).toContain('   kf push New-App --docker-image registry.example.com/shop:1\n');
  expect(cluster.memory.all(kinds.app).map((app) => app.spec.displayName)).toEqual(['New-App']);
});

it('the changes of a manifest are shown before anything is written, without values of variables with --redact-env', async () => {
  const spec = { displayName: 'New-App', desiredState: 'STARTED' as const, lifecycle: { type: 'docker' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'app', namespace: ns }, spec });
  refuseNames();
  const lines = ['applications:', '- name: new-app', '  docker: {image: registry.example.com/shop:1}', '  env: {TOKEN: secret}', ''];
  writeFileSync(path.join(cli.home, 'manifest.yml'), lines.join('\n'));
  const attributes = (token: string): string =>
    [
      `Applying manifest file ${path.join(cli.home, 'manifest.yml')}...`,
      '',
      'Updating with these attributes...',
      ...['  ---', '  applications:', '+ - name: new-app', '+   docker:', '+     image: registry.example.com/shop:1'],
      ...['+   env:', `+     TOKEN: ${token}`, 'FAILED', ''],
    ].join('\n');
  expect((await cli.run(['push'])).stdout).toContain(attributes('secret'));
  expect((await cli.run(['push', '--redact-env'])).stdout).toContain(attributes('<redacted>'));
});

describe('of several apps', () => {
  it('the ones that cannot be pushed are listed, and --json has a result for each', async () => {
    const bad = ['- name: bad-stack', '  path: app', '  stack: unknown', '- name: bad-service', '  path: app', '  services: [my-db]'];
    const run = await cli.run([...manifest(...bad), '--json']);
    expect(run.code).toBe(1);
    const { error } = JSON.parse(run.stdout) as { error: { code: string; message: string; details: { apps: unknown[] } } };
    const stack = "Stack 'unknown' not found. The builder of this installation has: kf";
    const service = "Service instance 'my-db' not found";
    expect(error).toMatchObject({
      code: 'usage',
      message: `For application 'bad-stack': ${stack}\nFor application 'bad-service': ${service}`,
    });
    expect(error.details.apps).toEqual([
      { name: 'new-app' },
      { name: 'bad-stack', error: { code: 'usage', message: stack, hints: ['Leave the stack out, or: kf push bad-stack -s kf'] } },
      { name: 'bad-service', error: { code: 'not-found', message: service, hints: ['kf services'], details: { name: 'my-db' } } },
    ]);
    expect(cluster.memory.writes).toEqual([]);
  });
});
