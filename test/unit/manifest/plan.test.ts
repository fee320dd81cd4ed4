import { describe, expect, test } from 'vitest';
import { parseManifest } from '../../../src/lib/manifest/parse.ts';
import type { PushFlags } from '../../../src/lib/manifest/plan.ts';
import { planPush } from '../../../src/lib/manifest/push-plan.ts';

const plan = (flags: PushFlags, text?: string) =>
  planPush({
    workingFolder: '/home/me/shop',
    flags,
    manifest:
      text === undefined ? undefined : { path: '/srv/deploy/manifest.yml', asGiven: '../deploy/manifest.yml', ...parseManifest('m', text) },
  });
const app = (flags: PushFlags, text?: string) => plan(flags, text).apps[0];
const two = 'applications: [{name: front}, {name: back}]';

describe('without a manifest', () => {
  test('name and working folder are enough', () => {
    expect(plan({ name: 'shop' })).toEqual({
      apps: [
        {
          name: 'shop',
          path: '/home/me/shop',
          pathAsGiven: '.',
          lifecycle: 'buildpack',
          env: {},
          services: [],
          routes: [],
          noRoute: false,
          randomRoute: false,
          defaultRoute: true,
          processes: [],
          sidecars: [],
          features: {},
          labels: {},
          annotations: {},
        },
      ],
      rollout: {},
      start: true,
      wait: true,
      task: false,
      redactEnv: false,
      flags: { name: 'shop' },
      warnings: [],
    });
  });

  test('a name must be given', () => {
    expect(() => plan({})).toThrow(
      'Incorrect Usage: The push command requires an app name. The app name can be supplied as an argument or with a manifest.yml file.',
    );
  });

  test('a docker image needs no path', () => {
    expect(app({ name: 'shop', dockerImage: 'nginx:1', dockerUsername: 'me' })).toMatchObject({
      lifecycle: 'docker',
      docker: { image: 'nginx:1', username: 'me' },
    });
    expect(app({ name: 'shop', dockerImage: 'nginx:1' })).not.toHaveProperty('path');
  });

  test.each([
    [{}, 'bot'],
    [{ dockerUsername: 'me' }, 'me'],
  ])('a docker image in a flag keeps the user of the manifest, unless a flag has another one: %j', (flags, username) => {
    const docker = app(
      { dockerImage: 'reg.io/shop:2', ...flags },
      'applications: [{name: a, docker: {image: reg.io/shop:1, username: bot}}]',
    )?.docker;
    expect(docker).toEqual({ image: 'reg.io/shop:2', username });
  });
});

describe('a path', () => {
  test('in the manifest is relative to its folder', () => {
    expect(app({}, 'applications: [{name: a, path: ../code}]')).toMatchObject({ path: '/srv/code', pathAsGiven: '../code' });
  });

  test('in a flag is relative to the working folder and has priority', () => {
    expect(app({ path: 'dist' }, 'applications: [{name: a, path: ../code}]')?.path).toBe('/home/me/shop/dist');
  });

  test('is by default the working folder, not that of the manifest', () => {
    expect(app({}, 'applications: [{name: a}]')?.path).toBe('/home/me/shop');
  });
});

describe('the name argument', () => {
  test('renames the only app', () => {
    expect(app({ name: 'other' }, 'applications: [{name: a}]')?.name).toBe('other');
  });

  test('chooses one of several', () => {
    expect(plan({ name: 'back' }, two).apps.map((each) => each.name)).toEqual(['back']);
  });

  test('that matches no app is reported with the nearest one', () => {
    expect(() => plan({ name: 'bakc' }, two)).toThrow(
      expect.objectContaining({ message: "Could not find app named 'bakc' in manifest", hints: ['kf push back'] }),
    );
    expect(() => plan({ name: 'bakc', manifest: '../deploy/manifest.yml' }, two)).toThrow(
      expect.objectContaining({ hints: ['kf push back -f ../deploy/manifest.yml'] }),
    );
  });

  test('cannot replace a missing name among several apps', () => {
    expect(() => plan({ name: 'a' }, 'applications: [{name: a}, {memory: 1G}]')).toThrow(
      '../deploy/manifest.yml:1:27: Found an application with no name specified.',
    );
  });
});

