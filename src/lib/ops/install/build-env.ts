// The environment that setup gives every build. Only the controller can read it; all others see its revision.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { secretType } from '../../api/core.ts';
import { annotations, places } from '../../api/group.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { encoded } from '../../../templates/metadata.ts';
import { systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';

/** The environment of builds in the cluster; undefined if there is none. */
export async function readBuildEnv(cluster: Cluster): Promise<Record<string, string> | undefined> {
  const { data = {} } = (await cluster.get(secretType, systemNamespace, places.installationEnv)) ?? {};
  const entries = Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString('utf8')]);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Record<string, string>);
}

/**
 * The plan with the revision of its build environment; an unchanged environment keeps its revision. The revision is not a hash, because readers of
 * a hash could guess passwords with it.
 */
export async function withBuildEnvRevision(cluster: Cluster, plan: SetupPlan): Promise<SetupPlan> {
  if (Object.keys(plan.buildEnv).length === 0) return plan;
  const live = await cluster.get(secretType, systemNamespace, places.installationEnv);
  const known = live?.metadata.annotations?.[annotations.revision];
  const isSame = isDeepStrictEqual({ ...live?.data }, { ...encoded(plan.buildEnv) });
  return { ...plan, buildEnvRevision: known !== undefined && isSame ? known : randomUUID() };
}
