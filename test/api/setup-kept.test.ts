// The record that the first setup leaves is enough for the next one: it continues with the same settings.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { differing, named, type Objects, type Printed } from './setup-objects.ts';
import { kf } from './kf.ts';
import { ask, installRoles, kubectl, makeNamespace, makeStorageClass } from './kubectl.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kf-kept-'));
const file = path.join(folder, 'setup.yaml');
const settings = {
  storageClass: 'any',
  domain: 'apps.example.com',
  gatewayPort: 8080,
  images: { registry: 'e.example.com/registry:1' },
  buildEnv: { NPM_CONFIG_REGISTRY: 'https://user:secret@npm.example.com/' },
};

beforeAll(async () => {
  await makeStorageClass('any');
  await makeNamespace('kf-system');
  writeFileSync(file, stringify(settings));
});
afterAll(async () => {
  await kubectl(['delete', '-n', 'kf-system', '--ignore-not-found', 'configmap/kf-setup', 'secret/kf-build-env']);
  rmSync(folder, { recursive: true });
});

async function planned(...args: string[]): Promise<{ objects: Printed[]; byName: Objects; stderr: string }> {
  const { code, stdout, stderr } = await kf('setup', '--dry-run', '-o', 'yaml', ...args);
  expect(code, stderr).toBe(0);
  const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Printed);
  return { objects, byName: Object.fromEntries(objects.map((object) => named(object))), stderr };
}

test('setup without options plans the settings of the file, and says which settings stay', async () => {
  const first = await planned('-f', file);
  const kept = first.objects.filter(({ metadata }) => ['kf-setup', 'kf-build-env'].includes(metadata.name));
  await kubectl(['apply', '--server-side', '-f', '-'], { input: kept });
  const again = await planned();
  expect(differing(first.byName, again.byName)).toEqual([]);
  expect(again.stderr).toContain('Settings that stay: domain, gatewayPort, images, storageClass, buildEnv (others: kf setup -f FILE)\n');
  expect(again.stderr).not.toContain('Settings that change');
});

test('neither a user nor the controller can read or write the record', async () => {
  await installRoles();
  const account = 'system:serviceaccount:kf-system:kf-controller';
  await kubectl(['create', 'clusterrolebinding', 'kept-controller', '--clusterrole=kf-controller', `--user=${account}`]);
  await kubectl(['create', 'rolebinding', 'kept-system', '-n', 'kf-system', '--clusterrole=kf-controller-system', `--user=${account}`]);
  for (const as of ['somebody', account]) {
    for (const verb of ['get', 'patch', 'delete']) {
      const { stdout } = await ask(['auth', 'can-i', verb, 'configmaps/kf-setup', '-n', 'kf-system'], { as });
      expect(stdout.trim(), `${as} ${verb}`).toBe('no');
    }
  }
  expect((await ask(['auth', 'can-i', 'get', 'secrets/kf-build-env', '-n', 'kf-system'], { as: account })).stdout.trim()).toBe('yes');
  await kubectl(['delete', 'clusterrolebinding', 'kept-controller']);
  await kubectl(['delete', 'rolebinding', 'kept-system', '-n', 'kf-system']);
});

test('a flag and a file report what they change, without a password', async () => {
  const flagged = await planned('--gateway-port', '9090');
  expect(flagged.stderr).toContain('Settings that change: gatewayPort from 8080 to 9090\n');
  expect(differing((await planned()).byName, flagged.byName)).toEqual(['kf-info', 'kf-setup']);
  writeFileSync(file, stringify({ ...settings, images: {}, buildEnv: {} }));
  const { stderr, byName } = await planned('-f', file);
  expect(stderr).toContain(
    'Settings that change: images.registry from e.example.com/registry:1 to docker.io/library/registry:3, buildEnv.NPM_CONFIG_REGISTRY from set to none\n',
  );
  expect(stderr).not.toContain('secret');
  expect(byName['Deployment kf-system/kf-registry']).toMatchObject({
    spec: { template: { spec: { containers: [{ image: 'docker.io/library/registry:3' }, {}] } } },
  });
});
