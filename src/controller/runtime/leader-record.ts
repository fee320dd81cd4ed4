// Says who leads, and when the Lease was last renewed, in an object that admission policies can take as their parameter. The Lease itself cannot be one:
// when the last binding that names a kind of Kubernetes' own is gone, the API server reads that kind no more until it is restarted, and goes on to
// compare with what it read before (docs/decisions/0080).

import { annotations, kinds } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { RunnerInfo } from '../../lib/api/types.generated.ts';
import type { Cluster } from '../../lib/kube/cluster.ts';
import { isConflict } from '../../lib/kube/errors.ts';

/** What this process knows of gaps in what it hears from the API server; milliseconds by the API server's clock. */
export interface Steadiness {
  /** Since when changes have arrived without a gap; 0 when no gap is known. */
  since: () => number;
  /** Takes over what a leader before this one knew. */
  inherit: (since: number) => void;
}

export interface LeaderRecordOptions {
  ns: string;
  name: string;
  identity: string;
  /** Whether this process certainly holds the Lease now. */
  isLeader: () => boolean;
  steadiness: Steadiness;
}

const tries = 3;
/** Whether the API server was there is not known of a longer time in which nobody led. */
const longestUnknownMs = 60_000;

/** One RunnerInfo; only a leader writes it, and only over what it has read. */
export class LeaderRecord {
  readonly #cluster: Cluster;
  readonly #options: LeaderRecordOptions;
  #held: Stored<RunnerInfo> | undefined;
  /** Whether the record was read before: what this process has written itself says nothing new. */
  #hasRead = false;

  constructor(cluster: Cluster, options: LeaderRecordOptions) {
    this.#cluster = cluster;
    this.#options = options;
  }

  /**
   * Writes that this process leads. It writes nothing when it does not lead any more after the record was read: a record of the next leader that came
   * since then makes the write a conflict. What another process has recorded of the last gap is taken over.
   * @param renewed RFC 3339 with microseconds, by the API server's clock
   * @throws that of the API server, and the conflict after three tries
   */
  async write(renewed: string, signal: AbortSignal): Promise<void> {
    for (let left = tries; ; left -= 1) {
      try {
        return await this.#writeOnce(renewed, signal);
      } catch (error) {
        this.#held = undefined;
        if (!isConflict(error) || left <= 1) throw error;
      }
    }
  }

  async #writeOnce(renewed: string, signal: AbortSignal): Promise<void> {
    const { ns, name, identity, isLeader, steadiness } = this.#options;
    const live = this.#held ?? (await this.#cluster.get(kinds.runnerInfo, ns, name, signal));
    if (!isLeader()) return;
    if (this.#held === undefined) this.#inherit(live, Date.parse(renewed));
    const since = steadiness.since();
    const said = {
      [annotations.leader]: identity,
      [annotations.leaderRenewed]: renewed,
      ...(since > 0 && { [annotations.steadySince]: new Date(since).toISOString() }),
    };
    const typed = { apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'RunnerInfo' } as const;
    const spec = { runnerName: name };
    this.#held =
      live === undefined
        ? await this.#cluster.create(kinds.runnerInfo, { ...typed, metadata: { name, namespace: ns, annotations: said }, spec }, { signal })
        : await this.#cluster.replace(
            kinds.runnerInfo,
            { ...live, ...typed, metadata: { ...live.metadata, annotations: { ...live.metadata.annotations, ...said } }, spec },
            { signal },
          );
  }

  /** A container that was started again has the identity of the one before, so what is read first is always of another process. */
  #inherit(live: Stored<RunnerInfo> | undefined, now: number): void {
    const isOwn = this.#hasRead && live?.metadata.annotations?.[annotations.leader] === this.#options.identity;
    this.#hasRead = true;
    if (live !== undefined && !isOwn) this.#options.steadiness.inherit(lastGap(live, now));
  }
}

/** The end of the last gap that the record tells of; `now` when nobody led for long before it. 0 when there is none. */
function lastGap({ metadata }: Stored<RunnerInfo>, now: number): number {
  const at = (key: string): number => Date.parse(metadata.annotations?.[key] ?? '') || 0;
  const renewed = at(annotations.leaderRenewed);
  return renewed > 0 && now - renewed > longestUnknownMs ? now : Math.min(at(annotations.steadySince), now);
}
