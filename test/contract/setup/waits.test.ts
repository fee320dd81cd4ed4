// What setup says of a program of its own that does not start.

import { expect, test } from 'vitest';
import { deploymentType } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { waitForDeployment } from '../../../src/lib/ops/install/waits.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const place = { namespace: 'kf-node', name: 'kf-gateway' };
/** As Traefik 3.6.12 ends, with colours. */
const lastLine =
  '\u001B[31mERR\u001B[0m command traefik error: plugin: failed to create plugin builder: failed to import plugin code "kf.cloudfoundry.org/guard": undefined type';

async function failureWith(message: string | undefined): Promise<{ message: string; hints: readonly string[] }> {
  const cluster = new MemoryCluster();
  await cluster.create(deploymentType, { metadata: { ...place } });
  const terminated = { exitCode: 1, ...(message === undefined ? {} : { message }) };
  const state = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container' } };
  const container = { name: 'traefik', ready: false, restartCount: 1, image: 'traefik', imageID: '', state, lastState: { terminated } };
  await cluster.create(podType, {
    metadata: { namespace: place.namespace, name: 'kf-gateway-1', labels: { app: place.name } },
    status: { containerStatuses: [container] },
  });
  const failed: unknown = await waitForDeployment({ cluster, report: () => undefined }, { ...place, timeoutMs: 50 }).catch(
    (error: unknown) => error,
  );
  return failed as { message: string; hints: readonly string[] };
}

test('a gateway that cannot run the guard says so, and the hint is the option that goes without it', async () => {
  const { message, hints } = await failureWith(`WRN encoded characters\n${lastLine}\n`);
  expect(message).toContain('CrashLoopBackOff: back-off 10s restarting failed container. It said: ERR command traefik error: plugin');
  expect(hints[0]).toContain('kf setup --gateway-guard off');
});

test('a program whose pod keeps no last words is reported without them', async () => {
  const { message, hints } = await failureWith(undefined);
  expect(message).toMatch(/CrashLoopBackOff: back-off 10s restarting failed container$/);
  expect(hints).toEqual(['Run kf setup again: it goes on where it stopped.']);
});
