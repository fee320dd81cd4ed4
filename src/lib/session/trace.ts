// `-v` and CF_TRACE: for each request to the API server, a line that says what was requested, how it ended and how long it took, and below it what was
// sent and what came back.

import { appendFileSync } from 'node:fs';
import { apiVersionOf, type ResourceType } from '../api/object.ts';
import { KfError, messageOf } from '../errors.ts';
import type { Cluster, RawRequest } from '../kube/cluster.ts';
import { gotBy, sentBy, visibleJson } from './trace-bodies.ts';
import { traceOutput } from './trace-output.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface TraceOutputs {
  print(line: string): void;
  warn(text: string): void;
}

/** Undefined if nothing is to be traced. A file that cannot be written causes one warning, and no more lines are written. */
export function traceSink(env: Env, { print, warn }: TraceOutputs): ((line: string) => void) | undefined {
  const output = traceOutput(env);
  if (output === undefined) return undefined;
  if (output === 'terminal') return print;
  const { file } = output;
  let hasFailed = false;
  return (line) => {
    if (hasFailed) return;
    try {
      appendFileSync(file, `${line}\n`, { mode: 0o600 });
    } catch (error) {
      hasFailed = true;
      warn(`CF_TRACE: ${file} cannot be written (${messageOf(error)}). Requests are not traced.`);
    }
  };
}

const isType = (value: unknown): value is ResourceType =>
  typeof value === 'object' && value !== null && 'plural' in value && 'kind' in value;

/** What a call requests, as `list korifi.cloudfoundry.org/v1alpha1 cfapps space-guid`. */
function describe(method: string, [first, second, third]: unknown[]): string {
  if (method === 'raw') {
    const { method: verb, path } = first as RawRequest;
    // Without the query: that of a registry may contain the state of an upload.
    return `${verb} ${path.split('?')[0] ?? ''}`;
  }
  if (!isType(first)) return [method, typeof first === 'string' ? first : '', typeof second === 'string' ? second : ''].join(' ').trimEnd();
  const object = second as { ns?: string; metadata?: { namespace?: string; name?: string } } | undefined;
  const place = typeof second === 'string' ? second : (object?.ns ?? object?.metadata?.namespace ?? '');
  const name = typeof third === 'string' ? third : (object?.metadata?.name ?? '');
  return [method, apiVersionOf(first), first.plural, place, name].filter((word) => word !== '').join(' ');
}

/** The bodies of a request that has ended, each below its heading. */
function bodiesOf(method: string, args: unknown[], result: unknown): string {
  const [type] = args.filter(isType);
  const bodies = { REQUEST: sentBy(method, args), RESPONSE: gotBy(method, result) };
  return Object.entries(bodies)
    .map(([heading, body]) => ({ heading, json: visibleJson(body, type) }))
    .map(({ heading, json }) => (json === undefined ? '' : `\n${heading}:\n${json}`))
    .join('');
}

/** How a failed request ended. A request that was cut off, by an interruption or by the end of the command, is abandoned and has not failed. */
const outcomeOf = (error: unknown): string =>
  error instanceof KfError && error.code === 'interrupted' ? 'abandoned' : messageOf(error).replace(/\.$/, '');

/** The same cluster, which prints each call at its end. `close` prints a line for each call that has not ended; after it nothing is printed. */
export function traced(cluster: Cluster, print: (line: string) => void): Cluster {
  type End = (outcome: string, bodies?: string) => void;
  const unfinished = new Set<End>();
  let isClosed = false;
  const begin = (what: string): End => {
    const started = performance.now();
    const end: End = (outcome, bodies = '') => {
      if (unfinished.delete(end)) print(`${what}: ${outcome}, ${Math.round(performance.now() - started)} ms${bodies}`);
    };
    if (!isClosed) unfinished.add(end);
    return end;
  };
  const close = (): void => {
    for (const end of unfinished) end('abandoned');
    isClosed = true;
    cluster.close();
  };
  return new Proxy(cluster, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== 'function' || typeof key !== 'string') return value;
      if (key === 'close') return close;
      return (...args: unknown[]): unknown => {
        // `this` is the cluster itself: a proxy does not have its private members.
        const result: unknown = value.apply(target, args);
        if (!(result instanceof Promise)) {
          if (!isClosed) print(describe(key, args));
          return result;
        }
        const end = begin(describe(key, args));
        result.then(
          (got: unknown) => end('done', bodiesOf(key, args, got)),
          (error: unknown) => end(outcomeOf(error), bodiesOf(key, args, undefined)),
        );
        return result;
      };
    },
  });
}
