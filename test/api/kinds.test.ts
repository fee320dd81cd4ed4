import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildApp, buildEnvSecret, buildProcess } from '../../src/templates/app.ts';
import { buildBuild, buildBuildEnvSecret, buildPackage } from '../../src/templates/build.ts';
import { buildDestination, buildRoute } from '../../src/templates/route.ts';
import { buildAppBinding, buildCredentialsSecret, buildUserProvidedInstance } from '../../src/templates/service.ts';
import { buildDomain, buildOrg, buildSpace } from '../../src/templates/tenancy.ts';
import type { CFApp, CFBuild, CFProcess, CFServiceInstance } from '../../src/lib/api/types.generated.ts';
import { isSigned } from '../../src/lib/api/changed-at.ts';
import { annotations } from '../../src/lib/api/group.ts';
import { ask, installKinds, installPolicies, kubectl, kubectlJson, makeSpaceLike } from './kubectl.ts';
import type { Stored } from '../../src/lib/api/object.ts';

interface Schema {
  properties?: Record<string, Schema>;
  items?: Schema;
  'x-kubernetes-list-type'?: string;
  'x-kubernetes-list-map-keys'?: string[];
}

interface Crd {
  metadata: { name: string };
  spec: {
    names: { kind: string; plural: string; categories?: string[] };
    versions: {
      additionalPrinterColumns?: { name: string; jsonPath: string; priority?: number }[];
      subresources?: object;
      schema: { openAPIV3Schema: Schema };
    }[];
  };
  status: { conditions: { type: string; status: string }[] };
}

interface Listed {
  kind: string;
  metadata: { name: string; resourceVersion: string; generation: number; annotations?: Record<string, string> };
}

const ns = `kinds-${Date.now().toString(36)}`;
const group = 'korifi.cloudfoundry.org';
const contractFile = join(import.meta.dirname, 'fixtures/contract-objects.yaml');

beforeAll(async () => {
  await installKinds();
  await installPolicies();
  await makeSpaceLike(ns);
});

/** Kinds whose objects nobody reports about. */
const withoutStatus = ['CFFeatureFlag', 'CFNetworkPolicy', 'CFQuota', 'CFServiceOffering', 'CFServicePlan'];

async function crds(): Promise<Map<string, Crd>> {
  const { items } = await kubectlJson<{ items: Crd[] }>(['get', 'crd']);
  return new Map(items.filter((crd) => crd.metadata.name.endsWith(`.${group}`)).map((crd) => [crd.spec.names.kind, crd]));
}

describe('an object without its spec', () => {
  test('is refused by each kind whose spec says something', async () => {
    const refused: string[] = [];
    for (const [kind, crd] of await crds()) {
      const schema = crd.spec.versions[0]?.schema.openAPIV3Schema;
      if (Object.keys(schema?.properties?.['spec']?.properties ?? {}).length === 0) continue;
      const input = { apiVersion: `${group}/v1alpha1`, kind, metadata: { name: 'poison', namespace: ns } };
      const { code, stderr } = await ask(['create', '--validate=ignore', '-f', '-'], { input });
      if (code !== 0 && /spec: Required value/.test(stderr)) refused.push(kind);
    }
    const kinds = [...(await crds()).keys()].filter((kind) => kind !== 'BuilderInfo');
    expect(refused.toSorted()).toEqual(kinds.toSorted());
  });
});

