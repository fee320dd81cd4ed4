// Nothing is written into an installation whose controller is too many releases away (docs/compatibility.md).

import type { Cluster } from '../kube/cluster.ts';

const writes: ReadonlySet<string> = new Set<keyof Cluster>(['create', 'apply', 'mergePatch', 'replace', 'delete']);

/** The same cluster, which awaits `check` before each write. */
export function checkingWrites(cluster: Cluster, check: () => Promise<void>): Cluster {
  return new Proxy(cluster, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== 'function') return value;
      // `this` is the cluster itself: a proxy does not have its private members.
      const call = (...args: unknown[]): unknown => value.apply(target, args);
      return typeof key === 'string' && writes.has(key) ? (...args: unknown[]) => check().then(() => call(...args)) : call;
    },
  });
}
