// Why a build failed.

import { adviceOn } from '../../api/advice.ts';
import { causeOfFailedBuild } from '../../api/causes.ts';
import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { WhyDetails } from '../../api/results.ts';
import type { CFApp, CFBuild } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { lastLinesOf, warningsAbout } from './evidence.ts';

/** The container that a failure is of which names none. */
const buildContainer = 'build';

/** Why this build failed, what it waits for, or that it succeeded. */
export async function whyBuild(session: SpaceSession, app: Stored<CFApp>, build: Stored<CFBuild>): Promise<WhyDetails> {
  const { bin, space } = session;
  const { name, creationTimestamp: since } = build.metadata;
  const { displayName } = app.spec;
  const { state, failure } = build.status ?? {};
  const about = { kind: 'build' as const, name, ...defined({ since }) };
  if (state === 'STAGED')
    return { ...about, state: 'well', message: `Build '${name}' of app '${displayName}' succeeded.`, events: [], next: [] };
  const events = await warningsAbout(session, new Set([name, app.metadata.name, failure?.pod ?? name]));
  const condition = findCondition(build, state === 'FAILED' ? conditionTypes.succeeded : conditionTypes.staging);
  if (state !== 'FAILED') {
    const awaited = condition === undefined || condition.message === '' ? 'The build runs.' : condition.message;
    return { ...about, state: 'waiting', message: awaited, events, next: [`${bin} logs ${displayName}`] };
  }
  const said = condition?.message ?? '';
  const cause = causeOfFailedBuild(failure ?? {}, said);
  const log = await lastLinesOf(session, app, { container: failure?.lane ?? buildContainer, ...failure }, cause);
  return {
    ...about,
    state: 'failed',
    cause,
    message: `Error staging application: ${said === '' ? 'the cause is unknown.' : said}`,
    ...defined({ container: failure?.lane, exitCode: failure?.exitCode }),
    ...log,
    events,
    next: adviceOn(cause, { bin, app: displayName, ns: space.guid }),
  };
}

/** In RFC 3339; empty when it is not known. */
export const createdAt = ({ metadata }: Stored<CFBuild>): string => metadata.creationTimestamp ?? '';

/** The one that was created last. */
export const newestOf = (builds: readonly Stored<CFBuild>[]): Stored<CFBuild> | undefined =>
  builds.toSorted((a, b) => createdAt(b).localeCompare(createdAt(a)))[0];

/** It has neither succeeded nor failed yet. */
export const isUnderWay = ({ status }: CFBuild): boolean => status?.state !== 'STAGED' && status?.state !== 'FAILED';

/** The newest build of the app. @throws KfError `not-found` when it has none */
export async function newestBuild({ cluster, space, signal, bin }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFBuild>> {
  const labelSelector = `${labels.appGuid}=${app.metadata.name}`;
  const { items } = await cluster.list(kinds.build, { ns: space.guid, labelSelector, signal });
  const newest = newestOf(items);
  if (newest !== undefined) return newest;
  throw new KfError('not-found', `App '${app.spec.displayName}' has no build.`, { hints: [`${bin} push ${app.spec.displayName}`] });
}
