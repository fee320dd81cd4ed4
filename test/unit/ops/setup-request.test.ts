import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parseSettings, readSetupFile } from '../../../src/lib/ops/install/settings-file.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kf-setup-'));
const file = path.join(folder, 'setup.yaml');
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['gatewayPort: 65536', "the key 'gatewayPort' is a port, from 1 to 65535, and not 65536."],
  ['gatewayPort: 0', "the key 'gatewayPort' is a port, from 1 to 65535, and not 0."],
  ['gatewayPort: 80.5', "the key 'gatewayPort' is a port, from 1 to 65535, and not 80.5."],
  ["gatewayPort: '80'", `the key 'gatewayPort' is a port, from 1 to 65535, and not "80".`],
  ['tasksKeptPerApp: 0', "the key 'tasksKeptPerApp' is a whole number from 1 and not 0."],
  ['tasksKeptPerApp: many', `the key 'tasksKeptPerApp' is a whole number from 1 and not "many".`],
  ['nodePort: 70000', "the key 'nodePort' is a port, from 1 to 65535, and not 70000."],
])('the setting %s is refused', async (text, message) => {
  writeFileSync(file, `${text}\n`);
  await expect(readSetupFile(file)).rejects.toThrow(`Incorrect Usage: ${file}:1:${text.indexOf(': ') + 3}: ${message}`);
});

test('ports are used as they are', async () => {
  writeFileSync(file, 'gatewayPort: 65535\nnodePort: 30000\n');
  await expect(readSetupFile(file)).resolves.toEqual({ gatewayPort: 65535, nodePort: 30000 });
});

const faults = (text: string): string[] => {
  try {
    parseSettings('setup.yaml', text);
    return [];
  } catch (error) {
    return (error as Error).message.split('\n');
  }
};

test.each([
  ['domian: x', "setup.yaml:1:1: unknown key 'domian'. Did you mean 'domain'?"],
  ['images:\n  nod: x', "setup.yaml:2:3: unknown key 'nod' in 'images'. Did you mean 'node'?"],
  ['limits:\n  orgs: {}', "setup.yaml:2:3: unknown key 'orgs' in 'limits'. Did you mean 'org'?"],
  ['limits: { space: { pods: many } }', `setup.yaml:1:26: the key 'limits.space.pods' is a quantity such as 10Gi or 500m and not "many".`],
  ['registrySize: 10 GB', `setup.yaml:1:15: the key 'registrySize' is a quantity such as 10Gi or 500m and not "10 GB".`],
  ['gatewayExposure: nodeport', `setup.yaml:1:18: the key 'gatewayExposure' is auto or hostport or loadbalancer and not "nodeport".`],
  ['insecureRegistry: maybe', `setup.yaml:1:19: the key 'insecureRegistry' is true or false and not "maybe".`],
  ['networkPolicies: some', `setup.yaml:1:18: the key 'networkPolicies' is on or off and not "some".`],
  ['gateway: public', `setup.yaml:1:10: the key 'gateway' is NAMESPACE/NAME, and not "public".`],
  ['registry: /kf', `setup.yaml:1:11: the key 'registry' is HOST/PREFIX, and not "/kf".`],
  [
    'domain: Apps.example.com',
    `setup.yaml:1:9: the key 'domain' is a DNS name in lower case, such as apps.example.com, and not "Apps.example.com".`,
  ],
  [
    'appEgress: [10.0.0.0/8, 10.0.0.0/99]',
    `setup.yaml:1:25: the key 'appEgress' takes ranges (10.20.0.0/16) and names of namespaces, and not "10.0.0.0/99".`,
  ],
  ['images: node', `setup.yaml:1:9: the key 'images' is a map (node, registry, traefik, builder, run) and not "node".`],
  ['buildEnv: [A, B]', "setup.yaml:1:11: the key 'buildEnv' is a map and not a list."],
  ['space: { name: dev }', "setup.yaml:1:8: the key 'space' is a text and not a map."],
  ['staging: { memoryMB: 0 }', "setup.yaml:1:22: the key 'staging.memoryMB' is a whole number from 1 and not 0."],
  ['org: a\norg: b', "setup.yaml:2:1: The key 'org' stands twice in this map."],
  ['- a', 'setup.yaml:1:1: The file must hold a map of settings, {} for none.'],
  ['', 'setup.yaml is empty; it must hold a map of settings, {} for none.'],
])('%j is refused with its position', (text, message) => {
  expect(faults(text)).toEqual([`Incorrect Usage: ${message}`]);
});

