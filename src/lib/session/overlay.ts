// A session with some parts replaced: concurrent pushes have an output each, and an API request works in the space of its object.

import type { Session, SpaceSession } from './session.ts';

type Parts = Partial<Pick<SpaceSession, 'org' | 'space' | 'report' | 'signal'>>;

/** The same session with other parts: its place, the receiver of its events, or what interrupts it. */
export function withParts<S extends Session, P extends Parts>(session: S, parts: P): S & P {
  return new Proxy(session, {
    get(target, key) {
      if (Object.hasOwn(parts, key)) return Reflect.get(parts, key) as unknown;
      const value: unknown = Reflect.get(target, key, target);
      // Methods run on the session itself, because private fields are not visible through a proxy.
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  }) as S & P;
}
