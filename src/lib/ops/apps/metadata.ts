// Labels and annotations of an app.

import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { metadataProblem } from '../../api/metadata.ts';
import type { SpaceSession } from '../../session/session.ts';
import { changeApp } from './changes.ts';

/** null removes. */
export interface MetadataChange {
  labels?: Record<string, string | null>;
  annotations?: Record<string, string | null>;
}

/** @throws KfError `usage` for a name that is not valid or belongs to the platform, and for a value that no label can have */
export function assertMetadata(change: MetadataChange): void {
  for (const key of ['labels', 'annotations'] as const) {
    for (const [name, value] of Object.entries(change[key] ?? {})) {
      const problem = metadataProblem(key, name, value ?? '');
      if (problem !== undefined) throw new KfError('usage', problem);
    }
  }
}

/** Sets and removes labels and annotations; the others stay. */
export async function changeMetadata(session: SpaceSession, app: Stored<CFApp>, change: MetadataChange): Promise<Stored<CFApp>> {
  assertMetadata(change);
  return changeApp(session, app, () => change);
}