describe('flags beside a manifest', () => {
  const text = 'applications: [{name: a, memory: 1G, instances: 2, processes: [{type: worker, instances: 1}]}]';

  test('apply to the web process', () => {
    expect(app({ instances: 0, command: 'null', timeoutSeconds: 5 }, text)?.processes).toEqual([
      { type: 'web', memoryMB: 1024, instances: 0, command: null, timeoutSeconds: 5 },
      { type: 'worker', instances: 1 },
    ]);
  });

  test('make a web process if the manifest has only others', () => {
    expect(app({ memoryMB: 64 }, 'applications: [{name: a, processes: [{type: worker}]}]')?.processes).toEqual([
      { type: 'web', memoryMB: 64 },
      { type: 'worker' },
    ]);
  });

  test('change nothing that they do not name', () => {
    expect(app({}, text)?.processes[0]).toEqual({ type: 'web', memoryMB: 1024, instances: 2 });
  });

  test('replace buildpacks, and default removes them', () => {
    const manifest = 'applications: [{name: a, buildpacks: [x]}]';
    expect(app({ buildpacks: ['y', 'z'] }, manifest)?.buildpacks).toEqual(['y', 'z']);
    expect(app({ buildpacks: ['default'] }, manifest)?.buildpacks).toEqual([]);
  });

  test('for another health check type remove the endpoint', () => {
    const manifest = 'applications: [{name: a, health-check-type: http, health-check-http-endpoint: /x, health-check-interval: 9}]';
    expect(app({ healthCheckType: 'port' }, manifest)?.processes[0]?.healthCheck).toEqual({ type: 'port', intervalSeconds: 9 });
    expect(app({ endpoint: '/y' }, manifest)?.processes[0]?.healthCheck).toEqual({ type: 'http', endpoint: '/y', intervalSeconds: 9 });
  });

  test('for routes: no-route has priority, random-route replaces the default route, a task has no route', () => {
    expect(app({ noRoute: true }, 'applications: [{name: a, random-route: true}]')).toMatchObject({
      noRoute: true,
      randomRoute: false,
      defaultRoute: false,
    });
    expect(app({ randomRoute: true }, 'applications: [{name: a}]')).toMatchObject({ randomRoute: true, defaultRoute: false });
    expect(plan({ name: 'a', task: true })).toMatchObject({ task: true, start: false, apps: [{ noRoute: true }] });
  });
});

describe('combinations that are refused', () => {
  test.each<[PushFlags, string]>([
    [{ dockerImage: 'x', path: '.' }, 'The following arguments cannot be used together: --docker-image, -o, --path, -p'],
    [{ dockerImage: 'x', buildpacks: ['y'] }, 'The following arguments cannot be used together: --docker-image, -o, --buildpack, -b'],
    [{ noStart: true, noWait: true }, 'The following arguments cannot be used together: --no-start, --no-wait'],
    [{ noRoute: true, randomRoute: true }, 'The following arguments cannot be used together: --no-route, --random-route'],
    [{ noManifest: true, vars: ['a=b'] }, 'The following arguments cannot be used together: --no-manifest, --var'],
    [{ dockerUsername: 'x' }, "'--docker-image, -o' and '--docker-username' must be used together."],
    [{ healthCheckType: 'http', endpoint: 'healthz' }, "--endpoint must begin with '/', and it is 'healthz'."],
    [{ endpoint: 'http://shop/healthz' }, "--endpoint must begin with '/', and it is 'http://shop/healthz'."],
    [{ healthCheckType: 'http' }, "'--endpoint' and '--health-check-type=http, -u=http' must be used together."],
    [{ maxInFlight: 2 }, "'--max-in-flight' and '--strategy' must be used together."],
    [{ instanceSteps: '20', strategy: 'rolling' }, "'--instance-steps' and '--strategy=canary' must be used together."],
    [{ buildpacks: ['a', 'default'] }, 'Multiple buildpacks flags cannot have null/default option.'],
    [{ lifecycle: 'docker' }, "'--docker-image, -o' and '--lifecycle docker' must be used together."],
    [{ lifecycle: 'heroku' }, '--lifecycle must be "buildpack" or "cnb" or "docker", not "heroku"'],
  ])('%j', (flags, message) => {
    expect(() => plan({ name: 'a', ...flags })).toThrow(`Incorrect Usage: ${message}`);
  });

  test.each<[PushFlags, string, string]>([
    [{ dockerImage: 'x' }, '{name: a, buildpacks: [b]}', '--docker-image cannot be used with the manifest property buildpacks'],
    [{ dockerImage: 'x' }, '{name: a, path: b}', '--docker-image cannot be used with the manifest property path'],
    [{ path: 'x' }, '{name: a, docker: {image: b}}', '--path cannot be used with the manifest property docker'],
    [
      { endpoint: '/' },
      '{name: a, health-check-type: port}',
      '--endpoint cannot be used with the manifest property health-check-type set to port',
    ],
  ])('%j with %s', (flags, entry, message) => {
    expect(() => plan(flags, `applications: [${entry}]`)).toThrow(`Incorrect Usage: The flag option ${message}`);
  });

  test('several apps accept only the flags that apply to all', () => {
    expect(() => plan({ instances: 1 }, two)).toThrow(
      'Incorrect Usage: Command line flags (except -f and --no-start) cannot be applied when pushing multiple apps from a manifest file.',
    );
    expect(plan({ noStart: true }, two)).toMatchObject({ start: false, apps: [{ name: 'front' }, { name: 'back' }] });
  });
});

