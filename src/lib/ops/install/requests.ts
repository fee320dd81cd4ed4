// The resource requests of an installation, summed over its Deployments.

import type { KubeObject } from '../../api/object.ts';

export interface RequestedResources {
  /** Thousandths of a core. */
  cpuMilli: number;
  memoryMiB: number;
}

interface PodOwner extends KubeObject {
  spec?: { replicas?: number; template?: { spec?: { containers?: { resources?: { requests?: { cpu?: string; memory?: string } } }[] } } };
}

/** `50m` or `0.5` as thousandths of a core. */
function milliFrom(cpu: string): number {
  return cpu.endsWith('m') ? Number(cpu.slice(0, -1)) : Number(cpu) * 1000;
}

/** `64Mi` or `1Gi` as MiB; setup writes no other units. */
function mebibytesFrom(memory: string): number {
  return memory.endsWith('Gi') ? Number(memory.slice(0, -2)) * 1024 : Number(memory.slice(0, -2));
}

export function sumRequests(objects: KubeObject[]): RequestedResources {
  const sum: RequestedResources = { cpuMilli: 0, memoryMiB: 0 };
  for (const object of objects) {
    if (object.kind !== 'Deployment') continue;
    const { spec } = object as PodOwner;
    for (const container of spec?.template?.spec?.containers ?? []) {
      const { cpu = '0', memory = '0Mi' } = container.resources?.requests ?? {};
      sum.cpuMilli += milliFrom(cpu) * (spec?.replicas ?? 1);
      sum.memoryMiB += mebibytesFrom(memory) * (spec?.replicas ?? 1);
    }
  }
  return sum;
}
