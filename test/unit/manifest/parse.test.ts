import { describe, expect, test } from 'vitest';
import { KfError } from '../../../src/lib/errors.ts';
import { parseManifest } from '../../../src/lib/manifest/parse.ts';
import type { ManifestApp } from '../../../src/lib/manifest/application.ts';

const parse = (text: string): ManifestApp[] => parseManifest('manifest.yml', text).apps;
const one = (body: string): ManifestApp => {
  const [app] = parse(`applications:\n- name: shop\n${body.replace(/^/gm, '  ')}`);
  if (app === undefined) throw new Error('no app');
  return app;
};
const failure = (text: string): KfError => {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof KfError) return error;
    throw error;
  }
  throw new Error('the manifest was accepted');
};
/** Problem of one app's body; its first line is line 3, column 3. */
const problem = (body: string): string => failure(`applications:\n- name: shop\n${body.replace(/^/gm, '  ')}`).message;

describe('a complete app', () => {
  const app = one(`path: ./dist
buildpacks: [nodejs, procfile]
stack: cflinuxfs4
memory: 256M
disk_quota: 1G
log-rate-limit-per-second: -1
instances: 2
command: npm start
timeout: 300
health-check-type: http
health-check-http-endpoint: /healthz
health-check-interval: 10
readiness-health-check-type: port
env: {GREETING: hello}
services:
- db
- name: cache
  binding_name: fast
  parameters: {size: 3}
routes:
- route: shop.example.com/v1
- route: tcp://tcp.example.com:1234
metadata:
  labels: {team: web}
  annotations: {old: null}
features: {ssh: false}
processes:
- type: worker
  memory: 512M
  health-check-type: none
sidecars:
- name: proxy
  command: ./proxy
  process_types: [web]
  memory: 64M`);

  test('has its source and buildpacks', () => {
    expect(app).toMatchObject({
      name: 'shop',
      path: './dist',
      buildpacks: ['nodejs', 'procfile'],
      stack: 'cflinuxfs4',
      env: { GREETING: 'hello' },
    });
  });

  test('has the app-level keys as its web process, and the listed processes', () => {
    expect(app.processes).toEqual([
      {
        type: 'web',
        memoryMB: 256,
        diskQuotaMB: 1024,
        logRateLimitBPS: -1,
        instances: 2,
        command: 'npm start',
        timeoutSeconds: 300,
        healthCheck: { type: 'http', endpoint: '/healthz', intervalSeconds: 10 },
        readinessHealthCheck: { type: 'port' },
      },
      { type: 'worker', memoryMB: 512, healthCheck: { type: 'process' } },
    ]);
  });

  test('has the names of its variables as they are written', () => {
    const {
      apps: [app],
    } = parseManifest('m', 'applications: [{name: a, env: {N: 1, on: 2, "yes": 4, .a: 6}}]');
    expect(Object.keys(app?.env ?? {}).toSorted()).toEqual(['.a', 'N', 'on', 'yes']);
  });

  test('has services, routes, metadata, features and sidecars', () => {
    expect(app.services).toEqual([{ name: 'db' }, { name: 'cache', bindingName: 'fast', parameters: { size: 3 } }]);
    expect(app.routes).toEqual([
      { text: 'shop.example.com/v1', hostname: 'shop.example.com', path: '/v1' },
      { text: 'tcp://tcp.example.com:1234', hostname: 'tcp.example.com', port: 1234, protocol: 'tcp' },
    ]);
    expect(app.labels).toEqual({ team: 'web' });
    expect(app.annotations).toEqual({ old: null });
    expect(app.features).toEqual({ ssh: false });
    expect(app.sidecars).toEqual([{ name: 'proxy', command: './proxy', processTypes: ['web'], memoryMB: 64 }]);
  });
});