describe('the kinds', () => {
  test('are all installed, established, and in category cf', async () => {
    const all = await crds();
    expect([...all.keys()].sort()).toEqual([
      'AppWorkload',
      'BuildWorkload',
      'BuilderInfo',
      'CFApp',
      'CFBuild',
      'CFDomain',
      'CFFeatureFlag',
      'CFNetworkPolicy',
      'CFOrg',
      'CFPackage',
      'CFProcess',
      'CFQuota',
      'CFRoute',
      'CFSecurityGroup',
      'CFServiceBinding',
      'CFServiceBroker',
      'CFServiceInstance',
      'CFServiceOffering',
      'CFServicePlan',
      'CFSpace',
      'CFTask',
      'RunnerInfo',
      'TaskWorkload',
    ]);
    for (const crd of all.values()) {
      const conditions = Object.fromEntries(crd.status.conditions.map(({ type, status }) => [type, status]));
      expect(conditions, crd.metadata.name).toMatchObject({ Established: 'True', NamesAccepted: 'True' });
      expect(conditions, crd.metadata.name).not.toHaveProperty('NonStructuralSchema');
      expect(crd.spec.names.categories).toEqual(['cf']);
    }
  });

  test('have the columns that the contract names, in its order', async () => {
    const labelled = ['Created At', 'Updated At'];
    const columns: Record<string, string[]> = {
      CFOrg: [...labelled, 'Display Name', 'Age'],
      CFSpace: [...labelled, 'Display Name', 'Age'],
      CFApp: ['Display Name', ...labelled, 'State', 'Age'],
      CFPackage: ['AppGUID', ...labelled, 'Ready', 'Age'],
      CFBuild: ['AppGUID', 'State', ...labelled, 'Age'],
      CFProcess: [...labelled, 'AppGUID', 'Type', 'Desired', 'Actual'],
      CFRoute: ['URI', ...labelled, 'Age', 'AppGUIDs'],
      CFDomain: ['Domain Name', ...labelled, 'Age'],
      CFFeatureFlag: ['Enabled', 'Age'],
      CFNetworkPolicy: ['AppGUID', 'Direction', 'Peer', 'Age'],
      CFQuota: ['Display Name', 'Age'],
      CFTask: labelled,
      CFServiceInstance: [...labelled, 'Display Name', 'Age'],
      CFServiceBinding: [...labelled, 'Display Name', 'Age'],
      CFServiceBroker: [...labelled, 'Display Name', 'Age'],
      CFServiceOffering: [...labelled, 'Display Name', 'Description', 'Available', 'Age'],
      CFServicePlan: [...labelled, 'Display Name', 'Available', 'Free', 'Age'],
      CFSecurityGroup: [...labelled, 'DisplayName'],
      BuildWorkload: [],
      AppWorkload: [],
      TaskWorkload: [],
      BuilderInfo: ['Age', 'Ready'],
      RunnerInfo: [],
    };
    for (const [kind, crd] of await crds()) {
      const names = (crd.spec.versions[0]?.additionalPrinterColumns ?? []).map((column) => column.name);
      expect(names, kind).toEqual(columns[kind]);
    }
  });

  test('have a status subresource, except those that only their writers use: offerings and plans of the contract, quotas, feature flags and network policies of kf', async () => {
    for (const [kind, crd] of await crds()) {
      const has = crd.spec.versions[0]?.subresources !== undefined;
      expect(has, kind).toBe(!withoutStatus.includes(kind));
    }
  });
});

describe("the contract's objects", () => {
  test('are accepted without an unknown field, and unchanged when they are applied again', async () => {
    const apply = ['apply', '-n', ns, '--server-side', '--validate=strict', '-f', contractFile];
    await kubectl(apply);
    // The first change sets the time of creation, because no controller runs here that would have set it.
    await kubectl(apply);
    const before = await kubectlJson<{ items: Listed[] }>(['get', 'cf', '-n', ns]);
    await kubectl(apply);
    const after = await kubectlJson<{ items: Listed[] }>(['get', 'cf', '-n', ns]);
    const versions = (list: { items: Listed[] }) =>
      list.items.map(({ kind, metadata }) => `${kind}/${metadata.name}@${metadata.resourceVersion}`);
    const documents = parseAllDocuments(await readFile(contractFile, 'utf8'));
    expect(before.items).toHaveLength(documents.length);
    expect(versions(after)).toEqual(versions(before));
  });

  test('show their columns in kubectl', async () => {
    const table = await kubectl(['get', 'cfapps', '-n', ns, 'docker-app']);
    expect(table).toMatch(/^NAME\s+DISPLAY NAME\s+CREATED AT\s+UPDATED AT\s+STATE\s+AGE\n/);
    expect(table).toMatch(/docker-app\s+docker-app\s+[-T\d]+\s+STARTED/);
  });
});

