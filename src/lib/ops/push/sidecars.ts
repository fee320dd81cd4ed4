// Sidecars of a process: what a plan adds to those that are there, and whether they fit into its memory.

import { ownMemoryMB } from '../../api/app.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { formatMegabytes } from '../../api/sizes.ts';
import type { Sidecar } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { AppSnapshot } from './app-snapshot.ts';

/**
 * The sidecars that a process is to have. Those that the manifest names replace the present ones of the same name, or are taken away if the manifest
 * gives them to other processes only; others stay, as in cf.
 * @param wanted those that the manifest gives to this process
 * @param named all names of sidecars in the manifest
 */
export function mergedSidecars(wanted: readonly Sidecar[], present: readonly Sidecar[], named: ReadonlySet<string>): Sidecar[] {
  return [...present.filter(({ name }) => !named.has(name)), ...wanted];
}

/** All names of sidecars in the manifest. */
export const namedSidecars = ({ sidecars }: AppPlan): ReadonlySet<string> => new Set(sidecars.map(({ name }) => name));

/** The memory of a process is that of the app and its sidecars together. @throws KfError `usage` when nothing would be left for the app */
export function assertSidecarsFit(plan: AppPlan, facts: AppSnapshot, { processDefaults }: Pick<KfInfo, 'processDefaults'>): void {
  const named = namedSidecars(plan);
  for (const { type, memoryMB, sidecars } of plan.processes) {
    const present = facts.processes.find(({ spec }) => spec.processType === type)?.spec;
    const total = memoryMB ?? present?.memoryMB ?? processDefaults.memoryMB;
    const all = mergedSidecars(sidecars ?? [], present?.sidecars ?? [], named);
    const left = ownMemoryMB(total, all);
    if (all.length === 0 || left > 0) continue;
    const needed = formatMegabytes(total - left);
    throw new KfError(
      'usage',
      `The sidecars of process '${type}' take ${needed} of its ${formatMegabytes(total)} of memory, which leaves nothing for the app.`,
      { hints: ["Give the process more memory, or its sidecars less: 'memory' in the manifest counts for all of them together."] },
    );
  }
}
