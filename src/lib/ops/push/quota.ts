// Checks before a new app is created whether the space's quotas have enough left for it.

import { processDefaults, webProcess } from '../../api/app.ts';
import { kinds, limitsName } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { readApplied } from '../../api/quotas.ts';
import { counted, formatMegabytes, megabyte } from '../../api/sizes.ts';
import { KfError } from '../../errors.ts';
import type { AppPlan, ProcessPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildContainers } from '../../../templates/build-job.ts';
import { appInstances, quotaRefusal, readQuotas, type Need, type QuotaRefusal, type ResourceQuota } from '../apps/quota-left.ts';

interface ProcessSize {
  instances: number;
  memoryMB: number;
  diskMB: number;
}

/** The sizes in the flags of hints. */
const small = { memoryMB: 128, diskMB: 256 };

function sizeOf(plan: ProcessPlan, { processDefaults: defaults }: KfInfo): ProcessSize {
  const { instances = processDefaults.instances(plan.type), memoryMB = defaults.memoryMB, diskQuotaMB = defaults.diskQuotaMB } = plan;
  return { instances, memoryMB, diskMB: diskQuotaMB };
}

const objects = ({ plural }: { plural: string }, word: string, amount: number): Need => ({
  names: [`count/${plural}.${kinds.app.group}`],
  amount,
  what: `it takes ${more(amount, word)}`,
  isBytes: false,
});

const more = (amount: number, noun: string): string =>
  `${String(amount)} more ${amount === 1 ? noun : noun.endsWith('s') ? `${noun}es` : `${noun}s`}`;

const total = (sizes: readonly ProcessSize[], of: (size: ProcessSize) => number): number =>
  sizes.reduce((sum, size) => sum + size.instances * of(size), 0);

/** Each container of a build's pod may write this much; none of them requests it. */
const buildDiskMB = (staging: KfInfo['staging']): number => staging.diskMB * Object.keys(buildContainers).length;

/** Memory, disk and pods. Flags of push change only the web process. */
function sizeNeeds(web: ProcessSize, others: readonly ProcessSize[], staging: KfInfo['staging'] | undefined): Need[] {
  const all = [web, ...others];
  const instances = total(all, () => 1);
  const take = `${counted(instances, 'instance')} ${instances === 1 ? 'takes' : 'take'}`;
  const memoryMB = total(all, (size) => size.memoryMB);
  const diskMB = total(all, (size) => size.diskMB);
  const bytes = (megabytes: number): number => megabytes * megabyte;
  const stagingMB = staging?.memoryMB ?? 0;
  const stagingDiskMB = staging === undefined ? 0 : buildDiskMB(staging);
  const smallDiskMB = small.diskMB + total(others, (size) => size.diskMB);
  const disk = (names: string[], ofBuildMB: number): Need => ({
    names,
    amount: bytes(Math.max(diskMB, ofBuildMB)),
    what: `${ofBuildMB > diskMB ? `its build takes up to ${formatMegabytes(ofBuildMB)}` : `${take} ${formatMegabytes(diskMB)}`} of disk`,
    isBytes: true,
    smaller: { amount: bytes(Math.max(smallDiskMB, ofBuildMB)), flags: `-k ${small.diskMB}M -i 1` },
  });
  const what = stagingMB > memoryMB ? `its build takes ${formatMegabytes(stagingMB)}` : `${take} ${formatMegabytes(memoryMB)}`;
  return [
    {
      names: ['memory', 'requests.memory', 'limits.memory'],
      amount: bytes(Math.max(memoryMB, stagingMB)),
      what: `${what} of memory`,
      isBytes: true,
      smaller: {
        amount: bytes(Math.max(small.memoryMB + total(others, (size) => size.memoryMB), stagingMB)),
        flags: `-m ${small.memoryMB}M -i 1`,
      },
    },
    disk(['requests.ephemeral-storage', 'ephemeral-storage'], 0),
    disk(['limits.ephemeral-storage'], stagingDiskMB),
    {
      names: ['pods', 'count/pods'],
      amount: Math.max(instances, staging === undefined ? 0 : 1),
      what: `it takes ${more(Math.max(instances, staging === undefined ? 0 : 1), 'pod')}`,
      isBytes: false,
      smaller: { amount: 1 + total(others, () => 1), flags: '-i 1' },
    },
    {
      names: [appInstances],
      amount: instances,
      what: `it takes ${more(instances, 'instance')}`,
      isBytes: false,
      smaller: { amount: 1 + total(others, () => 1), flags: '-i 1' },
    },
  ];
}

/** The needs of a new app's instances, and of its build, which runs before them; the two do not run at the same time. */
export function needsOfNewApp(plan: AppPlan, info: KfInfo, start: boolean): Need[] {
  const given = plan.processes.find(({ type }) => type === webProcess);
  const others = plan.processes.filter(({ type }) => type !== webProcess);
  const none: ProcessSize = { instances: 0, memoryMB: 0, diskMB: 0 };
  const size = (process: ProcessPlan): ProcessSize => (start ? sizeOf(process, info) : none);
  const routes = plan.noRoute ? 0 : Math.max(plan.routes.length, plan.defaultRoute || plan.randomRoute ? 1 : 0);
  return [
    ...sizeNeeds(size(given ?? { type: webProcess }), others.map(size), plan.lifecycle === 'docker' ? undefined : info.staging),
    objects(kinds.app, 'app', 1),
    objects(kinds.build, 'build', 1),
    objects(kinds.process, 'process', others.length + 1),
    objects(kinds.route, 'route', routes),
    objects(kinds.serviceBinding, 'service binding', plan.services.length),
  ];
}

/** Why an instance of a process would be larger than the quotas of org and space allow; undefined when none would be. */
export function instanceRefusal(quotas: readonly ResourceQuota[], plan: AppPlan, info: KfInfo): QuotaRefusal | undefined {
  const limits = quotas.find(({ metadata }) => metadata.name === limitsName);
  const { org, space } = limits === undefined ? {} : readApplied(limits);
  const [inOrg = Infinity, inSpace = Infinity] = [org?.limits.instanceMemoryMB, space?.limits.instanceMemoryMB];
  const most = Math.min(inOrg, inSpace);
  const processes = plan.processes.some(({ type }) => type === webProcess) ? plan.processes : [{ type: webProcess }, ...plan.processes];
  const large = processes.find((process) => sizeOf(process, info).memoryMB > most);
  if (large === undefined) return undefined;
  const quota = inSpace <= inOrg ? `space quota '${space?.name ?? ''}'` : `org quota '${org?.name ?? ''}'`;
  const asked = formatMegabytes(sizeOf(large, info).memoryMB);
  const why = `an instance of '${large.type}' takes ${asked} of memory, and the ${quota} allows at most ${formatMegabytes(most)}`;
  return large.type === webProcess && most > 0 ? { why, flags: `-m ${formatMegabytes(most)}` } : { why };
}

/** @throws KfError `quota` when a new app cannot fit into the space */
export async function assertRoom(session: SpaceSession, info: KfInfo, plan: AppPlan, start: boolean): Promise<void> {
  const { space, bin } = session;
  const quotas = await readQuotas(session);
  const refused = instanceRefusal(quotas, plan, info) ?? quotaRefusal(quotas, needsOfNewApp(plan, info, start));
  if (refused === undefined) return;
  throw new KfError('quota', `App '${plan.name}' exceeds a quota of space '${space.name}': ${refused.why}.`, {
    hints: [`${bin} apps`, ...(refused.flags === undefined ? [] : [`${bin} push ${plan.name} ${refused.flags}`])],
  });
}
