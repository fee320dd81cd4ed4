// A small client of the API server, used to start a cluster: get, server-side apply, wait. It is not the product's client, which the tests check.
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

import { parse } from 'yaml';

export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; annotations?: Record<string, string>; labels?: Record<string, string> };
  spec?: Record<string, unknown>;
  status?: { conditions?: { type: string; status: string; message?: string }[] };
}

export interface ApiResponse {
  status: number;
  body: string;
}

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
}

const requestTimeoutMs = 30_000;

/** Plural names of the kinds that are applied; a kind that is not listed has its lower case name with an s. */
const irregularPlurals: Record<string, string> = { StorageClass: 'storageclasses', NetworkPolicy: 'networkpolicies' };

const clusterScoped = new Set([
  'Namespace',
  'Node',
  'ClusterRole',
  'ClusterRoleBinding',
  'StorageClass',
  'APIService',
  'CustomResourceDefinition',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
]);

/** Path of an object in the API. */
export function objectPath(object: Pick<ApiObject, 'apiVersion' | 'kind' | 'metadata'>): string {
  const root = object.apiVersion.includes('/') ? `/apis/${object.apiVersion}` : `/api/${object.apiVersion}`;
  const namespace = clusterScoped.has(object.kind) ? '' : `/namespaces/${object.metadata.namespace ?? 'default'}`;
  const plural = irregularPlurals[object.kind] ?? `${object.kind.toLowerCase()}s`;
  return `${root}${namespace}/${plural}/${object.metadata.name}`;
}

/** One connection pool to the API server, with the login of a kubeconfig as `pki.ts` writes it. */
export class ApiClient {
  readonly #server: string;
  readonly #agent: Agent;

  constructor(kubeconfigFile: string) {
    const config = parse(readFileSync(kubeconfigFile, 'utf8')) as Kubeconfig;
    const [cluster, user] = [config.clusters[0]?.cluster, config.users[0]?.user];
    if (!cluster || !user) throw new Error(`${kubeconfigFile} names no cluster or no user.`);
    const decode = (data: string): Buffer => Buffer.from(data, 'base64');
    this.#server = cluster.server;
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: 8,
      ca: decode(cluster['certificate-authority-data']),
      cert: decode(user['client-certificate-data']),
      key: decode(user['client-key-data']),
    });
  }

  send(method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<ApiResponse> {
    return new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { 'content-type': contentType };
      const outgoing = request(`${this.#server}${path}`, { method, headers, agent: this.#agent, timeout: requestTimeoutMs }, (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
        });
      });
      outgoing.on('timeout', () =>
        outgoing.destroy(new Error(`The API server did not answer ${method} ${path} within ${String(requestTimeoutMs / 1000)} s.`)),
      );
      outgoing.on('error', reject);
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** An object, or undefined if it does not exist. */
  async get(object: Pick<ApiObject, 'apiVersion' | 'kind' | 'metadata'>): Promise<ApiObject | undefined> {
    const response = await this.send('GET', objectPath(object));
    if (response.status === 404) return undefined;
    if (response.status !== 200) throw new Error(`GET ${objectPath(object)}: ${String(response.status)} ${response.body.slice(0, 500)}`);
    return JSON.parse(response.body) as ApiObject;
  }

  /** Server-side apply. JSON is YAML, so the object is sent as JSON with the content type that the API server expects. */
  async apply(object: ApiObject): Promise<void> {
    const path = `${objectPath(object)}?fieldManager=kf-test-cluster&force=true`;
    const response = await this.send('PATCH', path, object, 'application/apply-patch+yaml');
    if (response.status > 299)
      throw new Error(`Applying ${object.kind} ${object.metadata.name}: ${String(response.status)} ${response.body.slice(0, 500)}`);
  }

  /** Whether the API server says it is ready; false also while it does not answer. */
  async isReady(): Promise<boolean> {
    try {
      return (await this.send('GET', '/readyz')).status === 200;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Whether a condition of an object is True. */
export function isTrue(object: ApiObject | undefined, type: string): boolean {
  return object?.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
}

/** Repeats `check` until it returns true. @param what ends the sentence "Waited N s in vain for …" */
export async function waitUntil(what: string, timeoutMs: number, check: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`Waited ${String(timeoutMs / 1000)} s in vain for ${what}.`);
    await sleep(100);
  }
}
