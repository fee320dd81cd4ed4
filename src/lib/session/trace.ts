// `-v` and CF_TRACE: one line per request to the API server, with what it asked, how it ended and how long it took. No contents, so no secrets.

import { appendFileSync } from 'node:fs';
import { apiVersionOf, type ResourceType } from '../api/object.ts';
import { KfError, messageOf } from '../errors.ts';
import type { Cluster, RawRequest } from '../kube/cluster.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface TraceOutputs {
  print(line: string): void;
  warn(text: string): void;
}

/** Where the lines go: `true` is the terminal, other text the name of a file, nothing or `false` nowhere. A file that fails is told once. */
export function traceSink(env: Env, { print, warn }: TraceOutputs): ((line: string) => void) | undefined {
  const to = env['CF_TRACE'];
  if (to === undefined || to === '' || to.toLowerCase() === 'false') return undefined;
  if (to.toLowerCase() === 'true') return print;
  let hasFailed = false;
  return (line) => {
    if (hasFailed) return;
    try {
      appendFileSync(to, `${line}\n`, { mode: 0o600 });
    } catch (error) {
      hasFailed = true;
      warn(`CF_TRACE: ${to} cannot be written (${messageOf(error)}). Requests are not told.`);
    }
  };
}

const isType = (value: unknown): value is ResourceType =>
  typeof value === 'object' && value !== null && 'plural' in value && 'kind' in value;

/** `list korifi.cloudfoundry.org/v1alpha1 cfapps space-guid`. */
function describe(method: string, [first, second, third]: unknown[]): string {
  if (method === 'raw') {
    const { method: verb, path } = first as RawRequest;
    // Without the query: a registry's may hold what continues an upload.
    return `${verb} ${path.split('?')[0] ?? ''}`;
  }
  if (!isType(first)) return [method, typeof first === 'string' ? first : '', typeof second === 'string' ? second : ''].join(' ').trimEnd();
  const object = second as { ns?: string; metadata?: { namespace?: string; name?: string } } | undefined;
  const place = typeof second === 'string' ? second : (object?.ns ?? object?.metadata?.namespace ?? '');
  const name = typeof third === 'string' ? third : (object?.metadata?.name ?? '');
  return [method, apiVersionOf(first), first.plural, place, name].filter((word) => word !== '').join(' ');
}

/** How a request ended that did not succeed. What an interruption or the end of the command cut off is no failure of the request. */
const howFailed = (error: unknown): string =>
  error instanceof KfError && error.code === 'interrupted' ? 'abandoned' : messageOf(error).replace(/\.$/, '');

/** The same cluster, with a line per call. `close` tells the calls that nobody waits for any more; after it there are no lines. */
export function traced(cluster: Cluster, print: (line: string) => void): Cluster {
  const open = new Set<(how: string) => void>();
  let isClosed = false;
  const begin = (what: string): ((how: string) => void) => {
    const started = performance.now();
    const end = (how: string): void => {
      if (open.delete(end)) print(`${what}: ${how}, ${Math.round(performance.now() - started)} ms`);
    };
    if (!isClosed) open.add(end);
    return end;
  };
  const close = (): void => {
    for (const end of open) end('abandoned');
    isClosed = true;
    cluster.close();
  };
  return new Proxy(cluster, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== 'function' || typeof key !== 'string') return value;
      if (key === 'close') return close;
      return (...args: unknown[]): unknown => {
        // Private members belong to the cluster itself, not to what stands before it.
        const result: unknown = value.apply(target, args);
        if (!(result instanceof Promise)) {
          if (!isClosed) print(describe(key, args));
          return result;
        }
        const end = begin(describe(key, args));
        result.then(
          () => end('done'),
          (error: unknown) => end(howFailed(error)),
        );
        return result;
      };
    },
  });
}
