// One session that reports elsewhere: apps that are pushed side by side each have a place of their own.

import type { Report } from '../ops/events.ts';
import type { SpaceSession } from './session.ts';

/** The same session, whose events go to `report`. */
export function withReport(session: SpaceSession, report: Report): SpaceSession {
  return new Proxy(session, {
    get(target, key) {
      if (key === 'report') return report;
      const value: unknown = Reflect.get(target, key, target);
      // Methods work on the session itself: private fields are not seen through a proxy.
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
