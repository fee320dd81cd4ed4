// Attacker: a developer who fills a space to every limit with the largest possible objects, and requests as many instances as possible.

import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { controllerLine, readControllerReport } from '../../support/controller-report.ts';
import { kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Input, type Member } from '../../support/members.ts';
import type { Place } from '../../support/developer.ts';
import { untilQuotaHolds } from '../../support/quota.ts';
import { until } from '../../support/until.ts';

const world = new TestWorld();
const apiVersion = 'korifi.cloudfoundry.org/v1alpha1';
/** Four bytes each in memory, and one character for a schema. */
const text = (characters: number): string => '\u{1F600}'.repeat(characters);
let place: Place;
let attacker: Member;

beforeAll(async () => {
  place = await world.space();
  attacker = await world.member('spaceDeveloper', place);
  await until(
    'the quota of the space to name the kinds',
    async () => {
      const { spec, status } = await quota();
      return (
        spec.hard['count/cfapps.korifi.cloudfoundry.org'] !== undefined &&
        Object.keys(status.used ?? {}).length === Object.keys(spec.hard).length
      );
    },
    180_000,
  );
});
afterAll(() => world.remove());

interface Quota {
  spec: { hard: Record<string, string> };
  status: { used?: Record<string, string> };
}
const quota = (): Promise<Quota> => kubectlJson<Quota>('get', 'resourcequota', 'kf-limits', '-n', place.space);

const made = (kind: string, name: string, spec: object): object => ({
  apiVersion,
  kind,
  metadata: {
    name,
    namespace: place.space,
    labels: Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`example.com/l${index}`, 'x'.repeat(63)])),
    annotations: { 'example.com/large': 'x'.repeat(60_000), 'kf.cloudfoundry.org/large': 'x'.repeat(4_000) },
  },
  spec,
});

const app = randomUUID();
const batch = 100;
const refused = /exceeded quota: kf-limits/;
/** Many objects at once: the API server counts one after the other, and rejects some. */
const busy = /on resourcequotas "kf-limits": the object has been modified/;
const kinds: [kind: string, plural: string, spec: (index: number) => object][] = [
  [
    'CFApp',
    'cfapps',
    (index) => ({
      displayName: `a${index}`.padEnd(255, 'x'),
      desiredState: 'STOPPED',
      lifecycle: {
        type: 'buildpack',
        data: { stack: text(255), buildpacks: Array.from({ length: 16 }, (_, one) => `${one}`.padEnd(255, 'x')) },
      },
    }),
  ],
  [
    'CFProcess',
    'cfprocesses',
    () => ({
      appRef: { name: app },
      processType: 'web',
      command: text(8_192),
      detectedCommand: text(8_192),
      memoryMB: 64,
      diskQuotaMB: 64,
      healthCheck: { type: 'http', data: { httpEndpoint: text(2_048), invocationTimeoutSeconds: 1, timeoutSeconds: 1 } },
    }),
  ],
  ['CFPackage', 'cfpackages', () => ({ type: 'docker', appRef: { name: app }, source: { registry: { image: text(1_024) } } })],
  ['CFTask', 'cftasks', () => ({ appRef: { name: app }, command: text(8_192) })],
  [
    'CFServiceInstance',
    'cfserviceinstances',
    (index) => ({
      displayName: `s${index}`.padEnd(255, 'x'),
      type: 'user-provided',
      secretName: 'none',
      planGuid: '',
      tags: Array.from({ length: 64 }, () => text(255)),
    }),
  ],
];

