// The HorizontalPodAutoscaler of a process.

import type { AutoscalerSettings, HorizontalPodAutoscaler, MetricName, ResourceMetric } from '../lib/api/autoscaler.ts';
import { autoscalerType } from '../lib/api/autoscaler.ts';
import { kinds, labels } from '../lib/api/group.ts';
import { apiVersionOf, type Stored } from '../lib/api/object.ts';
import type { CFProcess } from '../lib/api/types.generated.ts';
import { defined } from '../lib/defined.ts';
import { ownerReference } from './metadata.ts';

const metrics: Record<MetricName, (target: number) => ResourceMetric['resource']> = {
  // One percent of a core.
  cpu: (target) => ({ name: 'cpu', target: { type: 'AverageValue', averageValue: `${String(target * 10)}m` } }),
  cpuutil: (target) => ({ name: 'cpu', target: { type: 'Utilization', averageUtilization: target } }),
  memoryutil: (target) => ({ name: 'memory', target: { type: 'Utilization', averageUtilization: target } }),
  memoryused: (target) => ({ name: 'memory', target: { type: 'AverageValue', averageValue: `${String(target)}Mi` } }),
};

/** It has the name of its process, and is deleted with it. */
export function buildAutoscaler(
  process: Stored<CFProcess>,
  { least, most, targets, behavior }: AutoscalerSettings,
): HorizontalPodAutoscaler {
  const { name, namespace } = process.metadata;
  const wanted = Object.entries(targets) as [MetricName, number][];
  return {
    apiVersion: apiVersionOf(autoscalerType),
    kind: autoscalerType.kind,
    metadata: {
      name,
      namespace,
      labels: { [labels.appGuid]: process.spec.appRef.name },
      ownerReferences: [ownerReference(kinds.process, process, false)],
    },
    spec: {
      scaleTargetRef: { apiVersion: apiVersionOf(kinds.process), kind: kinds.process.kind, name },
      minReplicas: least,
      maxReplicas: most,
      metrics: wanted.map(([metric, target]) => ({ type: 'Resource', resource: metrics[metric](target) })),
      ...defined({ behavior }),
    },
  };
}
