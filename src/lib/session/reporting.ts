// A session whose events go elsewhere: concurrent pushes have an output each.

import type { Report } from '../events.ts';
import type { SpaceSession } from './session.ts';

/** The same session, whose events go to `report`. */
export function withReport(session: SpaceSession, report: Report): SpaceSession {
  return new Proxy(session, {
    get(target, key) {
      if (key === 'report') return report;
      const value: unknown = Reflect.get(target, key, target);
      // Methods run on the session itself, because private fields are not visible through a proxy.
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
