// The API server's way to the registry: its service proxy, in front of a registry in memory.

import type { Call, ScriptedApiServer } from './apiserver.ts';
import type { ScriptedRegistry } from './registry.ts';

const base = '/api/v1/namespaces/kf-system/services/http:kf-registry:5000/proxy';
const sent = ['content-type', 'content-range', 'accept'];
const received = ['content-type', 'content-length', 'location', 'range', 'docker-content-digest'];

async function passOn(call: Call, registry: ScriptedRegistry): Promise<void> {
  const { method, path, query, headers, bytes, response } = call;
  const given = sent.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])] as [string, string]]));
  const search = query.size === 0 ? '' : `?${query.toString()}`;
  const answer = await fetch(`http://${registry.host}${path.slice(base.length)}${search}`, {
    method,
    headers: given,
    ...(bytes.length === 0 ? {} : { body: new Uint8Array(bytes) }),
  });
  const body = Buffer.from(await answer.arrayBuffer());
  const kept = received.flatMap((name) => (answer.headers.has(name) ? [[name, answer.headers.get(name) ?? '']] : []));
  response.writeHead(answer.status, Object.fromEntries(kept) as Record<string, string>).end(body);
}

/** Puts this registry behind the Service of the installation's registry. */
export function serveRegistry(server: ScriptedApiServer, registry: ScriptedRegistry): void {
  server.on(`(GET|HEAD|POST|PUT|PATCH) ${base}/v2/.*`, (call) => passOn(call, registry));
}
