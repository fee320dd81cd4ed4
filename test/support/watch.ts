// Every state of one object, from the API server's watch. Short-lived states are seen too, however busy the machine is.

import { spawn } from 'node:child_process';
import { ringEnv } from './kf.ts';

/** All states since {@link watchObject}, the first one of that moment. */
export interface ObjectWatch<T> {
  readonly states: readonly T[];
  /** The first state that matches, including earlier ones. @throws Error naming what was awaited and the last state */
  until: (what: string, is: (state: T) => boolean, timeoutMs?: number) => Promise<T>;
  end: () => void;
}

/** kubectl indents all but the first and the last line of an object. */
const endOfObject = '\n}\n';

interface Waiting<T> {
  is: (state: T) => boolean;
  resolve: (state: T) => void;
  reject: (error: Error) => void;
}

/** Watches one object with the ring's admin rights; returns when its present state has arrived. `T` has the fields that the caller reads. */
export async function watchObject<T>(kind: string, ns: string, name: string): Promise<ObjectWatch<T>> {
  const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') };
  const child = spawn('kubectl', ['get', kind, name, '-n', ns, '--watch', '-o', 'json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
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
    for (let end = text.indexOf(endOfObject); end !== -1; end = text.indexOf(endOfObject)) {
      take(JSON.parse(text.slice(0, end + endOfObject.length)) as T);
      text = text.slice(end + endOfObject.length);
    }
  });
  const stop = (error: Error): void => {
    ended = error;
    for (const { reject } of waiting) reject(error);
  };
  child.on('error', stop);
  child.on('close', () => stop(new Error(`kubectl does not watch ${kind} ${name} any more`)));

  const until = async (what: string, is: (state: T) => boolean, timeoutMs = 60_000): Promise<T> => {
    const found = states.find(is);
    if (found !== undefined) return found;
    if (ended !== undefined) throw ended;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const one: Waiting<T> = { is, resolve, reject };
    const timer = setTimeout(
      () => reject(new Error(`watched ${kind} ${name} ${timeoutMs / 1000} s for ${what}`, { cause: states.at(-1) })),
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
