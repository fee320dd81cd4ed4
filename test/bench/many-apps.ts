// Creates a space with many apps in bulk: per app a stopped CFApp, its environment Secret, a CFProcess, a CFRoute and a CFServiceInstance.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import type { KubeObject, Stored } from '../../src/lib/api/object.ts';
import type { CFApp, CFDomain } from '../../src/lib/api/types.generated.ts';
import { buildApp, buildEnvSecret, buildProcess } from '../../src/templates/app.ts';
import { buildDestination, buildRoute } from '../../src/templates/route.ts';
import { buildUserProvidedInstance } from '../../src/templates/service.ts';
import { feed } from '../support/feed.ts';
import { kubectl, kubectlJson, ringEnv } from '../support/kf.ts';

/** Number of objects in one kubectl call. */
const batch = 250;

function kubectlCreate(objects: readonly KubeObject[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') };
    const child = spawn('kubectl', ['create', '-f', '-', '-o', 'json'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve(stdout) : reject(new Error(`kubectl create ended with ${String(code)}`))));
    feed(child, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  });
}

/** The objects as the API server created them; kubectl prints one document after the other. */
async function createAll<T extends KubeObject>(objects: readonly KubeObject[]): Promise<T[]> {
  const documents = (await kubectlCreate(objects)).replaceAll(/^\}\n\{/gm, '},\n{');
  return JSON.parse(`[${documents}]`) as T[];
}

/** Adds `howMany` apps to a space. */
export async function addApps(space: string, from: number, howMany: number): Promise<void> {
  const { status } = await kubectlJson<{ status: { userInfo: { username: string } } }>('auth', 'whoami');
  const domains = await kubectlJson<{ items: CFDomain[] }>('get', 'cfdomains', '-n', 'cf');
  // More than the default quota of a space.
  const open = JSON.stringify([{ op: 'replace', path: '/spec/hard', value: { pods: '10000' } }]);
  await kubectl('patch', 'resourcequota', 'kf-limits', '-n', space, '--type=json', '-p', open);
  const domain = domains.items[0];
  if (domain === undefined) throw new Error('There is no domain.');
  const author = { changedBy: status.userInfo.username, now: new Date() };
  const lifecycle = { type: 'docker' as const, data: { stack: '' } };
  for (let done = 0; done < howMany; done += batch) {
    const names = Array.from({ length: Math.min(batch, howMany - done) }, (_, index) => `app-${from + done + index}`);
    const apps = await createAll<Stored<CFApp>>(
      names.map((displayName) => buildApp({ guid: randomUUID(), namespace: space, displayName, lifecycle }, author)),
    );
    const rest = apps.flatMap((app): KubeObject[] => [
      buildEnvSecret(app, {}, author),
      buildProcess({ app, type: 'web', memoryMB: 64, diskQuotaMB: 256 }, author),
      buildRoute(
        {
          guid: randomUUID(),
          namespace: space,
          host: app.spec.displayName,
          domain,
          destinations: [buildDestination({ guid: randomUUID(), appGuid: app.metadata.name ?? '' })],
        },
        author,
      ),
      buildUserProvidedInstance(
        { guid: randomUUID(), namespace: space, displayName: `${app.spec.displayName}-db`, secretName: randomUUID() },
        author,
      ),
    ]);
    await createAll(rest);
  }
}
