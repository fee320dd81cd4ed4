import { expect, test } from 'vitest';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import { buildController } from '../../../src/templates/setup/controller.ts';
import { buildGateway } from '../../../src/templates/setup/gateway.ts';

interface Deployment {
  kind: string;
  spec: {
    template: { spec: { containers: { command?: string[]; livenessProbe?: { timeoutSeconds?: number; failureThreshold: number } }[] } };
  };
}

test('a program of kf that gets little CPU time is not restarted before three of its answers were 10 s late', () => {
  const plan = resolvePlan({}, '0.1.0', 'hostport');
  for (const objects of [buildController(plan, { name: 'bundle' }), buildGateway(plan)]) {
    const found = (objects as unknown as Deployment[]).find(({ kind }) => kind === 'Deployment');
    expect(found?.spec.template.spec.containers[0]?.livenessProbe).toMatchObject({ timeoutSeconds: 10, failureThreshold: 3 });
  }
});

test('the controller gets 70 % of its memory for its heap, and little of that for new objects', () => {
  const plan = resolvePlan({ controllerMemoryMB: 1_000 }, '0.1.0', 'hostport');
  const found = (buildController(plan, { name: 'bundle' }) as unknown as Deployment[]).find(({ kind }) => kind === 'Deployment');
  expect(found?.spec.template.spec.containers[0]?.command?.slice(1, -1)).toEqual([
    '--max-old-space-size=700',
    '--max-semi-space-size=1',
    '--optimize-for-size',
  ]);
});
