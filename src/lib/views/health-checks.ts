// `get-health-check` and `get-readiness-health-check`, as cf prints them.

import type { ProcessHealthCheck } from '../api/results.ts';
import { line, table, type Block } from './block.ts';

const none = [line('App has no processes')];

/** An invocation timeout that is not set is 1 s. */
export function renderHealthChecks(checks: readonly ProcessHealthCheck[]): Block[] {
  if (checks.length === 0) return none;
  const rows = checks.map(({ process, type, endpoint = '', invocationTimeoutSeconds = 1 }) => [
    process,
    type,
    endpoint,
    String(invocationTimeoutSeconds || 1),
  ]);
  return [table(['process', 'health check', 'endpoint (for http)', 'invocation timeout'], rows)];
}

const shown = (seconds: number | undefined): string => (seconds === undefined || seconds === 0 ? '' : String(seconds));

export function renderReadinessHealthChecks(checks: readonly ProcessHealthCheck[]): Block[] {
  if (checks.length === 0) return none;
  const rows = checks.map(({ process, type, endpoint = '', invocationTimeoutSeconds, intervalSeconds }) => [
    process,
    type,
    endpoint,
    shown(invocationTimeoutSeconds),
    shown(intervalSeconds),
  ]);
  return [table(['process', 'type', 'endpoint (for http)', 'invocation timeout', 'interval'], rows)];
}
