// The metrics at /metrics (docs/metrics.md). No label has names that users choose, so the number of series does not grow with their objects.

import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** How a reconcile ended. */
export const reconcileOutcomes = ['success', 'requeue', 'waiting', 'terminal', 'conflict', 'error'] as const;
export type ReconcileOutcome = (typeof reconcileOutcomes)[number];

export type Ended = 'succeeded' | 'failed';
const ends: readonly Ended[] = ['succeeded', 'failed'];

const seconds = {
  request: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  reconcile: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60],
  rollout: [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600],
  build: [1, 5, 10, 20, 30, 60, 120, 300, 600, 900],
  push: [2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200],
};

/** The metrics of one controller. */
export class Metrics {
  readonly registry = new Registry();
  readonly #own = { registers: [this.registry] };
  readonly #collectors: (() => void)[] = [];

  readonly reconciles = new Counter({
    ...this.#own,
    name: 'kf_reconcile_total',
    help: 'Reconciles that have ended, by outcome.',
    labelNames: ['reconciler', 'outcome'],
  });
  readonly reconcileSeconds = new Histogram({
    ...this.#own,
    name: 'kf_reconcile_duration_seconds',
    help: 'Time that reconciles took.',
    labelNames: ['reconciler'],
    buckets: seconds.reconcile,
  });
  readonly queueDepth = new Gauge({
    ...this.#own,
    name: 'kf_queue_depth',
    help: 'Objects that wait for a reconcile.',
    labelNames: ['reconciler'],
  });
  readonly requests = new Counter({
    ...this.#own,
    name: 'kf_api_requests_total',
    help: 'Requests to the API server, without watches and lists of the caches.',
    labelNames: ['verb', 'kind'],
  });
  readonly requestSeconds = new Histogram({
    ...this.#own,
    name: 'kf_api_request_duration_seconds',
    help: 'Time until the API server had answered a request.',
    labelNames: ['verb'],
    buckets: seconds.request,
  });
  readonly pushSeconds = new Histogram({
    ...this.#own,
    name: 'kf_push_duration_seconds',
    help: 'Time from the begin of a push until its version serves, or its build or version has failed.',
    labelNames: ['outcome'],
    buckets: seconds.push,
  });
  readonly buildSeconds = new Histogram({
    ...this.#own,
    name: 'kf_build_duration_seconds',
    help: 'Time from the creation of a build until it has ended.',
    labelNames: ['lifecycle', 'outcome'],
    buckets: seconds.build,
  });
  readonly rolloutSeconds = new Histogram({
    ...this.#own,
    name: 'kf_rollout_duration_seconds',
    help: 'Time from the change of an app (push, start, restart, scale, restage) until it serves or has failed.',
    labelNames: ['outcome'],
    buckets: seconds.rollout,
  });
  readonly leader = new Gauge({ ...this.#own, name: 'kf_leader', help: '1 while this process is the leader, else 0.' });

  constructor() {
    const registers = [this.registry];
    new Gauge({
      name: 'process_resident_memory_bytes',
      help: 'Resident memory of the process.',
      registers,
      collect() {
        this.set(process.memoryUsage.rss());
      },
    });
    new Counter({
      name: 'process_cpu_seconds_total',
      help: 'CPU time that the process has used.',
      registers,
      collect() {
        const { user, system } = process.cpuUsage();
        this.reset();
        this.inc((user + system) / 1e6);
      },
    });
    for (const outcome of ends) {
      this.pushSeconds.zero({ outcome });
      this.rolloutSeconds.zero({ outcome });
      for (const lifecycle of ['buildpack', 'docker']) this.buildSeconds.zero({ lifecycle, outcome });
    }
  }

  /** Called before each rendering, to set gauges. */
  collect(collector: () => void): void {
    this.#collectors.push(collector);
  }

  /** https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
  async render(): Promise<string> {
    for (const collector of this.#collectors) collector();
    return this.registry.metrics();
  }
}