describe("YAML in cf's dialect", () => {
  test('can have anchors at the top, and own keys have priority over merge keys', () => {
    const apps = parse(`common: &common
  memory: 128M
  instances: 2
applications:
- name: a
  <<: *common
- name: b
  <<: [*common]
  memory: 64M
`);
    expect(apps.map((app) => app.processes[0])).toEqual([
      { type: 'web', memoryMB: 128, instances: 2 },
      { type: 'web', memoryMB: 64, instances: 2 },
    ]);
  });

  test('can have unknown top-level keys that contain an anchor or have the prefix x-', () => {
    expect(parse('shared:\n  env: &env {A: b}\nx-note: hello\napplications:\n- {name: a, env: *env}\n')[0]?.env).toEqual({ A: 'b' });
  });

  test.each(['yes', 'On', 'TRUE', 'y', 'Y'])('%s is true where a boolean is expected', (word) => {
    expect(one(`no-route: ${word}`).noRoute).toBe(true);
  });

  test.each([
    ['A: yes', 'yes'],
    ['A: 1.10', '1.10'],
    ['A: 12345678901234567890', '12345678901234567890'],
    ['A: 0755', '0755'],
    ['A: 10:30', '10:30'],
    ['A: 2026-08-07', '2026-08-07'],
    ['A: "007"', '007'],
    ['A: {b: [1, two]}', '{"b":[1,"two"]}'],
    ['A:', ''],
  ])('has env %s as %j', (env, text) => {
    expect(one(`env:\n  ${env}`).env).toEqual({ A: text });
  });

  test('is reported with its position if it is invalid', () => {
    expect(failure('applications:\n- name: [a\n').message).toMatch(
      /^Unable to push app because manifest manifest.yml is not valid yaml\.\nmanifest.yml:\d+:\d+: /,
    );
  });

  test('is refused if an alias refers to nothing, to itself, or to too much', () => {
    expect(failure('applications: [*a]').message).toBe("manifest.yml:1:16: There is no anchor '&a'.");
    expect(failure('applications: &a [*a]').message).toBe("manifest.yml:1:19: The anchor '&a' contains itself.");
    const bomb = [
      'a0: &a0 [x, x, x, x, x, x, x, x, x, x]',
      ...[1, 2, 3, 4, 5, 6].map(
        (n) =>
          `a${n}: &a${n} [${Array(10)
            .fill(`*a${n - 1}`)
            .join(', ')}]`,
      ),
    ];
    expect(failure(bomb.join('\n')).message).toContain('This file has more than 100000 values, with what its aliases unfold to.');
  });
});

describe('keys without an effect in cf and in kf cause a warning and are left out', () => {
  const warned = (body: string): string[] => one(body).notYet.map(({ refused, text }) => `${refused ? 'refused' : 'warned'}: ${text}`);

  test.each([
    ['memmory: 256M', "'memmory' is no key of an application and has no effect. Did you mean 'memory'?"],
    [
      'host: shop',
      "'host' is no key of an application and has no effect. Use 'routes': a list of entries such as 'route: host.example.com'.",
    ],
    ['inherit: base.yml', "'inherit' is no key of an application and has no effect. Use a YAML anchor (&name, *name, <<) instead."],
    ['colour: {a: [1]}', "'colour' is no key of an application and has no effect."],
    ['processes: [{type: web, memroy: 1G}]', "'memroy' is no key of a process and has no effect. Did you mean 'memory'?"],
    ['routes: [{route: a.example.com, hsot: a}]', "'hsot' is no key of a route and has no effect."],
  ])('%j', (body, text) => {
    expect(warned(body)).toEqual([`warned: ${text}`]);
  });

  test('in each app, with their positions', () => {
    const [first, second] = parse('applications:\n- name: a\n  x: 1\n- name: b\n  y: 2\n');
    expect([first?.notYet, second?.notYet].map((found) => found?.map(({ at }) => at))).toEqual([
      [{ line: 3, column: 3 }],
      [{ line: 5, column: 3 }],
    ]);
  });

  test('as an app setting or any other key at the top level', () => {
    expect(parseManifest('manifest.yml', 'memory: 1G\nfoo: bar\napplications: [{name: a}]\n').remarks.map(({ text }) => text)).toEqual([
      "'memory' is no key of a manifest and has no effect. A setting of an app belongs into its entry under 'applications'.",
      "'foo' is no key of a manifest and has no effect.",
    ]);
    const anchors = 'x-any: 1\nbase: &base {memory: 1G}\napplications: [{<<: *base, name: a}]\n';
    expect(parseManifest('manifest.yml', anchors).remarks).toEqual([]);
  });

  test('and are an error if no application remains', () => {
    expect(failure('aplications: [{name: a}]\n').message).toBe(
      "manifest.yml:1:1: 'aplications' is no key of a manifest and has no effect. Did you mean 'applications'?\nManifest must have at least one application.",
    );
  });
});

describe('an error in a manifest', () => {
  test('in a docker image, service, sidecar, metadata or feature names the position and the allowed keys', () => {
    const error = failure('applications:\n- name: shop\n  docker: {image: a, usrname: b}\n');
    expect(error.message).toBe("manifest.yml:3:22: 'usrname' is no key of docker. Did you mean 'username'?");
    expect(error.code).toBe('usage');
    expect(error.hints).toEqual(['Allowed in docker: image, username.']);
  });

  test('does not hide the others: all are reported at once, in the order of the file', () => {
    expect(problem('instances: -1\nmemory: 256\nroutes: [{rout: a.b}]').split('\n')).toEqual([
      'manifest.yml:3:14: instances must be a whole number of at least 0.',
      "manifest.yml:4:11: memory must use a supported unit (B, K, KB, M, MB, G, GB, T or TB) and be at least 1M, for example 256M; it is '256'.",
      "manifest.yml:5:12: A route needs 'route'.",
    ]);
  });
});

