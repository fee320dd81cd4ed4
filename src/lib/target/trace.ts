// `-v` and CF_TRACE: one line per request to the API server, with what it asked, how it ended and how long it took. No contents, so no secrets.

import { appendFileSync } from 'node:fs';
import { apiVersionOf, type ResourceType } from '../api/object.ts';
import { messageOf } from '../errors.ts';
import type { Cluster } from '../kube/cluster.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Where the lines go: `true` is the terminal, other text the name of a file, nothing or `false` nowhere. */
export function traceSink(env: Env, print: (line: string) => void): ((line: string) => void) | undefined {
  const to = env['CF_TRACE'];
  if (to === undefined || to === '' || to.toLowerCase() === 'false') return undefined;
  if (to.toLowerCase() === 'true') return print;
  return (line) => appendFileSync(to, `${line}\n`, { mode: 0o600 });
}

const isType = (value: unknown): value is ResourceType =>
  typeof value === 'object' && value !== null && 'plural' in value && 'kind' in value;

/** `list korifi.cloudfoundry.org/v1alpha1 cfapps space-guid`. */
function describe(method: string, [first, second, third]: unknown[]): string {
  if (!isType(first)) return [method, typeof first === 'string' ? first : '', typeof second === 'string' ? second : ''].join(' ').trimEnd();
  const object = second as { ns?: string; metadata?: { namespace?: string; name?: string } } | undefined;
  const place = typeof second === 'string' ? second : (object?.ns ?? object?.metadata?.namespace ?? '');
  const name = typeof third === 'string' ? third : (object?.metadata?.name ?? '');
  return [method, apiVersionOf(first), first.plural, place, name].filter((word) => word !== '').join(' ');
}

/** The same cluster, with a line per call. */
export function traced(cluster: Cluster, print: (line: string) => void): Cluster {
  return new Proxy(cluster, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== 'function' || key === 'close' || typeof key !== 'string') return value;
      return (...args: unknown[]): unknown => {
        const started = performance.now();
        const end = (how: string): void => print(`${describe(key, args)}: ${how}, ${Math.round(performance.now() - started)} ms`);
        const result: unknown = value.apply(target, args);
        if (!(result instanceof Promise)) {
          print(describe(key, args));
          return result;
        }
        result.then(
          () => end('done'),
          (error: unknown) => end(messageOf(error)),
        );
        return result;
      };
    },
  });
}