test('bad YAML is reported as an invalid setup file', () => {
  expect(faults('org: [a')[0]).toBe('Incorrect Usage: The file setup.yaml is not valid YAML.');
  expect(faults('org: [a')[1]).toMatch(/^setup\.yaml:1:8: /);
});

test('all errors are reported at once, in the order of the file, with the known keys', () => {
  const text = 'gatewayPort: 0\nstorage: fast\nimages: { builders: x, run: [] }\n';
  expect(faults(text)).toEqual([
    "Incorrect Usage: setup.yaml:1:14: the key 'gatewayPort' is a port, from 1 to 65535, and not 0.",
    "setup.yaml:2:1: unknown key 'storage'.",
    "setup.yaml:3:11: unknown key 'builders' in 'images'. Did you mean 'builder'?",
    "setup.yaml:3:29: the key 'images.run' is a text and not a list.",
  ]);
  expect(() => parseSettings('setup.yaml', text)).toThrow(
    expect.objectContaining({
      code: 'usage',
      hints: [expect.stringMatching(/^Known keys: domain, .*space$/), 'Known keys of images: node, registry, traefik, builder, run'],
    }),
  );
});

test('what is no YAML, keys that stand twice and wrong domains are reported at once too', () => {
  const broken = 'org: a: b\nregistry: [a\nspace: "x" y\n';
  expect(faults(broken).map((line) => line.split(': ', 1)[0])).toEqual([
    'Incorrect Usage',
    'setup.yaml:1:6',
    'setup.yaml:3:1',
    'setup.yaml:3:12',
  ]);
  const text = 'org: a\ngatewayPort: 0\norg: b\ntlsSecrets: { Shop.example: infra/shop, _: infra/bar }\n';
  expect(faults(text)).toEqual([
    "Incorrect Usage: setup.yaml:2:14: the key 'gatewayPort' is a port, from 1 to 65535, and not 0.",
    "setup.yaml:3:1: The key 'org' stands twice in this map.",
    ...[
      ['15', 'Shop.example'],
      ['41', '_'],
    ].map(
      ([column, name]) =>
        `setup.yaml:4:${column}: the key 'tlsSecrets' names domains in lower case, such as apps.example.com, and not "${name}".`,
    ),
  ]);
});

test('a missing file has the class of what does not exist', async () => {
  const missing = path.join(folder, 'missing.yaml');
  await expect(readSetupFile(missing)).rejects.toMatchObject({
    code: 'not-found',
    message: `Incorrect Usage: The specified path '${missing}' does not exist.`,
  });
});

test('valid settings are accepted', () => {
  const text = [
    'domain: apps.example.com',
    'networkPolicies: off',
    'insecureRegistries: plain.example.com:5000',
    'appEgress: [10.20.0.0/16, databases]',
    "buildEnv: { A: 1.10, B: yes, C: '' }",
    "limits: { org: { count/cfspaces.korifi.cloudfoundry.org: 40 }, space: { pods: '', requests.memory: 64Gi } }",
    'storageClass:',
    'drainSeconds: 0',
  ];
  expect(parseSettings('setup.yaml', text.join('\n'))).toEqual({
    domain: 'apps.example.com',
    networkPolicies: 'off',
    insecureRegistries: ['plain.example.com:5000'],
    appEgress: ['10.20.0.0/16', 'databases'],
    buildEnv: { A: '1.10', B: 'yes', C: '' },
    limits: { org: { 'count/cfspaces.korifi.cloudfoundry.org': 40 }, space: { pods: '', 'requests.memory': '64Gi' } },
    drainSeconds: 0,
  });
});
