// Who deleted a binding. A deletion has no annotation, so kf notes on the binding that it is about to delete it; when its app is looked at, the binding may
// be gone already. So each change of a binding is looked at when it arrives.

import { seenKey } from '../../lib/api/app-events.ts';
import { annotations } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFServiceBinding } from '../../lib/api/types.generated.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';

/** A binding that is there this long after its note was not deleted by who wrote it: that kf was killed. Clocks may differ by as much. */
const noteMs = 60_000;
const remembered = 1_000;

export class Unbinders {
  readonly #notes = new BoundedMap<string, { user: string; at: number }>(remembered);

  /** Takes a binding as it is, or was last. */
  note(binding: Stored<CFServiceBinding>): void {
    const { [annotations.changedBy]: user, [annotations.unbinding]: time } = binding.metadata.annotations ?? {};
    if (user !== undefined && time !== undefined) this.#notes.set(seenKey(binding), { user, at: Date.parse(time) });
  }

  /** Who deleted a binding that was found to be gone at this time, by {@link seenKey}; empty when nobody said so. */
  of(now: number): (key: string) => string {
    return (key) => {
      const { user = '', at = Number.NaN } = this.#notes.get(key) ?? {};
      return Math.abs(now - at) <= noteMs ? user : '';
    };
  }
}
