// target, api, auth: what the next commands work on.

import type { TargetDetails } from '../api/results.ts';
import { KfError } from '../errors.ts';
import { findOrg, findSpace, listSpaces } from '../target/places.ts';
import type { Session } from '../target/session.ts';
import type { Named, TargetState } from '../target/state.ts';

/** The API server's version, e.g. `v1.36.0`. */
export async function serverVersion({ cluster, signal }: Session): Promise<string> {
  const answer = await cluster.raw({ method: 'GET', path: '/version', signal });
  let text = '';
  for await (const chunk of answer.body) text += String(chunk);
  if (answer.status !== 200) return 'unknown';
  return (JSON.parse(text) as { gitVersion?: string }).gitVersion ?? 'unknown';
}

export interface TargetOptions {
  org?: string;
  space?: string;
}

function base(session: Session): TargetState {
  const { context, server } = session.cluster.identity;
  const { org: _org, space: _space, ...rest } = session.state;
  return { ...rest, context, server };
}

/** The org, or nothing remembered at all when it is not there. */
async function chooseOrg(session: Session, name: string): Promise<Named> {
  try {
    return await findOrg(session, name);
  } catch (error) {
    session.save(base(session));
    throw error;
  }
}

async function chooseSpace(session: Session, org: Named, name: string): Promise<Named> {
  try {
    return await findSpace(session, org, name);
  } catch (error) {
    session.save({ ...base(session), org });
    throw error;
  }
}

/** cf's rules: `-o` clears the space and takes the org's only one; what fails clears what it was to set. */
export async function setTarget(
  session: Session,
  { org: orgName, space: spaceName }: TargetOptions,
): Promise<{ org: Named; space?: Named }> {
  const org = orgName === undefined ? session.org : await chooseOrg(session, orgName);
  if (org === undefined) {
    throw new KfError('usage', 'An org must be targeted before targeting a space.', { hints: [`${session.bin} target -o ORG -s SPACE`] });
  }
  let space: Named | undefined;
  if (spaceName !== undefined) space = await chooseSpace(session, org, spaceName);
  else {
    const spaces = await listSpaces(session, org);
    if (spaces.length === 1) space = spaces[0];
  }
  session.save({ ...base(session), org, ...(space === undefined ? {} : { space }) });
  return { org, ...(space === undefined ? {} : { space }) };
}

export async function describeTarget(session: Session, place: { org?: Named; space?: Named }): Promise<TargetDetails> {
  const { context, server } = session.cluster.identity;
  return {
    endpoint: server,
    apiVersion: await serverVersion(session),
    context,
    user: session.user,
    ...(place.org === undefined ? {} : { org: place.org }),
    ...(place.space === undefined ? {} : { space: place.space }),
  };
}
