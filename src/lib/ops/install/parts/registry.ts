// The registry in the cluster. It is tested before the parts that need it are installed: without it, nodes could not pull pushed images.

import { bundleName } from '../../../../templates/setup/controller.ts';
import { systemNamespace } from '../../../../templates/setup/options.ts';
import { buildRegistry, registryName } from '../../../../templates/setup/registry.ts';
import { readGateStatus } from '../../registry/gate.ts';
import { ensureRegistryKey, replaceImmutableKeySecret } from '../../registry/key.ts';
import { otherRegistries } from '../alternatives.ts';
import type { PlannedChange } from '../applier.ts';
import type { Part, SetupRun } from '../part.ts';
import { proveRegistry } from '../registry-proof.ts';
import { startMs, waitForDeployment } from '../waits.ts';

/** An unchanged registry was tested before, unless the earlier setup ended before it reached the controller. */
export function needsProof({ registry, controller }: Record<'registry' | 'controller', PlannedChange[]>): boolean {
  return registry.some(({ action }) => action !== 'unchanged') || controller.some(({ action }) => action === 'create');
}

/** Waits for the registry, and returns whether it is too full for pushes. It runs even then, because existing images are pulled from it. */
async function isRegistryFull(run: SetupRun, key: Buffer): Promise<boolean> {
  const place = { namespace: systemNamespace, service: registryName, port: 5000 };
  const roomNow = async () => (await readGateStatus(run.cluster, place, key, run.signal)).room;
  const isFull = (): Promise<boolean> =>
    roomNow().then(
      ({ nearlyFull }) => nearlyFull,
      () => false,
    );
  await waitForDeployment(run, { ...place, name: registryName, timeoutMs: startMs }, isFull);
  const { nearlyFull, free, total } = await roomNow();
  if (nearlyFull) run.report({ type: 'registry-full', free, total });
  return nearlyFull;
}

/** Returns when nodes can pull from it. @throws KfError naming the reason why they cannot */
async function waitAndProve(run: SetupRun): Promise<void> {
  const { cluster, plan, report, signal } = run;
  if (plan.registry !== undefined) return;
  const key = await ensureRegistryKey(cluster);
  const isFull = await isRegistryFull(run, key);
  const registry = ['programs', 'network', 'registry'].flatMap((name) => run.changes(name));
  if (isFull || !needsProof({ registry, controller: run.changes('controller') })) return;
  report({ type: 'install-step', step: 'registry-proof' });
  await proveRegistry(cluster, plan, key, signal);
}

export const part: Part = {
  name: 'registry',
  requires: ['network', 'programs', 'settings'],
  step: 'registry',
  objects: ({ plan, programs }) => (plan.registry === undefined ? buildRegistry(plan, bundleName(programs)) : []),
  // Apps that were built before have their images in it.
  alternatives: ({ plan, programs }) => otherRegistries(plan).flatMap((other) => buildRegistry(other, bundleName(programs))),
  before: async ({ cluster, plan }) => {
    if (plan.registry === undefined) await replaceImmutableKeySecret(cluster);
  },
  after: waitAndProve,
};
