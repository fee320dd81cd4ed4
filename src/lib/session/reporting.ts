// One session seen with another reporter: apps that are pushed side by side each tell what they do in a place of their own.

import type { Reporter } from '../ops/reporter.ts';
import type { SpaceSession } from './session.ts';

/** The same session, whose steps and warnings go to `reporter`. */
export function withReporter(session: SpaceSession, reporter: Reporter): SpaceSession {
  return new Proxy(session, {
    get(target, key) {
      if (key === 'reporter') return reporter;
      const value: unknown = Reflect.get(target, key, target);
      // Methods work on the session itself: private fields are not seen through a proxy.
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