describe('canary steps', () => {
  test('are ascending percentages', () => {
    expect(plan({ name: 'a', strategy: 'canary', instanceSteps: '20,60,100' }).rollout.instanceSteps).toEqual([20, 60, 100]);
  });

  test.each(['60,20', '0', '101', '20, 60', 'x', '20,20'])('%j are refused', (steps) => {
    expect(() => plan({ name: 'a', strategy: 'canary', instanceSteps: steps })).toThrow('--instance-steps must be percentages');
  });
});

describe('settings that kf does not support yet', () => {
  const one = (entry: string) => `applications:\n- name: a\n  ${entry}`;

  test.each<[string, string]>([
    ['services: [{name: b, parameters: {c: d}}]', "../deploy/manifest.yml:3:13: Service 'b' cannot take parameters"],
  ])('%s is refused with its position, because the app would not work without it', (entry, message) => {
    expect(() => plan({}, one(entry))).toThrow(message);
    expect(() => plan({ name: 'other' }, `applications:\n- name: other\n- name: a\n  ${entry}`)).not.toThrow();
  });

  test.each<[string, string]>([
    ['features: {ssh: true}', "kf does not support the feature 'ssh' yet. It was ignored."],
    [
      'routes: [{route: a.example.com, options: {loadbalancing: round-robin}}]',
      'kf does not support options of a route (a.example.com) yet.',
    ],
    ['cnb-credentials: {a: b}', 'kf does not support credentials for buildpack images yet'],
  ])('%s is left out with a warning', (entry, message) => {
    expect(plan({}, one(entry)).warnings).toEqual([expect.stringContaining(message)]);
  });

  test('keys without effect in cf cause a warning with their position, for pushed apps only', () => {
    const text = 'colour: red\napplications:\n- name: a\n  shape: round\n- name: b\n  size: big\n';
    expect(plan({ name: 'a' }, text).warnings).toEqual([
      "../deploy/manifest.yml:1:1: 'colour' is no key of a manifest and has no effect.",
      "../deploy/manifest.yml:4:3: 'shape' is no key of an application and has no effect.",
    ]);
  });

  test('a warning lists only the first of very many', () => {
    const many = Array.from({ length: 5000 }, (_, index) => `k${index}: 1\n`).join('');
    const { warnings } = plan({}, `${many}applications: [{name: a}]\n`);
    expect([warnings.length, warnings.at(-1)]).toEqual([21, '... and 4980 more']);
  });

  test('a setting that changes nothing causes no warning', () => {
    const { warnings } = plan({}, one('features: {ssh: false, service-binding-k8s: true}'));
    expect(warnings).toEqual([]);
  });
});

describe('metadata', () => {
  const metadata = (text: string) => plan({}, `applications:\n- name: a\n  metadata: ${text}`);

  test('becomes the labels and annotations of the app, and null removes one', () => {
    const { apps } = metadata('{labels: {team: pay, example.com/tier: "1"}, annotations: {note: any text, old: null}}');
    expect(apps[0]).toMatchObject({ labels: { team: 'pay', 'example.com/tier': '1' }, annotations: { note: 'any text', old: null } });
  });

  test.each<[string, string]>([
    ['{labels: {korifi.cloudfoundry.org/app-guid: x}}', "the platform's own"],
    ['{annotations: {app.kubernetes.io/name: x}}', "the platform's own"],
    ['{labels: {-team: x}}', "'-team' cannot be a name in labels"],
    ['{labels: {team: two words}}', "'two words' cannot be the value of a label"],
  ])('%s is refused', (text, message) => {
    expect(() => metadata(text)).toThrow(message);
  });
});
