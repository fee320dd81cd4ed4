// Compares stack and buildpacks of a push with what the installation's builder has.

import { kinds } from '../../api/group.ts';
import { explicitOrder } from '../../api/build-order.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { BuilderInfo } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';

/** An app and the buildpacks that it names. */
interface WithBuildpacks {
  name: string;
  buildpacks?: readonly string[];
}

/** Root file systems of Cloud Foundry: manifests for it name one, and mean only the usual one. */
const isCfStack = (stack: string): boolean => /^(cflinuxfs\d+|windows\d*)$/.test(stack);

function fitStack({ bin, report }: SpaceSession, plan: AppPlan, builder: BuilderInfo): AppPlan {
  const known = (builder.status?.stacks ?? []).map(({ name }) => name);
  const { stack, ...rest } = plan;
  if (stack === undefined || known.length === 0 || known.includes(stack)) return plan;
  if (isCfStack(stack)) {
    report({ type: 'stack-replaced', app: plan.name, stack, builtOn: known[0] ?? '' });
    return rest;
  }
  throw new KfError('usage', `Stack '${stack}' not found. The builder of this installation has: ${known.join(', ')}`, {
    hints: [`Leave the stack out, or: ${bin} push ${plan.name} -s ${known[0] ?? ''}`],
  });
}

function assertBuildpacks({ bin }: SpaceSession, { name, buildpacks = [] }: WithBuildpacks, builder: BuilderInfo, command = 'push'): void {
  const offered = (builder.status?.buildpacks ?? []).map((buildpack) => ({ id: buildpack.name, version: buildpack.version }));
  if (offered.length === 0 || buildpacks.length === 0) return;
  const order = explicitOrder(buildpacks, offered);
  if (!order.ok)
    throw new KfError('usage', order.message, {
      hints: [`Leave the buildpack out, or: ${bin} ${command} ${name} -b ${offered[0]?.id ?? ''}`],
    });
}

/**
 * The plan with a stack that the builder has. Sends no request when the plan names neither stack nor buildpacks.
 * @throws KfError `usage` when the builder has other ones
 */
export async function fitToBuilder(session: SpaceSession, info: KfInfo, plan: AppPlan): Promise<AppPlan> {
  if (plan.lifecycle === 'docker' || (plan.stack === undefined && (plan.buildpacks ?? []).length === 0)) return plan;
  const builder = await session.cluster.get(kinds.builderInfo, info.root, info.builder.name, session.signal);
  if (builder === undefined) return plan;
  assertBuildpacks(session, plan, builder);
  return fitStack(session, plan, builder);
}

/** For `create-app`. Sends no request when the app names no buildpacks. @throws KfError `usage` when the builder lacks one of them */
export async function assertOffered(session: SpaceSession, info: KfInfo, app: WithBuildpacks): Promise<void> {
  if ((app.buildpacks ?? []).length === 0) return;
  const builder = await session.cluster.get(kinds.builderInfo, info.root, info.builder.name, session.signal);
  if (builder !== undefined) assertBuildpacks(session, app, builder, 'create-app');
}
