// What the tests of attacks on the gateway see of it.

import { kubectlJson } from './kf.ts';

interface Pods {
  items: { metadata: { name: string; uid: string }; status: { containerStatuses?: { restartCount: number }[] } }[];
}

async function podsOf(...where: string[]): Promise<Pods['items']> {
  return (await kubectlJson<Pods>('get', 'pods', ...where)).items;
}

/** The pods of the gateway with the restarts of their containers: unchanged when no program ended. */
export async function startsOfGateway(): Promise<unknown> {
  const pods = await podsOf('-n', 'kf-node', '-l', 'app=kf-gateway');
  return pods.map(({ metadata, status }) => [metadata.uid, ...(status.containerStatuses ?? []).map(({ restartCount }) => restartCount)]);
}

/** The name of a pod of an app in the space. */
export async function podOfSpace(space: string): Promise<string> {
  const [pod] = await podsOf('-n', space, '-l', 'kf.cloudfoundry.org/generation');
  return pod?.metadata.name ?? '';
}
