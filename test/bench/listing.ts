// How fast kf starts and reads, compared with kubectl in the same minute, both as the same space developer.

import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeRoleKubeconfig } from '../support/developer.ts';
import { Kf, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';
import { addApps } from './many-apps.ts';
import { auditEnd, auditFrom } from '../support/audit.ts';
import { timed, type Scene } from './scene.ts';
import { median, millis, ratio, type Row } from './table.ts';

const pairs = 9;
const starts = 15;
const sizes = [1, 20, 200, 1000];
/** A new one each time, because the bench may run again on a cluster that was kept. */
const spaceName = `bench-many-${Date.now().toString(36)}`;

/** kf and kubectl in turns, so that other load of the machine affects both. */
async function race(kf: () => Promise<number>, other: () => Promise<number>, runs: number): Promise<[number[], number[]]> {
  const [ours, others]: [number[], number[]] = [[], []];
  await kf();
  await other();
  for (let run = 0; run < runs; run++) {
    ours.push(await kf());
    others.push(await other());
  }
  return [ours, others];
}

export async function benchStart({ developer }: Scene): Promise<Row[]> {
  const kf = async (): Promise<number> => (await developer.ok('--version')).milliseconds;
  const node = async (): Promise<number> => (await timed(process.execPath, ['-e', '0'])).milliseconds;
  const [ours, others] = await race(kf, node, starts);
  return [{ what: '`kf --version`', reach: '≤ 60 ms', measured: millis(ours), beside: `bare node ${millis(others)}` }];
}

/** Names of apps for a shell, as the Tab key asks for them: {@link race} asks once before it measures, so the names are kept from then on. */
async function completionRow(kf: Kf, size: number): Promise<Row> {
  const complete = async (): Promise<number> => (await kf.ok('__complete', 'app', '')).milliseconds;
  const node = async (): Promise<number> => (await timed(process.execPath, ['-e', '0'])).milliseconds;
  const [ours, others] = await race(complete, node, pairs);
  return {
    what: `completion of ${size} apps, kept names`,
    reach: '≤ 150 ms',
    measured: millis(ours),
    beside: `bare node ${millis(others)}`,
  };
}

/** A user with their own space, and kubectl with the same rights. */
async function makeSpace(folder: string): Promise<{ kf: Kf; kubeconfig: string; guid: string; home: string }> {
  const org = ringEnv('KF_TEST_ORG');
  const admin = await Kf.create('admin');
  await admin.ok('create-space', spaceName, '-o', org);
  await admin.remove();
  const { items } = await kubectlJson<{ items: { metadata: { name: string; namespace: string }; spec: { displayName: string } }[] }>(
    'get',
    'cfspaces',
    '-A',
  );
  const space = items.find(({ spec }) => spec.displayName === spaceName)?.metadata;
  if (space === undefined) throw new Error(`There is no space '${spaceName}'.`);
  const home = path.join(folder, 'many');
  const kubeconfig = path.join(home, 'kubeconfig.yaml');
  await mkdir(home, { recursive: true });
  await writeRoleKubeconfig(ringEnv('KF_TEST_KUBECONFIG'), kubeconfig, 'spaceDeveloper', { org: space.namespace, space: space.name });
  const kf = await Kf.create('developer', { CF_HOME: home, KUBECONFIG: kubeconfig, KF_SPACE: spaceName });
  await kf.ok('target', '-o', org, '-s', spaceName);
  return { kf, kubeconfig, guid: space.name, home };
}

/** Waits until the controller has written nothing for three seconds. */
async function untilQuiet(): Promise<void> {
  await until(
    'the controller to be done with the new apps',
    async () => {
      const start = await auditEnd();
      await sleep(3000);
      const writes = (await auditFrom(start)).filter(
        ({ verb, user, objectRef }) =>
          user.username.endsWith(':kf-controller') && !['get', 'list', 'watch'].includes(verb) && objectRef?.resource !== 'leases',
      );
      return writes.length === 0;
    },
    600_000,
  );
}

export async function benchListing({ folder }: Scene): Promise<Row[]> {
  const { kf, kubeconfig, guid, home } = await makeSpace(folder);
  const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: home };
  const rows: Row[] = [];
  let present = 0;
  for (const size of sizes) {
    await addApps(guid, present, size - present);
    present = size;
    await untilQuiet();
    for (const command of ['apps', 'routes', 'services']) {
      const ask = async (): Promise<number> => (await kf.ok(command)).milliseconds;
      const rival = async (): Promise<number> => (await timed('kubectl', ['get', 'cfapps', '-n', guid], env)).milliseconds;
      const [ours, others] = await race(ask, rival, pairs);
      rows.push({
        what: `\`kf ${command}\`, ${size} apps`,
        reach: `≤ ${millis([1.5 * median(others) + 150])} (1.5 × kubectl get cfapps + 150 ms)`,
        measured: `${millis(ours)}, ${ratio(ours, others)}`,
        beside: `\`kubectl get cfapps\` ${millis(others)}`,
      });
    }
    if (size === 200) rows.push(await completionRow(kf, size));
  }
  await kf.remove();
  return rows;
}