describe('a process', () => {
  const scale = `/apis/${group}/v1alpha1/namespaces/${ns}/cfprocesses/scaled/scale`;
  const process = {
    apiVersion: `${group}/v1alpha1`,
    kind: 'CFProcess',
    metadata: { name: 'scaled', namespace: ns },
    spec: {
      appRef: { name: 'a' },
      processType: 'web',
      memoryMB: 1,
      diskQuotaMB: 1,
      healthCheck: { type: '', data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } },
    },
  };

  test('has one instance by default, and is scaled like any workload', async () => {
    await kubectl(['apply', '--server-side', '-f', '-'], { input: process });
    await kubectl([
      'patch',
      'cfprocess',
      '-n',
      ns,
      'scaled',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"actualInstances":1,"selector":"a=b"}}',
    ]);
    expect(JSON.parse(await kubectl(['get', '--raw', scale]))).toMatchObject({
      spec: { replicas: 1 },
      status: { replicas: 1, selector: 'a=b' },
    });
    await kubectl(['scale', 'cfprocess', '-n', ns, 'scaled', '--replicas=3']);
    const scaled = await kubectlJson<{ spec: { desiredInstances: number } }>(['get', 'cfprocess', '-n', ns, 'scaled']);
    expect(scaled.spec.desiredInstances).toBe(3);
  });

  test('is signed by who wrote the number of instances with a name, and not by who wrote it through the subresource', async () => {
    const { status } = await kubectlJson<{ status: { userInfo: { username: string } } }>(['auth', 'whoami']);
    const metadata = { annotations: { [annotations.changedBy]: status.userInfo.username } };
    const at = ['cfprocess', '-n', ns, 'scaled'];
    const write = (desiredInstances: number) =>
      kubectl(['patch', ...at, '--type=merge', '-p', JSON.stringify({ metadata, spec: { desiredInstances } })]);
    const signedNow = async (): Promise<boolean> =>
      isSigned(await kubectlJson<Stored<CFProcess>>(['get', ...at, '--show-managed-fields']), 'spec', 'desiredInstances');
    await write(4);
    expect(await signedNow()).toBe(true);
    await kubectl(['scale', ...at, '--replicas=5']);
    expect(await signedNow()).toBe(false);
    await write(6);
    expect(await signedNow()).toBe(true);
  });

  test('cannot have fewer than 0 instances', async () => {
    const { code, stderr } = await ask([
      'patch',
      'cfprocess',
      '-n',
      ns,
      'scaled',
      '--type=merge',
      '-p',
      '{"spec":{"desiredInstances":-1}}',
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain('spec.desiredInstances');
  });
});

