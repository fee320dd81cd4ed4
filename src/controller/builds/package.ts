// CFPackage: its status says whether the source is uploaded.

import type { Stored } from '../../lib/api/object.ts';
import { conditionTypes, kinds, reasons } from '../../lib/api/group.ts';
import type { CFApp, CFPackage } from '../../lib/api/types.generated.ts';
import { packagesByApp } from '../relations.ts';
import { ensureOwner, isOwnedBy } from '../runtime/owner.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Reconciler } from '../runtime/reconciler.ts';
import { conditionsWith, readyStatement, writeMetadata, writeStatus } from '../runtime/status.ts';
import type { Statement } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';

export const packageReconciler: Reconciler = {
  name: 'package',
  watches: [
    watch(kinds.package),
    // A package may be applied before its app: it gets its owner as soon as the app exists.
    watch<CFApp>(kinds.app, (app, stores) =>
      stores
        .of(kinds.package)
        .by(packagesByApp.name, keyOf(app))
        .filter((owned) => !isOwnedBy(owned, app))
        .map(keyOf),
    ),
  ],
  indexes: [packagesByApp],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const live = context.stores.of(kinds.package).get(ns, name);
    if (live === undefined) return undefined;
    if (live.metadata.deletionTimestamp !== undefined) {
      // Removes the finalizers of other controllers. Nothing would ever remove them, and the package would stay.
      await writeMetadata(context, kinds.package, live, {});
      return undefined;
    }
    const app = context.stores.of(kinds.app).get(ns, live.spec.appRef.name);
    const owned = app === undefined ? live : await ensureOwner(context, kinds.package, live, app);
    const statements = packageStatements(owned);
    await writeStatus(context, kinds.package, owned, { ...owned.status, conditions: conditionsWith(owned, ...statements) });
    return undefined;
  },
};

/** A package is Initialized at once, and Ready as soon as it names an image. */
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
