// The pods of an app as kubectl lists them, without terminating ones.

import { kubectlJson, ringEnv } from './kf.ts';

interface Probe {
  httpGet?: { path: string };
  tcpSocket?: { port: number };
  failureThreshold: number;
}

export interface AppPod {
  metadata: { name: string; uid: string; labels: Record<string, string>; creationTimestamp: string; deletionTimestamp?: string };
  spec: {
    initContainers?: { name: string; resources: { limits: Record<string, string> } }[];
    containers: {
      image: string;
      command?: string[];
      resources: { limits: Record<string, string> };
      startupProbe?: Probe;
      livenessProbe?: Probe;
      readinessProbe?: Probe;
    }[];
  };
  status: { phase: string; hostIP: string; podIP: string; containerStatuses?: { restartCount: number; ready: boolean }[] };
}

/** Pods of the processes of an app in the ring's space; builds have none here. */
export async function podsOf(appGuid: string, processType = 'web'): Promise<AppPod[]> {
  const group = 'korifi.cloudfoundry.org';
  const selector = `${group}/app-guid=${appGuid},${group}/process-type=${processType}`;
  const { items } = await kubectlJson<{ items: AppPod[] }>('get', 'pods', '-n', ringEnv('KF_TEST_SPACE_GUID'), '-l', selector);
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

interface App {
  status?: { deployment?: { generations?: { hash: string; process: string; state: string }[] } };
}

/** Pods of the version that serves: the previous one still exists for some seconds. */
export async function currentPodsOf(appGuid: string, processType = 'web'): Promise<AppPod[]> {
  const [pods, app] = await Promise.all([
    podsOf(appGuid, processType),
    kubectlJson<App>('get', 'cfapp', appGuid, '-n', ringEnv('KF_TEST_SPACE_GUID')),
  ]);
  const isCurrent = ({ process, state }: { process: string; state: string }): boolean => process === processType && state === 'Current';
  const hash = app.status?.deployment?.generations?.find(isCurrent)?.hash ?? 'none';
  return pods.filter(({ metadata }) => metadata.labels['kf.cloudfoundry.org/generation'] === hash);
}