describe('the rules of cf', () => {
  test.each([
    ['disk_quota: 1G\ndisk-quota: 2G', "'disk-quota' says the same as 'disk_quota' in line 3"],
    ['buildpack: a\nbuildpacks: [b]', 'buildpack and buildpacks exclude each other'],
    ['docker: {image: a}\nbuildpacks: [b]', 'docker and buildpacks exclude each other'],
    ['docker: {username: a}', "docker needs 'image'"],
    ['docker: {dockerfile: Dockerfile}', 'kf builds no Dockerfiles: builds run without root'],
    ['lifecycle: docker', 'lifecycle docker needs docker with an image'],
    ['random-route: true\ndefault-route: true', 'random-route and default-route cannot both be true'],
    ['processes: [{type: web}, {type: web}]', "Process type 'web' is listed twice"],
    ['processes: [{memory: 1G}]', "A process needs 'type'"],
    ['health-check-type: port\nhealth-check-http-endpoint: /a', 'health-check-http-endpoint goes with health-check-type http, not port'],
    ['health-check-type: tcp', "health-check-type must be 'http' or 'port' or 'process' or 'none', not 'tcp'"],
    ['routes: [shop.example.com]', "An entry of routes is a map: 'route: host.example.com'"],
    ['routes: [{route: "no route"}]', "'no route' is no route"],
    ['env: {VCAP_SERVICES: x}', "'VCAP_SERVICES' is set by the platform"],
    ['env: {GOOD: x, COLOUR: "a\\0b"}', "The value of variable 'COLOUR' contains a NUL character"],
    ['env: {PORT: 1}', "'PORT' is set by the platform"],
    ['env: {A B: 1}', "'A B' cannot be the name of a variable"],
    ['env: {1A: 1}', "'1A' cannot be the name of a variable"],
    ['env: {..a: 1}', "'..a' cannot be the name of a variable"],
    ['env: {"": 1}', 'A variable needs a name.'],
    [`env: {A: ${'x'.repeat(131_071)}}`, "The value of 'A' has 131071 bytes"],
    [
      `env: {${Array.from({ length: 10 }, (_, index) => `A${index}: ${'x'.repeat(100_100)}`).join(', ')}}`,
      'The variables of an app take 1000000 bytes together',
    ],
    ['sidecars: [{name: a, command: b}]', "A sidecar needs 'process_types'"],
    ['memory: 0', 'memory must use a supported unit'],
    ['timeout: 86401', 'timeout can be at most 86400, not 86401.'],
    ['timeout: 0', 'timeout must be a whole number of at least 1.'],
    ['command: ""', 'command must have 1 to 4096 characters'],
    ['services: [db, {name: other, binding-name: db}]', "Two services of the app are bound under the name 'db'"],
    ['services: [[a]]', 'An entry of services is a name, or a map with a name'],
  ])('%j is refused', (body, message) => {
    expect(problem(body)).toContain(message);
  });

  test('an app name that is not possible is refused', () => {
    expect(failure('applications: [{name: my shop}]').message).toContain(
      "The name of an app consists of letters, digits, '-' and '_'; it is 'my shop'.",
    );
  });

  test('two apps cannot have the same name', () => {
    expect(failure('applications:\n- name: a\n- name: A\n').message).toBe("manifest.yml:3:9: An app named 'A' stands already in line 2.");
  });

  test.each(['', '---', 'applications: []', 'version: 1'])('%j has no application', (text) => {
    expect(failure(text).message).toBe('Manifest must have at least one application.');
  });

  test('only version 1 is accepted', () => {
    expect(failure('version: 2\napplications: [{name: a}]').message).toBe('manifest.yml:1:10: version can only be 1.');
  });

  test('a listed web process replaces the app-level keys completely', () => {
    expect(one('memory: 1G\ninstances: 3\nprocesses:\n- type: web\n  memory: 64M').processes).toEqual([{ type: 'web', memoryMB: 64 }]);
  });

  test('command: null restores the detected command, and without command nothing changes', () => {
    expect(one('command: null').processes).toEqual([{ type: 'web', command: null }]);
    expect(one('stack: x').processes).toEqual([]);
  });

  test('an empty list of buildpacks, or default, means detection', () => {
    expect(one('buildpacks: []').buildpacks).toEqual([]);
    expect(one('buildpack: default').buildpacks).toEqual([]);
    expect(one('stack: x').buildpacks).toBeUndefined();
  });
});
