// The source container of a build: unpacks the source image into the workspace and writes a marker file for the other containers.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { counted, formatBytes } from '../../lib/api/sizes.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { KfError, messageOf } from '../../lib/errors.ts';
import { challengeAuthenticator } from '../../lib/oci/auth.ts';
import { directConnection } from '../../lib/oci/http.ts';
import { canonicalRegistry, parseReference } from '../../lib/oci/reference.ts';
import { RegistryClient } from '../../lib/oci/registry.ts';
import { fetchSource } from '../../lib/source/fetch.ts';
import { markers, registryKeys } from '../../templates/build-scripts.ts';

export interface FetchSettings {
  /** Reference by digest. */
  source: string;
  target: string;
  /** Folder of the marker files. */
  hand: string;
  /** Folder with the files of the registry Secret. */
  credential: string;
  /** The registry that the credential is for; no other registry gets it. */
  credentialHost: string;
  insecure: string[];
  /** File for the message that the controller reads. */
  terminationLog: string;
}

/** Settings from the container's environment (src/templates/build-job.ts); a missing one is a KfError. */
export function settingsFromEnv(env: NodeJS.ProcessEnv): FetchSettings {
  const required = (name: string): string => {
    const value = env[name];
    if (value === undefined || value === '') throw new KfError('bug', `The variable ${name} is missing.`);
    return value;
  };
  return {
    source: required('KF_SOURCE'),
    target: required('KF_TARGET'),
    hand: required('KF_HAND'),
    credential: required('KF_CREDENTIAL'),
    credentialHost: required('KF_CREDENTIAL_HOST'),
    insecure: (env['KF_INSECURE'] ?? '').split(',').filter((host) => host !== ''),
    terminationLog: env['KF_TERMINATION_LOG'] ?? '/dev/termination-log',
  };
}

/** How long the network may take to accept traffic of a new pod; after that the fetch itself fails with the cause. */
const patienceMs = 20_000;
const notYet = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']);

/**
 * Waits for any answer of the push port. NetworkPolicies block a pod until the network knows its address, about a second after its start, and the
 * programs of the registry container do not retry.
 */
async function reachPushPort({ credentialHost, insecure }: FetchSettings, signal: AbortSignal): Promise<void> {
  const connection = directConnection(credentialHost, {
    idleTimeoutMs: 2_000,
    ...(insecure.includes(credentialHost) ? { insecure: true } : {}),
  });
  const deadline = performance.now() + patienceMs;
  try {
    for (;;) {
      const problem = await connection.send({ method: 'GET', path: '/v2/', headers: {}, signal }).then(
        ({ body }) => void body.resume(),
        (error: unknown) => error as NodeJS.ErrnoException,
      );
      if (problem === undefined || !notYet.has(problem.code ?? '') || performance.now() > deadline) return;
      await sleep(50, undefined, { signal });
    }
  } finally {
    connection.close();
  }
}

async function fetchInto(settings: FetchSettings, signal: AbortSignal): Promise<string> {
  const { registry, repository, digest } = parseReference(settings.source);
  if (digest === undefined) throw new KfError('usage', `The source image '${settings.source}' is not named by a digest.`);
  const read = (key: string): string => readFileSync(join(settings.credential, key), 'utf8');
  const credential = { username: read(registryKeys.username), password: read(registryKeys.password) };
  const connection = directConnection(registry, { guarded: true, ...(settings.insecure.includes(registry) ? { insecure: true } : {}) });
  try {
    const authenticator = challengeAuthenticator({
      registry,
      // The app's developer chooses the source; a registry of their choice must not get the credential.
      credentials: async (host) => Promise.resolve(host === canonicalRegistry(settings.credentialHost) ? credential : undefined),
      sendUrl: connection.sendUrl,
    });
    const client = new RegistryClient({ send: connection.send, authenticator });
    const started = performance.now();
    const { files, bytes } = await fetchSource({ client, repository, digest, target: settings.target, signal });
    return `Fetched the source: ${counted(files, 'file')}, ${formatBytes(bytes)} in ${((performance.now() - started) / 1000).toFixed(1)} s`;
  } finally {
    connection.close();
  }
}

/** Runs the program of the container and returns its exit code, 0 or 1. It always writes a marker file for the other containers. */
export async function runFetch(settings: FetchSettings, signal: AbortSignal, print: (line: string) => void): Promise<number> {
  try {
    await reachPushPort(settings, signal);
    writeFileSync(join(settings.hand, markers.reached), '');
    print(await fetchInto(settings, signal));
    writeFileSync(join(settings.hand, markers.fetched), '');
    return 0;
  } catch (error) {
    const message = `The source could not be fetched: ${messageOf(error)}`;
    print(message);
    writeFileSync(join(settings.hand, markers.failed), '');
    writeFileSync(settings.terminationLog, message.slice(0, 4000));
    return 1;
  }
}
