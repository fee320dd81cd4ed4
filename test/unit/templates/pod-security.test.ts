// The users of kf's own pods, of which the kernel counts what all pods of a node have.

import { expect, test } from 'vitest';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import { buildController } from '../../../src/templates/setup/controller.ts';
import { buildTraefik } from '../../../src/templates/setup/gateway.ts';
import { buildListener } from '../../../src/templates/setup/network-test.ts';
import { buildPages } from '../../../src/templates/setup/pages.ts';
import { buildPullTest } from '../../../src/templates/setup/pull-test.ts';
import { buildRegistry } from '../../../src/templates/setup/registry.ts';

interface PodSpec {
  securityContext: { runAsUser: number; runAsGroup: number; fsGroup: number };
}
interface Deployment {
  kind: string;
  spec: { template: { spec: PodSpec } };
}

const plan = resolvePlan({}, '0.1.0', 'hostport');
const bundle = { name: 'bundle', hash: 'hash' };
const podsOf = (objects: readonly unknown[]): PodSpec[] =>
  (objects as Deployment[]).filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.template.spec);
const userOf = ({ securityContext: { runAsUser, runAsGroup, fsGroup } }: PodSpec) => [runAsUser, runAsGroup, fsGroup];

test("kf's own pods run as a user that no app has", () => {
  const tests = [buildListener('listener', 'image'), buildPullTest('ns', 'pull', 'image', 'secret')].map(
    ({ spec }) => spec as unknown as PodSpec,
  );
  const pods = [...podsOf([...buildController(plan, bundle), buildTraefik(plan), ...buildPages(plan, bundle)]), ...tests];
  expect(pods.map(userOf)).toEqual(Array.from({ length: 5 }, () => [60901, 60901, 60901]));
});

test('the registry keeps the user to whom the files in the volumes of existing installations belong', () => {
  expect(podsOf(buildRegistry(plan, bundle)).map(userOf)).toEqual([[1000, 1000, 1000]]);
});
