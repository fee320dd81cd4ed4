// The attributes of a manifest as `push` shows them: new, changed, and unchanged.

import { describe, expect, test } from 'vitest';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp, CFProcess, CFRoute } from '../../../src/lib/api/types.generated.ts';
import { parseManifest } from '../../../src/lib/manifest/parse.ts';
import type { PushFlags } from '../../../src/lib/manifest/plan.ts';
import { planPush } from '../../../src/lib/manifest/push-plan.ts';
import { manifestDiff, type Present } from '../../../src/lib/manifest/diff.ts';

function shown(body: string, present?: Present, flags: PushFlags = {}): string[] {
  const text = `applications:\n- name: shop\n${body.replace(/^/gm, '  ')}`;
  const manifest = { path: '/m/manifest.yml', asGiven: 'manifest.yml', ...parseManifest('manifest.yml', text) };
  const push = planPush({ workingFolder: '/m', flags, manifest });
  const [plan] = push.apps;
  if (plan === undefined) throw new Error('no app');
  return manifestDiff(plan, present, push).map((line) => `${line.sign} ${line.text}`);
}

const web = (spec: Partial<CFProcess['spec']>, processType = 'web'): Stored<CFProcess> =>
  ({
    metadata: { name: processType },
    spec: {
      processType,
      appRef: { name: 'app' },
      healthCheck: { type: 'port', data: { timeoutSeconds: 60, invocationTimeoutSeconds: 1 } },
      ...spec,
    },
  }) as Stored<CFProcess>;

function present(
  more: { processes?: Stored<CFProcess>[]; env?: Record<string, string>; uris?: string[]; image?: string; app?: Partial<CFApp> } = {},
): Present {
  const { processes = [], env = {}, uris = [], image } = more;
  const spec = { displayName: 'shop', lifecycle: { type: 'buildpack', data: { stack: '', buildpacks: ['nodejs'] } } };
  const app = {
    metadata: { name: 'app', labels: { tier: 'web' } },
    spec,
    status: { serviceBindings: [{ name: 'db' }] },
    ...more.app,
  } as unknown as Stored<CFApp>;
  const destinations = [{ guid: 'd', appRef: { name: 'app' }, processType: 'web' }];
  const ownRoutes = uris.map((uri) => ({ status: { uri }, spec: { destinations } }) as Stored<CFRoute>);
  return {
    app,
    image,
    facts: { processes, ownRoutes, env },
  };
}

describe('the attributes of a new app', () => {
  test('are all added, with flags before the manifest', () => {
    const body = 'path: dist\nmemory: 1G\nenv: {GREETING: hello}\nservices: [db]\nroutes: [{route: shop.example.com}]\nprocesses: []';
    expect(shown(body, undefined, { memoryMB: 512, instances: 2 })).toEqual([
      '  ---',
      '  applications:',
      '+ - name: shop',
      '+   path: dist',
      '+   env:',
      '+     GREETING: hello',
      '+   services:',
      '+   - db',
      '+   routes:',
      '+   - route: shop.example.com',
      '+   instances: 2',
      '+   memory: 512M',
    ]);
  });

  test('are quoted if they are not a single line', () => {
    expect(shown('env: {KEY: "a\\nb"}').at(-1)).toBe('+     KEY: "a\\nb"');
  });
});

describe('the attributes of an existing app', () => {
  test('show a difference with the old and the new value', () => {
    const app = present({
      processes: [web({ memoryMB: 256, desiredInstances: 1, command: 'npm start' })],
      env: { GREETING: 'hello', COLOUR: 'red' },
      uris: ['shop.example.com'],
    });
    const body =
      'memory: 0.5G\ninstances: 1\ncommand: npm start\ntimeout: 90\nenv: {GREETING: hello, COLOUR: green, NEW: 1}\nroutes: [{route: SHOP.example.com}, {route: shop.example.com/v2}]';
    expect(shown(body, app)).toEqual([
      '  ---',
      '  applications:',
      '  - name: shop',
      '    env:',
      '      GREETING: hello',
      '-     COLOUR: red',
      '+     COLOUR: green',
      '+     NEW: 1',
      '    routes:',
      '    - route: SHOP.example.com',
      '+   - route: shop.example.com/v2',
      '    command: npm start',
      '    instances: 1',
      '-   memory: 256M',
      '+   memory: 512M',
      '-   timeout: 60',
      '+   timeout: 90',
    ]);
  });

  test('include buildpacks, services and metadata', () => {
    const body = 'buildpacks: [python]\nservices: [db, {name: cache, binding_name: fast}]\nmetadata: {labels: {tier: api, team: null}}';
    expect(shown(body, present()).slice(3)).toEqual([
      '    buildpacks:',
      '-   - nodejs',
      '+   - python',
      '    services:',
      '    - db',
      '+   - cache',
      '    metadata:',
      '      labels:',
      '-       tier: web',
      '+       tier: api',
      '        team: null',
    ]);
  });

  test('show several processes as a list', () => {
    const app = present({ processes: [web({ memoryMB: 256 })] });
    expect(
      shown('processes:\n- {type: web, memory: 256M}\n- {type: worker, command: work, health-check-type: process}', app).slice(3),
    ).toEqual([
      '    processes:',
      '    - type: web',
      '      memory: 256M',
      '+   - type: worker',
      '+     command: work',
      '+     health-check-type: process',
    ]);
  });

  test('include an image', () => {
    const app = present({ image: 'registry.example.com/shop:1' });
    expect(shown('docker: {image: "registry.example.com/shop:2"}', app).slice(3)).toEqual([
      '    docker:',
      '-     image: registry.example.com/shop:1',
      '+     image: registry.example.com/shop:2',
    ]);
  });

  test('show another protocol of a route', () => {
    const body = 'routes: [{route: shop.example.com, protocol: http2}, {route: grpc.example.com, protocol: http2}]';
    expect(shown(body, present({ uris: ['shop.example.com'] })).slice(3)).toEqual([
      '    routes:',
      '    - route: shop.example.com',
      '-     protocol: http1',
      '+     protocol: http2',
      '+   - route: grpc.example.com',
      '+     protocol: http2',
    ]);
  });

  test('show with no-route that existing routes are removed', () => {
    expect(shown('no-route: true', present({ uris: ['shop.example.com'] })).at(-1)).toBe('+   no-route: true');
    expect(shown('no-route: true', present()).at(-1)).toBe('    no-route: true');
  });
});

test('--redact-env hides values, but not that they change', () => {
  const app = present({ env: { SAME: 'secret one', OTHER: 'secret two' } });
  const lines = shown('env: {SAME: secret one, OTHER: secret three}', app, { redactEnv: true });
  expect(lines.slice(3)).toEqual(['    env:', '      SAME: <redacted>', '-     OTHER: <redacted>', '+     OTHER: <redacted>']);
});
