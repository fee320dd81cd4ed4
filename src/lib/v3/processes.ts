// Processes and the statistics of their instances.

import { desiredInstances, effectiveCommand } from '../api/app.ts';
import type { Stored } from '../api/object.ts';
import type { InstanceDetails } from '../api/results.ts';
import type { CFProcess } from '../api/types.generated.ts';
import { defined } from '../defined.ts';
import { identityOf, metadataOf, toOne, type LinkTo, type V3Resource } from './resource.ts';
import { megabyte } from '../api/sizes.ts';

const unlimited = -1;

const orNull = <T>(value: T | undefined): T | null => value ?? null;

function healthCheck({ healthCheck: { type, data } }: CFProcess['spec']): Record<string, unknown> {
  const { timeoutSeconds, invocationTimeoutSeconds, intervalSeconds, httpEndpoint } = data;
  const timings = { invocation_timeout: given(invocationTimeoutSeconds), interval: orNull(intervalSeconds) };
  return {
    type: type === '' ? 'process' : type,
    data: { timeout: given(timeoutSeconds), ...timings, ...(type === 'http' ? { endpoint: httpEndpoint ?? '/' } : {}) },
  };
}

function readinessCheck({ readinessHealthCheck }: CFProcess['spec']): Record<string, unknown> {
  const { type = '', data = {} } = readinessHealthCheck ?? {};
  const { invocationTimeoutSeconds, intervalSeconds, httpEndpoint } = data;
  return {
    type: type === '' ? 'process' : type,
    data: {
      invocation_timeout: orNull(invocationTimeoutSeconds),
      interval: orNull(intervalSeconds),
      ...(type === 'http' ? { endpoint: httpEndpoint ?? '/' } : {}),
    },
  };
}

/** 0 means that none was given. */
const given = (seconds: number): number | null => (seconds === 0 ? null : seconds);

export function presentProcess(process: Stored<CFProcess>, link: LinkTo): V3Resource {
  const { spec, metadata } = process;
  const self = `/v3/processes/${metadata.name}`;
  return {
    ...identityOf(process),
    type: spec.processType,
    command: orNull(effectiveCommand(process)),
    user: orNull(spec.user),
    instances: desiredInstances(process),
    memory_in_mb: spec.memoryMB,
    disk_in_mb: spec.diskQuotaMB,
    log_rate_limit_in_bytes_per_second: spec.logRateLimitBPS ?? unlimited,
    health_check: healthCheck(spec),
    readiness_health_check: readinessCheck(spec),
    relationships: { app: toOne(spec.appRef.name), revision: null },
    metadata: metadataOf(process),
    links: {
      self: link(self),
      scale: link(`${self}/actions/scale`, 'POST'),
      app: link(`/v3/apps/${spec.appRef.name}`),
      space: link(`/v3/spaces/${metadata.namespace}`),
      stats: link(`${self}/stats`),
    },
  };
}

function uptime({ since }: InstanceDetails, now: Date): number {
  const begun = Date.parse(since ?? '');
  return Number.isNaN(begun) ? 0 : Math.max(0, Math.floor((now.getTime() - begun) / 1000));
}

/** What was measured; an empty object when nothing was. */
function usage({ cpu, memoryBytes }: InstanceDetails, now: Date): Record<string, unknown> {
  if (cpu === undefined && memoryBytes === undefined) return {};
  return { time: now.toISOString(), ...defined({ cpu, mem: memoryBytes }) };
}

function presentInstance(process: Stored<CFProcess>, instance: InstanceDetails, now: Date): Record<string, unknown> {
  const { spec } = process;
  const { index, state, memoryMB = spec.memoryMB, diskMB = spec.diskQuotaMB, details } = instance;
  const common = { type: spec.processType, index, state: state.toUpperCase() };
  const rest = { uptime: uptime(instance, now), isolation_segment: null, details: orNull(details) };
  if (state === 'down') return { ...common, ...rest, uptime: 0 };
  return {
    ...common,
    routable: instance.ready ?? state === 'running',
    usage: usage(instance, now),
    host: orNull(instance.pod),
    ...rest,
    mem_quota: memoryMB * megabyte,
    disk_quota: diskMB * megabyte,
    log_rate_limit: spec.logRateLimitBPS ?? unlimited,
    fds_quota: null,
    instance_ports: [],
  };
}

/** The instances of a process. @param now the time of the answer */
export function presentStats(process: Stored<CFProcess>, instances: readonly InstanceDetails[], now: Date): Record<string, unknown> {
  return { resources: instances.map((instance) => presentInstance(process, instance, now)) };
}