describe('a space that is filled to its limits', () => {
  test('accepts no more objects, and the controller serves all other spaces as before, also after a restart', async () => {
    const before = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
    for (const [kind, plural, spec] of kinds) {
      const most = Number(
        (await kubectlJson<Quota>('get', 'resourcequota', 'kf-limits', '-n', place.space)).spec.hard[
          `count/${plural}.korifi.cloudfoundry.org`
        ],
      );
      expect(most).toBeGreaterThan(0);
      for (let [from, isFull] = [0, false]; !isFull; from += batch) {
        // The cluster counts again from time to time, from a cache in which some objects may be missing; then it admits as many more.
        expect(from, kind).toBeLessThanOrEqual(most + 2 * batch);
        const objects: Input = Array.from({ length: batch }, (_, index) =>
          made(kind, from + index === 0 && kind === 'CFApp' ? app : randomUUID(), spec(from + index)),
        );
        const said = await attacker.kubectl(['create', '-f', '-'], objects);
        const isOther = (line: string): boolean => line !== '' && !refused.test(line) && !busy.test(line);
        expect(said.stderr.split('\n').filter(isOther)).toEqual([]);
        isFull = refused.test(said.stderr);
      }
    }
    const elsewhere = await world.space();
    expect(elsewhere.space).not.toBe(place.space);
    const after = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
    expect(after.map(({ pod, restarts }) => [pod, restarts])).toEqual(before.map(({ pod, restarts }) => [pod, restarts]));

    // The worst moment, because everything is read at once.
    await kubectl('delete', 'pods', '-n', 'kf-system', '-l', 'app=kf-controller');
    await kubectl('rollout', 'status', 'deployment/kf-controller', '-n', 'kf-system', '--timeout=120s');
    await world.space();
    const [fresh] = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
    console.log(after.map(controllerLine).join('\n'), fresh === undefined ? '' : controllerLine(fresh));
    expect(fresh?.restarts).toBe(0);
    expect(fresh?.peakBytes ?? Infinity).toBeLessThan(700 * 1024 * 1024);
  });
});

describe('an app with as many instances as possible', () => {
  const name = 'many-instances';

  test('is refused beyond the limit, shows why instances are missing, and scales back to one immediately', async () => {
    const home = await world.space();
    const developer = await world.member('spaceDeveloper', home);
    await developer.kf.ok('push', name, '-p', path.resolve('test/fixtures/apps/node-hello'), '-m', '64M');
    const few = [{ op: 'replace', path: '/spec/hard', value: { pods: '2' } }];
    await kubectl('patch', 'resourcequota', 'kf-limits', '-n', home.space, '--type=json', '-p', JSON.stringify(few));
    await untilQuotaHolds(home.space, 'kf-limits');

    const refused = await developer.kf.run(['scale', name, '-i', '5000']);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain("invalid argument for flag '-i': 5000 is too much, at most 1000 is possible");
    const [{ metadata }] = (await kubectlJson<{ items: { metadata: { name: string } }[] }>('get', 'cfprocesses', '-n', home.space))
      .items as [{ metadata: { name: string } }];
    const patch = ['patch', 'cfprocess', metadata.name, '-n', home.space, '--type=merge', '-p'];
    expect((await developer.kubectl([...patch, '{"spec":{"desiredInstances":5000}}'])).stderr).toContain(
      'should be less than or equal to 1000',
    );

    const scaled = await developer.kf.run(['scale', name, '-i', '1000']);
    expect(scaled).toMatchObject({ code: 1 });
    expect(scaled.stderr).toContain(`App '${name}' cannot have 1000 instances of 'web' in space`);
    expect(scaled.stderr).toContain('kf-limits');
    expect(await developer.kubectl([...patch, '{"spec":{"desiredInstances":1000}}'])).toMatchObject({ code: 0 });
    interface Seen {
      status: { instancesStatus: object; instanceCounts: { down: number } };
    }
    const process = (): Promise<Seen> => kubectlJson<Seen>('get', 'cfprocess', metadata.name, '-n', home.space);
    await until('the status to count all instances', async () => (await process()).status.instanceCounts.down >= 998);
    const { status } = await process();
    expect(Object.keys(status.instancesStatus)).toHaveLength(100);
    expect(JSON.stringify(status).length).toBeLessThan(100_000);

    await developer.kf.ok('scale', name, '-i', '1');
    await expect.poll(async () => (await process()).status.instanceCounts).toEqual({ running: 1, starting: 0, crashed: 0, down: 0 });
  });
});
