// What the installation's builder offers: stacks and buildpacks.

import { findCondition } from '../../api/conditions.ts';
import { kinds } from '../../api/group.ts';
import type { BuildpackSummary, StackSummary } from '../../api/results.ts';
import type { BuilderInfo } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Session } from '../../session/session.ts';

/** @throws KfError `failed` when the controller could not read the builder's image, or has not read it yet */
async function readBuilder(session: Session): Promise<NonNullable<BuilderInfo['status']>> {
  const info = await session.info();
  const builder = await session.cluster.get(kinds.builderInfo, info.root, info.builder.name, session.signal);
  const { status } = builder ?? {};
  if (status !== undefined && status.stacks.length > 0) return status;
  const why = builder === undefined ? '' : (findCondition(builder, 'Ready')?.message ?? '');
  throw new KfError('failed', why === '' ? 'The controller has not read the builder image yet.' : why, {
    hints: ['An administrator of the cluster can name another image (images.builder): kf setup'],
  });
}

/** The stacks of the builder. */
export async function listStacks(session: Session): Promise<StackSummary[]> {
  const { stacks } = await readBuilder(session);
  // A stack has no object of its own, and its name is unique.
  return stacks.map(({ name, description }) => ({ name, guid: name, description }));
}

/** @throws KfError `not-found`: `Stack 'S' not found.` */
export async function findStack(session: Session, name: string): Promise<StackSummary> {
  const found = (await listStacks(session)).find((stack) => stack.name === name);
  if (found === undefined)
    throw new KfError('not-found', `Stack '${name}' not found.`, { hints: [`${session.bin} stacks`], details: { name } });
  return found;
}

/** The buildpacks in the order of the builder. */
export async function listBuildpacks(session: Session): Promise<BuildpackSummary[]> {
  const { buildpacks } = await readBuilder(session);
  return buildpacks.map(({ name, stack, version }, at) => ({ position: at + 1, name, stack, version }));
}
