// The environment that setup gives every build: kept where only the controller reads it, and known to everybody by a revision.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { secretType } from '../../api/core.ts';
import { annotations, places } from '../../api/group.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { encoded } from '../../../templates/metadata.ts';
import { systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';

/** The environment of builds as it is in the cluster; undefined where none is. */
export async function readBuildEnv(cluster: Cluster): Promise<Record<string, string> | undefined> {
  const { data = {} } = (await cluster.get(secretType, systemNamespace, places.installationEnv)) ?? {};
  const entries = Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString('utf8')]);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Record<string, string>);
}

/**
 * The plan with the revision of its build environment: that of the cluster while nothing has changed. It is no hash, since whoever reads it could try
 * passwords against one.
 */
export async function withBuildEnvRevision(cluster: Cluster, plan: SetupPlan): Promise<SetupPlan> {
  if (Object.keys(plan.buildEnv).length === 0) return plan;
  const live = await cluster.get(secretType, systemNamespace, places.installationEnv);
  const known = live?.metadata.annotations?.[annotations.revision];
  const isSame = isDeepStrictEqual({ ...live?.data }, { ...encoded(plan.buildEnv) });
  return { ...plan, buildEnvRevision: known !== undefined && isSame ? known : randomUUID() };
}
