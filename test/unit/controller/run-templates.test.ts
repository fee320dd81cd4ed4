import { describe, expect, test } from 'vitest';
import { mainBackends, revisionOf, revisionOfAnswer } from '../../../src/lib/api/gateway.ts';
import type { AppWorkload, CFApp, CFProcess, CFRoute, Droplet } from '../../../src/lib/api/types.generated.ts';
import { buildHttpRoute } from '../../../src/templates/http-route.ts';
import { buildInstanceEnv, buildProcessEnv, databaseUrl, vcapServicesValue, type VcapService } from '../../../src/templates/pod-env.ts';
import { buildBudget, buildStatefulSet } from '../../../src/templates/stateful-set.ts';
import {
  buildAppWorkload,
  buildFrozenSecrets,
  generationHash,
  generationNames,
  liveHash,
  liveInputs,
  type FrozenInputs,
} from '../../../src/templates/workload.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { asStored } from '../../support/stored.ts';

const app = asStored<CFApp>({
  metadata: {
    name: '11111111-1111-4111-8111-111111111111',
    namespace: 'space',
    uid: 'app-uid',
    annotations: { 'korifi.cloudfoundry.org/app-rev': '3' },
  },
  spec: { displayName: 'shop', desiredState: 'STARTED', lifecycle: { type: 'buildpack', data: { stack: '' } } },
});
const web = asStored<CFProcess>({
  metadata: { name: 'adf88d59-873a-5df1-860b-00b9853c23b5', namespace: 'space', uid: 'process-uid' },
  spec: {
    appRef: { name: app.metadata.name ?? '' }, processType: 'web', memoryMB: 512, diskQuotaMB: 1024, detectedCommand: 'npm start',
    healthCheck: { type: 'http', data: { httpEndpoint: '/health', invocationTimeoutSeconds: 2, timeoutSeconds: 30 } },
  },
}); // prettier-ignore
const droplet: Droplet = { registry: { image: 'r/app@sha256:1', imagePullSecrets: [{ name: 'pull' }] }, architecture: 'arm64' };
const frozen: FrozenInputs = {
  env: { A: 'MQ==' },
  bindings: [{ guid: 'b1', name: 'db', data: { uri: 'eA==' } }],
  vcapApplication: { name: 'shop' },
  drainSeconds: 4,
  graceSeconds: 10,
};
const live = liveInputs(app, web, droplet, [8080]);

function workload(more: Partial<AppWorkload['spec']> = {}): Stored<AppWorkload> {
  const built = buildAppWorkload({ app, process: web, live, frozen, env: [] }, 'abcdef0123');
  return asStored({ ...built, metadata: { ...built.metadata, uid: 'workload-uid' }, spec: { ...built.spec, ...more } });
}
const containerOf = (of: Stored<AppWorkload>) => buildStatefulSet(of).spec?.template.spec.containers[0];

