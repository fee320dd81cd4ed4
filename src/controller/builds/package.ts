// CFPackage: says whether its source is there.

import type { Stored } from '../../lib/api/object.ts';
import { conditionTypes, kinds, reasons } from '../../lib/api/group.ts';
import type { CFPackage } from '../../lib/api/types.generated.ts';
import { ensureOwner } from '../runtime/owner.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Reconciler } from '../runtime/reconciler.ts';
import { conditionsWith, readyStatement, writeMetadata, writeStatus } from '../runtime/status.ts';
import type { Statement } from '../runtime/status.ts';
import { splitKey } from '../runtime/store.ts';

export const packageReconciler: Reconciler = {
  name: 'package',
  watches: [watch(kinds.package)],
  reads: [kinds.app],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const live = context.stores.of(kinds.package).get(ns, name);
    if (live === undefined) return undefined;
    if (live.metadata.deletionTimestamp !== undefined) {
      // A finalizer that no controller here serves would keep it for ever.
      await writeMetadata(context, kinds.package, live, {});
      return undefined;
    }
    const app = context.stores.of(kinds.app).get(ns, live.spec.appRef.name);
    const owned = app === undefined ? live : await ensureOwner(context, kinds.package, live, app);
    const statements = packageStatements(owned);
    await writeStatus(context, kinds.package, owned, { ...owned.status, conditions: conditionsWith(owned, ...statements) });
    // An object applied before its app gets its owner when the app is there.
    return app === undefined ? { requeueAfterMs: 5_000 } : undefined;
  },
};

/** Initialized at once; Ready as soon as an image is named. */
export function packageStatements(live: Stored<CFPackage>): Statement[] {
  const initialized: Statement = { type: conditionTypes.initialized, status: 'True', reason: reasons.initialized, message: '' };
  const image = live.spec.source?.registry.image ?? '';
  const waiting: Statement = {
    type: conditionTypes.ready,
    status: 'False',
    reason: reasons.initialized,
    message: 'The source is not uploaded yet.',
  };
  return [initialized, image === '' ? waiting : readyStatement];
}
