// The autoscaler of a process: a HorizontalPodAutoscaler that sets `spec.desiredInstances` of the CFProcess (docs/decisions/0078).
// Source: https://kubernetes.io/docs/reference/kubernetes-api/autoscaling-resources/horizontal-pod-autoscaler-v2/

import { defined } from '../defined.ts';
import type { CoreCondition } from './pod.ts';
import { resource, type KubeObject } from './object.ts';
import type { Autoscaler, AutoscalerMetric } from './results.ts';
import { parseQuantity } from './sizes.ts';
import type { CFProcess } from './types.generated.ts';

/** A target or a measured value: quantities as Kubernetes writes them, utilization in percent of what the containers request. */
export interface MetricValue {
  averageValue?: string;
  averageUtilization?: number;
}

export interface ResourceMetric {
  type: 'Resource';
  resource: { name: 'cpu' | 'memory'; target: MetricValue & { type: 'AverageValue' | 'Utilization' } };
}

/** How fast it scales in one direction. */
export interface ScalingBehavior {
  stabilizationWindowSeconds?: number;
  policies?: { type: 'Pods' | 'Percent'; value: number; periodSeconds: number }[];
}

export interface HorizontalPodAutoscaler extends KubeObject {
  spec: {
    scaleTargetRef: { apiVersion?: string; kind: string; name: string };
    minReplicas?: number;
    maxReplicas: number;
    metrics?: ResourceMetric[];
    behavior?: { scaleUp?: ScalingBehavior; scaleDown?: ScalingBehavior };
  };
  status?: {
    desiredReplicas?: number;
    currentMetrics?: { type: string; resource?: { name: string; current: MetricValue } }[] | null;
    conditions?: CoreCondition[];
  };
}

export const autoscalerType = resource<HorizontalPodAutoscaler>('autoscaling', 'v2', 'HorizontalPodAutoscaler', 'horizontalpodautoscalers');

/** The metrics of cf's app-autoscaler that Kubernetes measures, and their units. */
export const metricUnits = { cpu: '%', cpuutil: '%', memoryutil: '%', memoryused: 'MB' } as const;
export type MetricName = keyof typeof metricUnits;

export interface AutoscalerSettings {
  /** Instances. */
  least: number;
  most: number;
  /** `cpu` in percent of one core, `cpuutil` and `memoryutil` in percent of what an instance may use, `memoryused` in MB; averages of all instances. */
  targets: Partial<Record<MetricName, number>>;
  behavior?: HorizontalPodAutoscaler['spec']['behavior'];
}

/** The autoscalers among others that scale one of these processes, by the process's name. */
export function autoscalersOf<T extends HorizontalPodAutoscaler>(processes: readonly CFProcess[], all: readonly T[]): Map<string, T> {
  const names = new Set(processes.map(({ metadata }) => metadata.name));
  const own = all.filter(({ spec: { scaleTargetRef } }) => scaleTargetRef.kind === 'CFProcess' && names.has(scaleTargetRef.name));
  return new Map(own.map((one) => [one.spec.scaleTargetRef.name, one]));
}

const mebibyte = 1024 * 1024;

function nameOf({ name, target }: ResourceMetric['resource']): MetricName {
  const isShare = target.type === 'Utilization';
  if (name === 'cpu') return isShare ? 'cpuutil' : 'cpu';
  return isShare ? 'memoryutil' : 'memoryused';
}

/** A value in the unit of its metric; undefined when it is not measured. */
function valueOf(metric: MetricName, value: MetricValue | undefined): number | undefined {
  if (metric === 'cpuutil' || metric === 'memoryutil') return value?.averageUtilization;
  const amount = parseQuantity(value?.averageValue);
  if (amount === undefined) return undefined;
  return Math.round(metric === 'cpu' ? amount * 100 : amount / mebibyte);
}

function metricsOf({ spec, status }: HorizontalPodAutoscaler): AutoscalerMetric[] {
  return (spec.metrics ?? []).flatMap(({ type, resource: wanted }) => {
    if ((type as string) !== 'Resource') return [];
    const metric = nameOf(wanted);
    const measured = status?.currentMetrics?.find(({ resource: one }) => one?.name === wanted.name)?.resource?.current;
    const target = valueOf(metric, wanted.target) ?? 0;
    return [{ metric, target, unit: metricUnits[metric], ...defined({ now: valueOf(metric, measured) }) }];
  });
}

/** Why it cannot scale now, in Kubernetes' words. */
function obstacleOf({ status }: HorizontalPodAutoscaler): string | undefined {
  const failed = status?.conditions?.find(({ type, status: is }) => (type === 'AbleToScale' || type === 'ScalingActive') && is === 'False');
  return failed?.message ?? failed?.reason;
}

/** The settings of an autoscaler that exists, so that a change can keep what it does not name. */
export function settingsOf(autoscaler: HorizontalPodAutoscaler): AutoscalerSettings {
  const { minReplicas = 1, maxReplicas, behavior } = autoscaler.spec;
  const targets = Object.fromEntries(metricsOf(autoscaler).map(({ metric, target }) => [metric, target]));
  return { least: minReplicas, most: maxReplicas, targets, ...defined({ behavior }) };
}

/** The metrics of an autoscaler that these targets do not replace, as they are: also those that kf cannot set. */
export function metricsBeside({ spec }: HorizontalPodAutoscaler, targets: AutoscalerSettings['targets']): ResourceMetric[] {
  return (spec.metrics ?? []).filter(({ type, resource: wanted }) => (type as string) !== 'Resource' || !(nameOf(wanted) in targets));
}

export function describeAutoscaler(process: CFProcess, autoscaler: HorizontalPodAutoscaler): Autoscaler {
  const { minReplicas = 1, maxReplicas } = autoscaler.spec;
  return {
    process: process.spec.processType,
    instances: process.spec.desiredInstances ?? 0,
    min: minReplicas,
    max: maxReplicas,
    metrics: metricsOf(autoscaler),
    ...defined({ obstacle: obstacleOf(autoscaler) }),
  };
}
