// Leader election: one process at a time holds a Lease, and every write is checked against a monotonic deadline.

import type { Stored } from '../../lib/api/object.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { leaseType, type Lease } from '../../lib/api/core.ts';
import type { Cluster } from '../../lib/kube/cluster.ts';
import { isAlreadyExists, isConflict } from '../../lib/kube/errors.ts';
import { LeaderRecord, type Steadiness } from './leader-record.ts';
import type { Logger } from './log.ts';
import { NotLeaderError } from './result.ts';

export interface LeaderOptions {
  ns: string;
  name: string;
  /** Unique per process. */
  identity: string;
  leaseMs?: number;
  renewMs?: number;
  followMs?: number;
  /** Writes stop this long before the Lease expires, because clocks differ and a write may still be on its way. */
  marginMs?: number;
  /** Monotonic milliseconds. */
  now?: () => number;
  /** Milliseconds by the API server's clock, for what the Lease and the record say; default: this machine's. */
  serverNow?: () => number;
  /** Default: no gap is known. */
  steadiness?: Steadiness;
}

const defaults = {
  leaseMs: 12_000,
  renewMs: 5_000,
  followMs: 1_000,
  marginMs: 2_000,
  now: () => performance.now(),
  serverNow: Date.now,
  steadiness: { since: () => 0, inherit: () => undefined },
};

/** RFC 3339 with microseconds, as a Lease has its times. */
const micro = (ms: number): string => new Date(ms).toISOString().replace(/\.(\d{3})Z$/, '.$1000Z');

/**
 * It has its own loop and does not use `waitFor`, because it never ends, and each pause follows from the deadline of the Lease. The pause ends without
 * an error when the process ends, so that the Lease can be released.
 */
export class Leader {
  readonly #cluster: Cluster;
  readonly #options: Required<LeaderOptions>;
  readonly #log: Logger;
  readonly #onChange: (isLeader: boolean) => void;
  #deadline = 0;
  #wasLeader = false;
  /** When the loop last ran. */
  #lastRound = performance.now();
  /** The Lease as last seen, and when it was seen to change: only our own clock decides when it has expired. */
  #seen: { version: string; at: number } | undefined;
  #held: Stored<Lease> | undefined;
  readonly #record: LeaderRecord;

  constructor(cluster: Cluster, options: LeaderOptions, log: Logger, onChange: (isLeader: boolean) => void) {
    this.#cluster = cluster;
    this.#options = { ...defaults, ...options };
    this.#log = log;
    this.#onChange = onChange;
    const { ns, name, identity, steadiness } = this.#options;
    this.#record = new LeaderRecord(cluster, { ns, name, identity, steadiness, isLeader: () => this.isLeader });
  }

  get isLeader(): boolean {
    return this.#options.now() < this.#deadline;
  }

  /** Milliseconds since the loop last read the Lease or failed to read it. The loop ends only with the process. */
  get silentMs(): number {
    return performance.now() - this.#lastRound;
  }

  /** Throws {@link NotLeaderError} unless this process certainly holds the Lease now. */
  assertLeader(): void {
    if (!this.isLeader) throw new NotLeaderError();
  }

  /** Competes for the Lease, renews it and follows other holders until `signal` aborts; then releases the Lease. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#round(signal);
      this.#lastRound = performance.now();
      this.#announce();
      const pause = this.#wasLeader ? this.#nextRenewal() : this.#options.followMs;
      await sleep(pause, undefined, { signal }).catch(() => undefined);
      this.#announce();
    }
    await this.#release();
  }

  /** The next try after a failed renewal comes sooner, because the deadline is near. */
  #nextRenewal(): number {
    const left = this.#deadline - this.#options.now();
    const fresh = left > this.#options.leaseMs - this.#options.marginMs - this.#options.renewMs;
    return fresh ? this.#options.renewMs : Math.max(100, Math.min(1_000, left));
  }

  #announce(): void {
    if (this.isLeader === this.#wasLeader) return;
    this.#wasLeader = this.isLeader;
    this.#log.info(this.#wasLeader ? 'became the leader' : 'is no longer the leader', { identity: this.#options.identity });
    this.#onChange(this.#wasLeader);
  }

  async #round(signal: AbortSignal): Promise<void> {
    const started = this.#options.now();
    const limit = AbortSignal.any([signal, AbortSignal.timeout(this.#options.renewMs)]);
    try {
      const held = this.isLeader && this.#held !== undefined ? await this.#renew(this.#held, limit) : await this.#contend(limit);
      this.#held = held;
      if (held !== undefined) {
        this.#deadline = started + this.#options.leaseMs - this.#options.marginMs;
        await this.#say(held, limit);
      }
    } catch (error) {
      // A conflict means that another process wrote the Lease, so the Lease is read again first.
      this.#held = undefined;
      if (isConflict(error) || isAlreadyExists(error)) this.#deadline = 0;
      if (!signal.aborted) this.#log.warn('lease not renewed', { error: (error as Error).message });
    }
  }

  /** Without the record the Lease is held all the same: policies then refuse writes, or set no time, until the next renewal. */
  async #say(held: Stored<Lease>, signal: AbortSignal): Promise<void> {
    try {
      await this.#record.write(held.spec?.renewTime ?? this.#time(), signal);
    } catch (error) {
      if (!signal.aborted) this.#log.warn('leader not recorded', { error: (error as Error).message });
    }
  }

  async #contend(signal: AbortSignal): Promise<Stored<Lease> | undefined> {
    const { ns, name, identity, now } = this.#options;
    const lease = await this.#cluster.get(leaseType, ns, name, signal);
    if (lease === undefined) {
      const spec = { ...this.#spec(), acquireTime: this.#time(), leaseTransitions: 0 };
      return this.#cluster.create(
        leaseType,
        { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace: ns }, spec },
        { signal },
      );
    }
    const version = lease.metadata.resourceVersion;
    if (this.#seen?.version !== version) this.#seen = { version, at: now() };
    const holder = lease.spec?.holderIdentity ?? '';
    const ownLease = (lease.spec?.leaseDurationSeconds ?? 0) * 1_000;
    const isFree = holder === '' || holder === identity || now() - this.#seen.at > ownLease;
    if (!isFree) return undefined;
    const transitions = (lease.spec?.leaseTransitions ?? 0) + (holder === identity ? 0 : 1);
    return this.#write(lease, { ...this.#spec(), acquireTime: this.#time(), leaseTransitions: transitions }, signal);
  }

  #renew(held: Stored<Lease>, signal: AbortSignal): Promise<Stored<Lease>> {
    return this.#write(held, { ...held.spec, ...this.#spec() }, signal);
  }

  #write(lease: Stored<Lease>, spec: NonNullable<Lease['spec']>, signal: AbortSignal): Promise<Stored<Lease>> {
    // The resource version turns a write of a process that slept too long into a conflict.
    return this.#cluster.replace(leaseType, { ...lease, apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec }, { signal });
  }

  #time(): string {
    return micro(this.#options.serverNow());
  }

  #spec(): NonNullable<Lease['spec']> {
    return {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.round(this.#options.leaseMs / 1_000),
      renewTime: this.#time(),
    };
  }

  async #release(): Promise<void> {
    const held = this.#held;
    const wasLeader = this.isLeader;
    this.#deadline = 0;
    if (held === undefined || !wasLeader) return;
    try {
      await this.#write(held, { ...held.spec, holderIdentity: '', renewTime: this.#time() }, AbortSignal.timeout(2_000));
    } catch (error) {
      this.#log.warn('lease not released', { error: (error as Error).message });
    }
  }
}