describe('a task', () => {
  const task = (name: string, spec: object) => ({
    apiVersion: `${group}/v1alpha1`,
    kind: 'CFTask',
    metadata: { name, namespace: ns },
    spec: { appRef: { name: 'a' }, ...spec },
  });
  const create = (name: string, spec: object) => ask(['create', '--validate=strict', '-f', '-'], { input: task(name, spec) });

  test('has its memory, its disk and the process type that gives the other values', async () => {
    const spec = { command: 'rake', processType: 'worker', memoryMB: 128, diskMB: 512, displayName: 'migrate' };
    expect(await create('sized', spec)).toMatchObject({ code: 0 });
    expect(await kubectlJson<object>(['get', 'cftask', '-n', ns, 'sized'])).toMatchObject({ spec });
    const status = { memoryMB: 128, diskQuotaMB: 512, sequenceId: 1, dropletRef: { name: 'build' } };
    await kubectl(['patch', 'cftask', '-n', ns, 'sized', '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })]);
    expect(await kubectlJson<object>(['get', 'cftask', '-n', ns, 'sized'])).toMatchObject({ status });
  });

  test.each(['memoryMB', 'diskMB'])('cannot request less than 0 %s', async (field) => {
    const { code, stderr } = await create(`negative-${field.toLowerCase()}`, { command: 'rake', [field]: -1 });
    expect([code, stderr]).toEqual([1, expect.stringContaining(`spec.${field}`)]);
  });
});

describe('lists with several writers', () => {
  /** `<kind>.<path>` of every list that is merged by key, with its key. */
  async function keyed(): Promise<Record<string, string>> {
    const found: Record<string, string> = {};
    const walk = (schema: Schema, at: string): void => {
      if (schema['x-kubernetes-list-type'] === 'map') found[at] = (schema['x-kubernetes-list-map-keys'] ?? []).join();
      if (schema.items !== undefined) walk(schema.items, `${at}[]`);
      for (const [name, inner] of Object.entries(schema.properties ?? {})) walk(inner, `${at}.${name}`);
    };
    for (const [kind, crd] of await crds()) walk(crd.spec.versions[0]?.schema.openAPIV3Schema ?? {}, kind);
    return found;
  }

  test('are merged by key: conditions by type in every kind with a status, bindings and destinations by guid', async () => {
    const lists = await keyed();
    for (const kind of (await crds()).keys()) {
      const hasStatus = !withoutStatus.includes(kind);
      expect([kind, lists[`${kind}.status.conditions`]]).toEqual([kind, hasStatus ? 'type' : undefined]);
    }
    expect(lists).toMatchObject({
      'CFApp.status.serviceBindings': 'guid',
      'AppWorkload.spec.services': 'guid',
      'CFRoute.spec.destinations': 'guid',
      'CFRoute.status.destinations': 'guid',
    });
  });

  test('keep what each writer put into a status, conditions and bindings alike', async () => {
    const lifecycle = { type: 'docker', data: { stack: '' } };
    const named = { apiVersion: `${group}/v1alpha1`, kind: 'CFApp', metadata: { name: 'two-writers', namespace: ns } };
    await kubectl(['create', '-f', '-'], { input: { ...named, spec: { displayName: 'two-writers', desiredState: 'STOPPED', lifecycle } } });
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const condition = (type: string) => ({ type, status: 'True', reason: 'R', message: '', lastTransitionTime });
    const binding = (guid: string) => ({ guid, name: guid, secret: guid });
    const tell = (manager: string, status: object) => {
      const args = ['apply', '--server-side', '--subresource=status', `--field-manager=${manager}`, '-f', '-'];
      return ask(args, { input: { ...named, status } });
    };
    for (const manager of ['One', 'Two']) {
      const status = { conditions: [condition(manager)], serviceBindings: [binding(manager.toLowerCase())] };
      expect(await tell(manager, status)).toMatchObject({ code: 0 });
    }
    const { status } = await kubectlJson<{ status: { conditions: { type: string }[]; serviceBindings: { guid: string }[] } }>([
      'get',
      'cfapp',
      '-n',
      ns,
      'two-writers',
    ]);
    expect([status.conditions.map(({ type }) => type), status.serviceBindings.map(({ guid }) => guid)]).toEqual([
      ['One', 'Two'],
      ['one', 'two'],
    ]);
    const twice = await tell('Three', { conditions: [condition('Three'), condition('Three')] });
    expect([twice.code, twice.stderr]).toEqual([1, expect.stringMatching(/duplicate/i)]);
  });
});

test('two writers of one route each keep their own destination', async () => {
  const route = (guid: string, process: string) => ({
    apiVersion: `${group}/v1alpha1`,
    kind: 'CFRoute',
    metadata: { name: 'shared', namespace: ns },
    spec: {
      host: 'shared',
      domainRef: { name: 'd', namespace: 'cf' },
      destinations: [{ guid, appRef: { name: 'a' }, processType: process }],
    },
  });
  await kubectl(['apply', '--server-side', '--field-manager=one', '-f', '-'], { input: route('d1', 'web') });
  await kubectl(['apply', '--server-side', '--field-manager=two', '-f', '-'], { input: route('d2', 'worker') });
  const { spec } = await kubectlJson<{ spec: { destinations: { guid: string }[] } }>(['get', 'cfroute', '-n', ns, 'shared']);
  expect(spec.destinations.map(({ guid }) => guid)).toEqual(['d1', 'd2']);
});

test('a status written with the object is dropped, and one written to the subresource stays', async () => {
  const status = {
    conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    guid: 'o',
  };
  const org = {
    apiVersion: `${group}/v1alpha1`,
    kind: 'CFOrg',
    metadata: { name: `status-${ns}`, namespace: 'cf' },
    spec: { displayName: 'o' },
    status,
  };
  await kubectl(['create', '-f', '-'], { input: org });
  expect(await kubectlJson<object>(['get', 'cforg', '-n', 'cf', `status-${ns}`])).not.toHaveProperty('status');
  await kubectl(['patch', 'cforg', '-n', 'cf', `status-${ns}`, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })]);
  expect(await kubectlJson<object>(['get', 'cforg', '-n', 'cf', `status-${ns}`])).toMatchObject({ status });
});

