// A push that asks whether the registry has a layer or a manifest does not upload it when the answer is yes. So what it asked for counts as used then,
// and no collection removes it for the time that unused content is kept.

import type { RegistryPath } from './path.ts';
import type { Leave, RepositoryUse } from './repository-use.ts';
import type { ImageStore } from './store.ts';

export interface LeaseOptions {
  store: ImageStore;
  use: RepositoryUse;
  now?: () => number;
}

/** Called before a request of a push is sent to the registry. */
export type Lease = (path: RegistryPath) => Promise<Leave>;

export function leases({ store, use, now = Date.now }: LeaseOptions): Lease {
  return async ({ endpoint, repository = '', target }) => {
    const leave = await use.enter(repository);
    if (endpoint !== 'blob' && endpoint !== 'manifest') return leave;
    try {
      const reference = target.slice(target.lastIndexOf('/') + 1);
      const place = store.repository(repository);
      const digest = reference.startsWith('sha256:') ? reference.slice('sha256:'.length) : await place.digestOf(reference);
      if (digest !== undefined) await place.use(endpoint === 'blob' ? 'layer' : 'manifest', digest, now());
    } catch {
      // The volume cannot store the time, but a collection must not miss the request.
      use.spare(repository);
    }
    return leave;
  };
}
