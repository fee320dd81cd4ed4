// Creates many apps in a space in bulk: per app a CFApp, its environment Secret, a CFProcess, a CFRoute and a CFServiceInstance; for an app that
// runs an image also a CFPackage and a CFBuild.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import type { KubeObject, Stored } from '../../src/lib/api/object.ts';
import type { CFApp, CFBuild, CFDomain, CFPackage } from '../../src/lib/api/types.generated.ts';
import { buildApp, buildEnvSecret, buildProcess } from '../../src/templates/app.ts';
import { buildBuild, buildPackage } from '../../src/templates/build.ts';
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

const lifecycle = { type: 'docker' as const, data: { stack: '' } };

/** Allows a space more than the default quota does. */
export async function openQuota(space: string): Promise<void> {
  const open = JSON.stringify([{ op: 'replace', path: '/spec/hard', value: { pods: '10000' } }]);
  await kubectl('patch', 'resourcequota', 'kf-limits', '-n', space, '--type=json', '-p', open);
}

/** Adds `howMany` apps to a space: stopped apps with a mapped route; with an image, apps that run it, and whose routes lead nowhere. */
export async function addApps(space: string, first: number, howMany: number, image?: string): Promise<void> {
  const { status } = await kubectlJson<{ status: { userInfo: { username: string } } }>('auth', 'whoami');
  const domains = await kubectlJson<{ items: CFDomain[] }>('get', 'cfdomains', '-n', 'cf');
  await openQuota(space);
  const domain = domains.items[0];
  if (domain === undefined) throw new Error('There is no domain.');
  const author = { changedBy: status.userInfo.username, now: new Date() };

  const sourceOf = (app: Stored<CFApp>, registryImage: string): [CFPackage, CFBuild] => {
    const packageGuid = randomUUID();
    const guid = app.spec.currentDropletRef?.name ?? '';
    const staging = { stagingMemoryMB: 64, stagingDiskMB: 64 };
    return [
      buildPackage({ guid: packageGuid, app, type: 'docker', image: registryImage }, author),
      buildBuild({ guid, app, packageGuid, lifecycle, ...staging }, author),
    ];
  };

  const partsOf = (app: Stored<CFApp>): KubeObject[] => {
    const guid = app.metadata.name;
    const destinations = image === undefined ? [buildDestination({ guid: randomUUID(), appGuid: guid })] : [];
    const service = { guid: randomUUID(), namespace: space, displayName: `${app.spec.displayName}-db`, secretName: randomUUID() };
    const check =
      image === undefined
        ? {}
        : { instances: 1, healthCheck: { type: 'process' as const, data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } } };
    return [
      buildEnvSecret(app, {}, author),
      buildProcess({ app, type: 'web', memoryMB: 64, diskQuotaMB: 256, ...check }, author),
      buildRoute({ guid: randomUUID(), namespace: space, host: app.spec.displayName, domain, destinations }, author),
      buildUserProvidedInstance(service, author),
      ...(image === undefined ? [] : sourceOf(app, image)),
    ];
  };

  for (let done = 0; done < howMany; done += batch) {
    const names = Array.from({ length: Math.min(batch, howMany - done) }, (_, index) => `app-${first + done + index}`);
    const apps = names.map((displayName) => {
      const app = buildApp({ guid: randomUUID(), namespace: space, displayName, lifecycle }, author);
      const runs = { desiredState: 'STARTED' as const, currentDropletRef: { name: randomUUID() } };
      return image === undefined ? app : { ...app, spec: { ...app.spec, ...runs } };
    });
    const stored = await createAll<Stored<CFApp>>(apps);
    await createAll(stored.flatMap(partsOf));
  }
}
