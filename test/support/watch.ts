// Every state of one object or of several, from the API server's watch. Short-lived states are seen too, however busy the machine is.

import { spawn } from 'node:child_process';
import { ringEnv } from './kf.ts';

/** All states since the watch began, the first one of that moment. */
export interface ObjectWatch<T> {
  readonly states: readonly T[];
  /** The first state that matches, including earlier ones. @throws Error naming what was awaited and the last state */
  until: (what: string, is: (state: T) => boolean, timeoutMs?: number) => Promise<T>;
  end: () => void;
}

/** kubectl indents all but the first and the last line of an object; an event with its object is one line. */
const [endOfObject, endOfEvent] = ['\n}\n', '\n'];

interface Waiting<T> {
  is: (state: T) => boolean;
  resolve: (state: T) => void;
  reject: (error: Error) => void;
}

/** Watches one object with the ring's admin rights; returns when its present state has arrived. `T` has the fields that the caller reads. */
export const watchObject = <T>(kind: string, ns: string, name: string): Promise<ObjectWatch<T>> =>
  watchWith(endOfObject, kind, name, '-n', ns);

/** A state of one of several objects; the last one of each is `DELETED`. */
export interface WatchedEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: T;
}

/** Watches all objects with these labels; returns when the first one has arrived. */
export const watchObjects = <T>(kind: string, ns: string, selector: string): Promise<ObjectWatch<WatchedEvent<T>>> =>
  watchWith(endOfEvent, kind, '-l', selector, '-n', ns, '--output-watch-events');

async function watchWith<T>(endOfState: string, ...what: string[]): Promise<ObjectWatch<T>> {
  const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') };
  const child = spawn('kubectl', ['get', ...what, '--watch', '-o', 'json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const named = what.join(' ');
  const states: T[] = [];
  const waiting = new Set<Waiting<T>>();
  let text = '';
  let ended: Error | undefined;
  const take = (state: T): void => {
    states.push(state);
    for (const one of waiting) if (one.is(state)) one.resolve(state);
  };
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more;
    for (let end = text.indexOf(endOfState); end !== -1; end = text.indexOf(endOfState)) {
      take(JSON.parse(text.slice(0, end + endOfState.length)) as T);
      text = text.slice(end + endOfState.length);
    }
  });
  const stop = (error: Error): void => {
    ended = error;
    for (const { reject } of waiting) reject(error);
  };
  child.on('error', stop);
  child.on('close', () => stop(new Error(`kubectl does not watch ${named} any more`)));

  const until = async (awaited: string, is: (state: T) => boolean, timeoutMs = 60_000): Promise<T> => {
    const found = states.find(is);
    if (found !== undefined) return found;
    if (ended !== undefined) throw ended;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const one: Waiting<T> = { is, resolve, reject };
    const timer = setTimeout(
      () => reject(new Error(`watched ${named} ${timeoutMs / 1000} s for ${awaited}`, { cause: states.at(-1) })),
      timeoutMs,
    );
    waiting.add(one);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      waiting.delete(one);
    }
  };
  await until('its present state', () => true);
  return { states, until, end: () => void child.kill() };
}