describe('environment', () => {
  const input = { secretName: 's', memoryMB: 256, ports: [8080], lifecycle: 'buildpack' as const };
  const application = { application_id: 'a', application_name: 'shop' };
  const env = (keys: string[], vcap: object = {}) =>
    buildProcessEnv({ ...input, secretKeys: keys, vcapApplication: { ...application, ...vcap } });

  test('the instance index is inserted into VCAP_APPLICATION by expansion, and nothing else in it is expanded', () => {
    const value = env([], { name: 'a $(HOME) $$ b' }).find(({ name }) => name === 'VCAP_APPLICATION')?.value ?? '';
    // As the kubelet does: `$$` is a dollar, `$(NAME)` a variable.
    const expanded = value.replace(/\$\$|\$\((\w+)\)/g, (match, name: string | undefined) =>
      match === '$$' ? '$' : name === 'CF_INSTANCE_INDEX' ? '7' : 'guid',
    );
    expect(JSON.parse(expanded)).toMatchObject({
      name: 'a $(HOME) $$ b',
      instance_index: 7,
      instance_id: 'guid',
      port: 8080,
      host: '0.0.0.0',
    });
  });

  test("the platform's own variables cannot be replaced, but HOME and others can", () => {
    const variables = env(['PORT', 'HOME', 'COLOUR']);
    expect(variables.filter(({ name }) => name === 'PORT')).toEqual([{ name: 'PORT', value: '8080' }]);
    expect(variables.filter(({ name }) => name === 'HOME')).toEqual([
      { name: 'HOME', valueFrom: { secretKeyRef: { name: 's', key: 'HOME' } } },
    ]);
    expect(variables.map(({ name }) => name)).toContain('COLOUR');
    expect(new Set(variables.map(({ name }) => name)).size).toBe(variables.length);
  });

  test('MEMORY_LIMIT is written as in Cloud Foundry, whose start scripts cut off the m', () => {
    expect(env([])).toContainEqual({ name: 'MEMORY_LIMIT', value: '256m' });
  });

  test('a process that no route leads to has the variables of the port 8080, each once', () => {
    const own = buildProcessEnv({ ...input, ports: [], secretKeys: [], vcapApplication: application });
    const all = [...buildInstanceEnv([], false), ...own];
    const value = (of: string) => all.filter(({ name }) => name === of).map((variable) => variable.value);
    expect(['PORT', 'VCAP_APP_PORT', 'CF_INSTANCE_PORT'].map(value)).toEqual([['8080'], ['8080'], ['8080']]);
    expect(value('CF_INSTANCE_ADDR')).toEqual(['$(CF_INSTANCE_IP):8080']);
    expect(value('CF_INSTANCE_PORTS')).toEqual(['[{"external":8080,"internal":8080}]']);
    expect(value('VCAP_APPLICATION')[0]).toContain('"port":8080');
    expect(env([]).map(({ name }) => name)).not.toContain('CF_INSTANCE_PORT');
  });

  test('a docker image keeps its own home', () => {
    const names = buildProcessEnv({ ...input, lifecycle: 'docker', secretKeys: [], vcapApplication: application }).map(({ name }) => name);
    expect(names).not.toContain('HOME');
    expect(names).toContain('TMPDIR');
  });

  const service = (label: string, credentials: Record<string, unknown>): VcapService => ({
    label, name: label, tags: [], instance_guid: '', instance_name: '', binding_guid: '', binding_name: null, credentials, syslog_drain_url: null, volume_mounts: [],
  }); // prettier-ignore

  test('services are listed by label, and the first database sets DATABASE_URL', () => {
    const services = [service('mail', { uri: 'smtp://x' }), service('db', { uri: 'mysql://u:p@h/d' })];
    expect(Object.keys(JSON.parse(vcapServicesValue(services)) as object)).toEqual(['mail', 'db']);
    expect(vcapServicesValue([])).toBe('{}');
    expect(databaseUrl(services)).toBe('mysql2://u:p@h/d');
    expect(databaseUrl([service('mail', {})])).toBeUndefined();
  });
});

describe('generations', () => {
  const changed = (patch: Partial<CFProcess['spec']>, ports = [8080]) =>
    liveHash(liveInputs(app, { ...web, spec: { ...web.spec, ...patch } }, droplet, ports));

  test.each([
    ['memory', { memoryMB: 513 }],
    ['command', { command: 'node x' }],
    ['health check', { healthCheck: { ...web.spec.healthCheck, type: 'port' as const } }],
  ])('%s needs a new generation if it changes', (_name, patch) => {
    expect(changed(patch)).not.toBe(liveHash(live));
  });

  test('the command of a process and of a sidecar reaches the shell as it is written', () => {
    const text = 'echo $$ $(PORT)';
    const spec = { ...web.spec, command: text, sidecars: [{ name: 'side', command: text }] };
    const { command, sidecars } = liveInputs(app, { ...web, spec }, droplet, [8080]);
    expect([command.at(-1), sidecars?.[0]?.command.at(-1)]).toEqual(['echo $$$$ $$(PORT)', 'echo $$$$ $$(PORT)']);
  });

  test('the number of instances is not part of a generation', () => {
    expect(changed({ desiredInstances: 9 })).toBe(liveHash(live));
  });

  test('the hash stays the same in later releases of kf', () => {
    expect(liveHash(live)).toBe('bd8ede79c7');
    expect(generationHash('process', live, frozen)).toBe('89ebb780f8');
  });

  test('the frozen data determine the name, whatever the order of their keys', () => {
    const first = generationHash('p', live, { ...frozen, env: { A: '1', B: '2' } });
    expect(generationHash('p', live, { ...frozen, env: { B: '2', A: '1' } })).toBe(first);
    expect(generationHash('p', live, { ...frozen, env: { B: '2', A: '3' } })).not.toBe(first);
    expect(generationHash('p', live, { ...frozen, graceSeconds: 30 })).not.toBe(generationHash('p', live, frozen));
  });

  test('Secrets are immutable, owned by the generation, and the environment comes last', () => {
    const of = workload();
    const secrets = buildFrozenSecrets(of, generationNames(web, 'abcdef0123'), frozen);
    expect(secrets.map(({ metadata }) => metadata.name)).toEqual([`${of.metadata.name ?? ''}-b-0`, `${of.metadata.name ?? ''}-env`]);
    for (const secret of secrets)
      expect(secret).toMatchObject({ immutable: true, metadata: { ownerReferences: [{ uid: 'workload-uid', controller: true }] } });
  });
});

