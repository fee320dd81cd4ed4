// Whether the space's quotas have room for a new app, so that it is told before there is one.

import { processDefaults } from '../../api/app.ts';
import { kinds } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { resource, type KubeObject } from '../../api/object.ts';
import { formatBytes, parseQuantity } from '../../api/sizes.ts';
import { KfError } from '../../errors.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { AppPlan, ProcessPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../target/session.ts';

interface ResourceQuota extends KubeObject {
  spec?: { scopes?: string[]; scopeSelector?: unknown };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

const quotaType = resource<ResourceQuota>('', 'v1', 'ResourceQuota', 'resourcequotas');
const megabyte = 1024 ** 2;

/** What is needed of one kind of resource, under every name that a quota may give it. */
interface Need {
  names: string[];
  amount: number;
  /** For the sentence: `4 instances`. */
  what: string;
  isBytes: boolean;
}

interface ProcessSize {
  instances: number;
  memoryMB: number;
  diskMB: number;
}

function sizeOf(plan: ProcessPlan, { processDefaults: defaults }: KfInfo): ProcessSize {
  const { instances = processDefaults.instances(plan.type), memoryMB = defaults.memoryMB, diskQuotaMB = defaults.diskQuotaMB } = plan;
  return { instances, memoryMB, diskMB: diskQuotaMB };
}

const objects = (plural: string, amount: number): Need => ({
  names: [`count/${plural}.${kinds.app.group}`],
  amount,
  what: `${String(amount)} more of ${plural}`,
  isBytes: false,
});

/** What the instances of a new app need, and before them its build; both are not there at once. */
export function needsOfNewApp(plan: AppPlan, info: KfInfo, start: boolean): Need[] {
  const web: ProcessPlan[] = plan.processes.some(({ type }) => type === 'web') ? [] : [{ type: 'web' }];
  const sizes = start ? [...plan.processes, ...web].map((process) => sizeOf(process, info)) : [];
  const instances = sizes.reduce((sum, size) => sum + size.instances, 0);
  const sum = (of: (size: ProcessSize) => number): number => sizes.reduce((total, size) => total + size.instances * of(size), 0);
  const isBuilt = plan.lifecycle !== 'docker';
  const memory = sum(({ memoryMB }) => memoryMB);
  const { memoryMB: staging } = info.staging;
  const what =
    isBuilt && staging > memory
      ? `its build takes ${formatBytes(staging * megabyte)}`
      : `${String(instances)} ${instances === 1 ? 'instance takes' : 'instances take'} ${formatBytes(memory * megabyte)}`;
  const bytes = Math.max(memory, isBuilt ? staging : 0) * megabyte;
  const pods = Math.max(instances, isBuilt ? 1 : 0);
  return [
    { names: ['memory', 'requests.memory', 'limits.memory'], amount: bytes, what: `${what} of memory`, isBytes: true },
    {
      names: ['requests.ephemeral-storage', 'limits.ephemeral-storage', 'ephemeral-storage'],
      amount: sum(({ diskMB }) => diskMB) * megabyte,
      what: `${String(instances)} instances take ${formatBytes(sum(({ diskMB }) => diskMB) * megabyte)} of disk`,
      isBytes: true,
    },
    { names: ['pods', 'count/pods'], amount: pods, what: `${String(pods)} more pods`, isBytes: false },
    objects(kinds.app.plural, 1),
    objects(kinds.build.plural, 1),
    objects(kinds.process.plural, plan.processes.length + web.length),
    objects(kinds.route.plural, plan.noRoute ? 0 : Math.max(plan.routes.length, plan.defaultRoute || plan.randomRoute ? 1 : 0)),
    objects(kinds.serviceBinding.plural, plan.services.length),
  ];
}

function refusal(quota: ResourceQuota, name: string, need: Need): string | undefined {
  const hard = parseQuantity(quota.status?.hard?.[name]);
  if (hard === undefined || need.amount === 0) return undefined;
  const used = parseQuantity(quota.status?.used?.[name]) ?? 0;
  const free = Math.max(0, hard - used);
  if (need.amount <= free) return undefined;
  const show = (amount: number): string => (need.isBytes ? formatBytes(amount) : String(amount));
  return `${need.what}, and the quota '${quota.metadata.name ?? ''}' has ${show(free)} of ${show(hard)} left (${name})`;
}

/** Why the quotas have no room; undefined when they have. Quotas for some pods only are left to the API server. */
export function quotaRefusal(quotas: readonly ResourceQuota[], needs: readonly Need[]): string | undefined {
  const whole = quotas.filter(({ spec }) => (spec?.scopes ?? []).length === 0 && spec?.scopeSelector === undefined);
  const reasons = whole.flatMap((quota) => needs.flatMap((need) => need.names.flatMap((name) => refusal(quota, name, need) ?? [])));
  return reasons[0];
}

/** @throws KfError `quota` when a new app cannot fit into the space */
export async function assertRoom(session: SpaceSession, info: KfInfo, plan: AppPlan, start: boolean): Promise<void> {
  const { cluster, space, signal, bin } = session;
  const quotas = await cluster.list(quotaType, { ns: space.guid, signal }).catch((error: unknown) => {
    // Who may not see quotas is told by the API server what they refuse.
    if (isForbidden(error)) return { items: [] };
    throw error;
  });
  const why = quotaRefusal(quotas.items, needsOfNewApp(plan, info, start));
  if (why === undefined) return;
  throw new KfError('quota', `There is no room for app '${plan.name}' in space '${space.name}': ${why}.`, {
    hints: [`${bin} apps`, `${bin} push ${plan.name} -m 128M -i 1`],
  });
}
