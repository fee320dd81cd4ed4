// Names, routes and services that fail. No pod shows it, so the time of such a cause begins with the write that makes it true.

import { refusedApp, serviceWithoutSecret, takenName } from '../support/cause-fixtures.ts';
import { Kf, kubectl, ringEnv } from '../support/kf.ts';
import type { Scene } from './scene.ts';

export interface FailingObject {
  cause: string;
  /** What `kf why` is asked about. */
  about: string[];
  /** @returns when it was made to fail, and what undoes that */
  provoke: () => Promise<{ since: number; undo: () => Promise<unknown> }>;
}

const otherSpace = 'bench-other';
const [name, service, host] = ['bench-name-taken', 'bench-db', 'bench-taken'];
const bound = 'bench-bound';

/** Another space takes the host. */
async function takeHost(): ReturnType<FailingObject['provoke']> {
  const admin = await Kf.create('admin');
  await admin.ok('create-space', otherSpace, '-o', ringEnv('KF_TEST_ORG'));
  const other = await Kf.create('admin', { KF_SPACE: otherSpace });
  await other.ok('create-route', 'apps.localhost', '-n', host);
  const undo = async (): Promise<void> => {
    await admin.ok('delete-space', otherSpace, '-o', ringEnv('KF_TEST_ORG'), '-f');
    await Promise.all([admin.remove(), other.remove()]);
  };
  return { since: performance.now(), undo };
}

export function failingObjects({ developer, space, sample }: Scene): FailingObject[] {
  const takeName = async (): ReturnType<FailingObject['provoke']> => {
    const letGo = await takenName(developer, space, name);
    const since = performance.now();
    return { since, undo: () => letGo().finally(() => kubectl('delete', 'cfapp', '-n', space, refusedApp)) };
  };
  const loseSecret = async (): ReturnType<FailingObject['provoke']> => {
    await serviceWithoutSecret(developer, space, service);
    return { since: performance.now(), undo: () => developer.ok('delete-service', service, '-f') };
  };
  const startUnbound = async (): ReturnType<FailingObject['provoke']> => {
    await serviceWithoutSecret(developer, space, service);
    await developer.ok('push', bound, '-o', sample(1), '-m', '64M', '-t', '5', '--no-start');
    await developer.run(['bind-service', bound, service]);
    const since = performance.now();
    const started = developer.run(['start', bound]);
    const undo = async (): Promise<void> => {
      await started;
      await developer.ok('delete', bound, '-r', '-f');
      await developer.ok('delete-service', service, '-f');
    };
    return { since, undo };
  };
  return [
    { cause: 'route-taken', about: ['--route', `${host}.apps.localhost`], provoke: takeHost },
    { cause: 'name-taken', about: [name], provoke: takeName },
    { cause: 'secret-missing', about: ['--service', service], provoke: loseSecret },
    { cause: 'binding-not-ready', about: [bound], provoke: startUnbound },
  ];
}