test('everything that the CLI creates is accepted without an unknown field', async () => {
  const { status } = await kubectlJson<{ status: { userInfo: { username: string } } }>(['auth', 'whoami']);
  const author = { changedBy: status.userInfo.username, now: new Date() };
  const lifecycle = { type: 'buildpack' as const, data: { stack: '' } };
  const create = <T>(object: object): Promise<T> => kubectlJson<T>(['create', '--validate=strict', '-f', '-'], { input: object });
  const domain = buildDomain({ guid: `made-${ns}`, rootNamespace: 'cf', name: 'made.example.com' }, author);
  const app = await create<Stored<CFApp>>(
    buildApp({ guid: 'made-app', namespace: ns, displayName: 'made', lifecycle, pushId: 'p' }, author),
  );
  const build = await create<Stored<CFBuild>>(
    buildBuild(
      {
        guid: 'made-build',
        app,
        packageGuid: 'made-package',
        lifecycle,
        stagingMemoryMB: 1,
        stagingDiskMB: 1,
        buildKey: 'k',
        envSecretName: 'made-build-env',
      },
      author,
    ),
  );
  const instance = await create<Stored<CFServiceInstance>>(
    buildUserProvidedInstance(
      { guid: 'made-instance', namespace: ns, displayName: 'db', secretName: 'made-secret', tags: ['a'], syslogDrainUrl: 'x' },
      author,
    ),
  );
  const rest = [
    domain,
    buildOrg({ guid: `made-${ns}`, rootNamespace: 'cf', displayName: 'made' }, author),
    buildSpace({ guid: 'made-space', orgGuid: ns, displayName: 'made' }, author),
    buildEnvSecret(app, { A: 'b' }, author),
    buildProcess({ app, type: 'web', memoryMB: 1, diskQuotaMB: 1, user: 'x', logRateLimitBPS: -1, command: 'c' }, author),
    buildPackage({ guid: 'made-package', app, type: 'bits', image: 'x@sha256:0', contentHash: 'h', pullSecrets: ['s'] }, author),
    buildBuildEnvSecret(build, { A: 'b' }, author),
    buildRoute(
      {
        guid: 'made-route',
        namespace: ns,
        host: 'made',
        path: '/p',
        domain,
        destinations: [buildDestination({ guid: 'd', appGuid: 'made-app', port: 1 })],
      },
      author,
    ),
    buildCredentialsSecret(instance, { a: 1 }, author),
    buildAppBinding({ guid: 'made-binding', app, instance, displayName: 'b' }, author),
  ];
  await kubectl(['create', '--validate=strict', '-f', '-'], { input: rest });
  const found = await kubectlJson<{ items: Listed[] }>(['get', 'cf', '-n', ns, '-l', `${group}/guid`]);
  const ofCli = found.items.filter(({ metadata }) => metadata.annotations?.[`${group}/creation-version`] !== undefined);
  expect(ofCli).toHaveLength(8);
});