describe('the StatefulSet', () => {
  test('follows the contract and restricted pod security', () => {
    const set = buildStatefulSet(workload());
    expect(set.metadata.name).toMatch(/^11111111-1111-4111-8111-111111111111-spa-[0-9a-f]{10}$/);
    expect(set.spec).toMatchObject({ replicas: 0, podManagementPolicy: 'Parallel', updateStrategy: { type: 'OnDelete' } });
    expect(set.spec?.template.metadata?.labels).toMatchObject({
      'korifi.cloudfoundry.org/guid': web.metadata.name, 'korifi.cloudfoundry.org/version': '3', 'kf.cloudfoundry.org/generation': 'abcdef0123',
    }); // prettier-ignore
    expect(set.spec?.template.spec).toMatchObject({
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 14,
      nodeSelector: { 'kubernetes.io/arch': 'arm64' },
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
  });

  test('gives a stopping instance the time of the drain and that of the installation, for an earlier workload 10 s', () => {
    const grace = (more: { graceSeconds?: number }) => {
      const { graceSeconds: _, ...spec } = workload().spec;
      return buildStatefulSet({ ...workload(), spec: { ...spec, ...more } }).spec?.template.spec?.terminationGracePeriodSeconds;
    };
    expect([grace({}), grace({ graceSeconds: 30 }), grace({ graceSeconds: 0 })]).toEqual([14, 34, 4]);
    expect(buildAppWorkload({ app, process: web, live, frozen: { ...frozen, graceSeconds: 30 }, env: [] }, 'a').spec.graceSeconds).toBe(30);
  });

  test('has a probe each second until the app answers, then rarely', () => {
    const container = containerOf(workload());
    expect(container?.command).toEqual(['/cnb/lifecycle/launcher', 'npm start']);
    expect(container).toMatchObject({
      name: 'application',
      imagePullPolicy: 'IfNotPresent',
      lifecycle: { preStop: { sleep: { seconds: 4 } } },
      startupProbe: { httpGet: { path: '/health', port: 8080 }, periodSeconds: 1, failureThreshold: 30, timeoutSeconds: 2 },
      livenessProbe: { periodSeconds: 30, failureThreshold: 1 },
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    });
  });

  test('asks the registry for the latest image at each start, and for no other that the node has', () => {
    const { spec } = workload();
    const containers = (image: string) => {
      const sidecars = [{ name: 'proxy', command: ['proxy'] }];
      const pod = buildStatefulSet({ ...workload(), spec: { ...spec, image, sidecars } }).spec?.template.spec;
      return [...(pod?.containers ?? []), ...(pod?.initContainers ?? [])].map(({ imagePullPolicy }) => imagePullPolicy);
    };
    for (const image of ['r/app:latest', 'r:5000/app', 'app']) expect(containers(image)).toEqual(['Always', 'Always']);
    for (const image of ['r:5000/app:1', 'app:1', 'r/app@sha256:2', 'r/app:latest@sha256:2'])
      expect(containers(image)).toEqual(['IfNotPresent', 'IfNotPresent']);
  });

  test('has variables that refer to the instance after those that define it', () => {
    const names = (containerOf(workload({ env: [{ name: 'VCAP_APPLICATION', value: '$(CF_INSTANCE_INDEX)' }] }))?.env ?? []).map(
      ({ name }) => name,
    );
    expect(names.indexOf('CF_INSTANCE_INDEX')).toBeLessThan(names.indexOf('VCAP_APPLICATION'));
  });

  test('mounts bindings under their names', () => {
    const container = containerOf(workload());
    expect(container?.volumeMounts).toEqual([{ name: 'binding-0', mountPath: '/bindings/db', readOnly: true }]);
    expect(container?.env?.find(({ name }) => name === 'SERVICE_BINDING_ROOT')?.value).toBe('/bindings');
  });

  test('has a container for each sidecar, whose memory is a part of that of the process', () => {
    const sidecars = [
      { name: 'Config Server', command: 'serve config', memoryMB: 128 },
      { name: 'proxy', command: 'proxy' },
    ];
    const process = { ...web, spec: { ...web.spec, sidecars } };
    const beside = liveInputs(app, process, droplet, [8080]);
    const env = [{ name: 'MEMORY_LIMIT', value: '320m' }];
    const built = buildAppWorkload({ app, process, live: beside, frozen, env }, 'abcdef0123');
    const spec = buildStatefulSet(asStored({ ...built, metadata: { ...built.metadata, uid: 'workload-uid' } })).spec?.template.spec;
    const of = ({ name, command, resources, restartPolicy, env: variables }: NonNullable<typeof spec>['containers'][number]) => [
      ...[name, command?.at(-1), resources?.limits?.['memory'], restartPolicy],
      variables?.find((variable) => variable.name === 'MEMORY_LIMIT')?.value,
    ];
    expect([...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(of)).toEqual([
      ['sidecar-0-config-server-s', 'serve config', '128Mi', 'Always', '128m'],
      ['sidecar-1-proxy-s', 'proxy', '64Mi', 'Always', '64m'],
      ['application', 'npm start', '320Mi', undefined, '320m'],
    ]);
    expect(liveHash(beside)).not.toBe(liveHash(live));
  });

  test('has a budget over all generations of the process', () => {
    expect(buildBudget(web).spec).toEqual({
      minAvailable: '50%', unhealthyPodEvictionPolicy: 'AlwaysAllow', selector: { matchLabels: { 'korifi.cloudfoundry.org/guid': web.metadata.name } },
    }); // prettier-ignore
  });
});

describe('the HTTPRoute', () => {
  const route = asStored<CFRoute>({
    metadata: { name: 'r', namespace: 'space', uid: 'u' },
    spec: { host: 'shop', path: '/API', domainRef: { name: 'd' } },
  });
  const build = (weights: [string, number][], more: Partial<Parameters<typeof buildHttpRoute>[0]> = {}) =>
    buildHttpRoute({
      route, fqdn: 'shop.example', gateway: { namespace: 'g', name: 'kf' }, serving: { p: 'old=1' }, marks: true, serves: true, pathExpressions: false, ...more,
      backends: weights.map(([generation, weight]) => ({ service: `s-${generation}`, port: 8080, destination: 'd', generation, weight, isReady: true })),
    }); // prettier-ignore

  test('distributes requests by weight and has a rule by which each generation can be asked alone', () => {
    const rules = build([['old', 1], ['new', 0]]).spec?.rules ?? []; // prettier-ignore
    expect(rules).toHaveLength(4);
    expect(rules[1]).toMatchObject({
      matches: ['/API', '/api'].map((value) => ({ path: { value }, headers: [{ name: 'kf-generation', value: 'new' }] })),
      backendRefs: [{ name: 's-new', weight: 1 }],
    });
    expect(rules[2]?.backendRefs?.map(({ name, weight }) => [name, weight])).toEqual([['s-old', 1]]); // prettier-ignore
  });

  test('matches a path without regard to case if the gateway can, as the name leases of routes do', () => {
    const path = (written: string) => {
      const own = { ...route, spec: { ...route.spec, path: written } };
      return build([['old', 1]], { route: own, pathExpressions: true }).spec?.rules?.at(-2)?.matches?.[0]?.path;
    };
    const { type, value = '' } = path('/Pay.v1/') ?? {};
    expect([type, value]).toEqual(['RegularExpression', String.raw`(?i)^/Pay\.v1(/.*)?$`]);
    const expression = new RegExp(value.replace('(?i)', ''), 'i');
    expect(['/pay.v1', '/PAY.V1/x', '/Pay.v1/'].every((text) => expression.test(text))).toBe(true);
    expect(['/payxv1', '/pay.v10', '/x/pay.v1'].some((text) => expression.test(text))).toBe(false);
    expect(path('')).toEqual({ type: 'PathPrefix', value: '/' });
    expect(path('/1/2')).toEqual({ type: 'PathPrefix', value: '/1/2' });
  });

  test('has no rule for plain requests if nothing should serve, and gives each of its forms its own name', () => {
    const silent = build([['old', 1]], { serves: false }); // prettier-ignore
    expect(mainBackends(silent)).toEqual([]);
    expect(mainBackends(build([['old', 1], ['new', 0]])).map(({ name }) => name)).toEqual(['s-old']); // prettier-ignore
    const forms = [silent, build([]), build([['old', 1]]), build([['old', 2]])].map(revisionOf); // prettier-ignore
    expect(new Set(forms).size).toBe(4);
    expect(revisionOf(build([['old', 1]]))).toBe(forms[2]); // prettier-ignore
    const rule = silent.spec?.rules?.at(-1);
    expect(rule?.matches?.[0]?.headers).toEqual([{ type: 'Exact', name: 'kf-route-revision', value: '?' }]);
    expect(rule?.backendRefs).toBeUndefined();
    expect(revisionOfAnswer(`http://${rule?.filters?.[0]?.requestRedirect?.hostname ?? ''}/x`)).toBe(forms[0]);
    expect(revisionOfAnswer('//0123.loaded.kf.invalid/x')).toBe('0123');
    expect([undefined, '/x', 'http://example.com/'].map(revisionOfAnswer)).toEqual([undefined, undefined, undefined]);
  });

  test('names its weights', () => {
    expect(build([['old', 1]]).metadata.annotations).toEqual({ 'serving.kf.cloudfoundry.org/p': 'old=1' });
  });

  test('never has only weights of 0, because the gateway would answer with an error of its own', () => {
    expect(build([['old', 0]]).spec?.rules?.at(-2)?.backendRefs?.[0]?.weight).toBe(1);
  });
});
