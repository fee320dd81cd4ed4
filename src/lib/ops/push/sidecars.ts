// Sidecars of a process: what a plan adds to those that are there, and whether they fit into its memory.

import { ownMemoryMB } from '../../api/app.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { formatMegabytes } from '../../api/sizes.ts';
import type { Sidecar } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { AppSnapshot } from './app-snapshot.ts';

/** Sidecars of the same name are replaced, others stay, as in cf. */
export function mergedSidecars(wanted: readonly Sidecar[], present: readonly Sidecar[] = []): Sidecar[] {
  const names = new Set(wanted.map(({ name }) => name));
  return [...present.filter(({ name }) => !names.has(name)), ...wanted];
}

/** The memory of a process is that of the app and its sidecars together. @throws KfError `usage` when nothing would be left for the app */
export function assertSidecarsFit({ processes }: AppPlan, facts: AppSnapshot, { processDefaults }: Pick<KfInfo, 'processDefaults'>): void {
  for (const { type, memoryMB, sidecars } of processes) {
    const present = facts.processes.find(({ spec }) => spec.processType === type)?.spec;
    const total = memoryMB ?? present?.memoryMB ?? processDefaults.memoryMB;
    const all = mergedSidecars(sidecars ?? [], present?.sidecars);
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
