// Organizations, spaces and roles.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { isSshEnabled } from '../../api/ssh.ts';
import type { CFOrg, CFSpace } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { withParts } from '../../session/overlay.ts';
import { findOrg, findSpace } from '../../session/places.ts';
import type { OrgSession } from '../../session/session.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import { presentOrg, presentRoles, presentSpace } from '../../v3/places.ts';
import type { V3Resource } from '../../v3/resource.ts';
import { setSpaceSsh } from '../apps/ssh-access.ts';
import { assertMetadata, type MetadataChange } from '../apps/metadata.ts';
import { changeMetadataOf } from '../labels.ts';
import { deleteOrg, deleteSpace } from '../tenancy/delete.ts';
import { renameOrg, renameSpace } from '../tenancy/rename.ts';
import { fieldsOf, metadataIn } from './body.ts';
import { oneWithIncluded, withIncluded } from './included.ts';
import { deletionOf } from './jobs.ts';
import { get, patch, remove, type Asked, type V3Route } from './request.ts';

const fits = ({ query }: Asked, place: Stored<CFOrg> | Stored<CFSpace>): boolean =>
  query.matches('names', place.spec.displayName) && query.matches('guids', place.metadata.name) && query.matchesLabels(place);

async function listOrgs(asked: Asked): Promise<unknown> {
  const { reader, query, link } = asked;
  query.allow(['names', 'guids', 'label_selector']);
  const found = (await reader.orgs()).filter((org) => fits(asked, org));
  return pageOf(
    found.map((org) => presentOrg(org, link)),
    query,
    link,
  );
}

async function oneOrg({ reader, part, link, query }: Asked): Promise<unknown> {
  query.allow([], { isList: false });
  return presentOrg(await reader.org(part('guid')), link);
}

async function listSpaces(asked: Asked): Promise<unknown> {
  const { reader, query, link } = asked;
  query.allow(['names', 'guids', 'organization_guids', 'label_selector', 'include']);
  const found = (await reader.spaces(query.words('organization_guids'))).filter((space) => fits(asked, space));
  const resources = found.map((space) => presentSpace(space, link));
  return withIncluded(asked, pageOf(resources, query, link), ['organization']);
}

async function oneSpace(asked: Asked): Promise<unknown> {
  asked.query.allow(['include'], { isList: false });
  const space = await asked.reader.space(asked.part('guid'));
  return oneWithIncluded(asked, presentSpace(space, asked.link), ['organization']);
}

type Role = V3Resource & { type?: string; relationships?: { user: { data: { guid: string } } } };

async function roles(asked: Asked): Promise<Role[]> {
  const bindings = await asked.reader.roleBindings(asked.query);
  return bindings.flatMap((binding) => presentRoles(binding, asked.link));
}

async function listRoles(asked: Asked): Promise<unknown> {
  const { query, link } = asked;
  query.allow(['guids', 'types', 'user_guids', 'space_guids', 'organization_guids', 'include']);
  const found = (await roles(asked)).filter(
    ({ guid, type, relationships }) =>
      query.matches('guids', guid) && query.matches('types', type) && query.matches('user_guids', relationships?.user.data.guid),
  );
  return withIncluded(asked, pageOf(found, query, link), ['user', 'space', 'organization']);
}

async function oneRole(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  const found = (await roles(asked)).find(({ guid }) => guid === asked.part('guid'));
  if (found === undefined) throw new V3Error('not-found', 'Role not found');
  return found;
}

/** The new name and metadata of an org or space. @throws V3Error 422 */
function changeIn(asked: Asked): { name: string | undefined; metadata: MetadataChange } {
  const { name, metadata } = fieldsOf(asked.body(), ['name', 'metadata']);
  if (name !== undefined && (typeof name !== 'string' || name === '')) throw new V3Error('unprocessable', 'Name must be a text');
  const change = metadataIn(metadata);
  assertMetadata(change);
  return { name, metadata: change };
}

/** The ops find orgs and spaces by their names; of two with one name, only the older one is found. */
function assertFound(what: string, found: { guid: string; name: string }, guid: string): void {
  if (found.guid === guid) return;
  throw new KfError('conflict', `Another ${what} has the name '${found.name}' too; only kubectl can change the one with the GUID ${guid}.`);
}

async function orgToChange({ reader, part }: Asked): Promise<Stored<CFOrg>> {
  const org = await reader.org(part('guid'));
  assertFound('org', await findOrg(reader.session, org.spec.displayName), org.metadata.name);
  return org;
}

async function spaceToChange({ reader, part }: Asked): Promise<{ space: Stored<CFSpace>; session: OrgSession }> {
  const space = await reader.space(part('guid'));
  const { metadata, spec } = await reader.org(space.metadata.namespace);
  const org = { guid: metadata.name, name: spec.displayName };
  assertFound('space', await findSpace(reader.session, org, space.spec.displayName), space.metadata.name);
  return { space, session: withParts(reader.session, { org }) };
}

async function changeOrg(asked: Asked): Promise<unknown> {
  const { name, metadata } = changeIn(asked);
  const { reader, link } = asked;
  const org = await orgToChange(asked);
  if (name !== undefined) await renameOrg(reader.session, org.spec.displayName, name);
  const object = await reader.org(org.metadata.name);
  return presentOrg(await changeMetadataOf(reader.session, { type: kinds.org, object, what: 'The org' }, metadata), link);
}

async function changeSpace(asked: Asked): Promise<unknown> {
  const { name, metadata } = changeIn(asked);
  const { space, session } = await spaceToChange(asked);
  if (name !== undefined) await renameSpace(session, space.spec.displayName, name);
  const object = await session.cluster.get(kinds.space, session.org.guid, space.metadata.name, session.signal);
  if (object === undefined) throw new V3Error('not-found', 'Space not found');
  return presentSpace(await changeMetadataOf(session, { type: kinds.space, object, what: 'The space' }, metadata), asked.link);
}

/** A deletion that takes longer than the op waits goes on in the cluster, and its job tells how it stands. */
async function unlessStillRunning(deletion: Promise<unknown>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'accepted') throw error;
  }
}

async function removeOrg(asked: Asked): Promise<unknown> {
  const org = await orgToChange(asked);
  await unlessStillRunning(deleteOrg(asked.reader.session, org.spec.displayName));
  return deletionOf('organization', org.metadata.name, asked.link);
}

async function removeSpace(asked: Asked): Promise<unknown> {
  const { space, session } = await spaceToChange(asked);
  await unlessStillRunning(deleteSpace(session, space.spec.displayName));
  return deletionOf('space', space.metadata.name, asked.link);
}

const sshFeature = (enabled: boolean): { name: string; description: string; enabled: boolean } => ({
  name: 'ssh',
  description: 'Enable SSHing into apps in the space.',
  enabled,
});

async function spaceFeatures(asked: Asked): Promise<unknown> {
  return pageOf([sshFeature(isSshEnabled(await asked.reader.space(asked.part('guid'))))], asked.query.allow([]), asked.link, true);
}

function assertSsh({ part }: Asked): void {
  if (part('name') !== 'ssh') throw new V3Error('not-found', 'Feature not found');
}

async function spaceFeature(asked: Asked): Promise<unknown> {
  assertSsh(asked);
  return sshFeature(isSshEnabled(await asked.reader.space(asked.part('guid'))));
}

async function changeSpaceFeature(asked: Asked): Promise<unknown> {
  assertSsh(asked);
  const { enabled } = fieldsOf(asked.body(), ['enabled']);
  if (typeof enabled !== 'boolean') throw new V3Error('unprocessable', 'Enabled must be a boolean');
  await setSpaceSsh(asked.reader.session, await asked.reader.space(asked.part('guid')), enabled);
  return sshFeature(enabled);
}

export const placeRoutes: readonly V3Route[] = [
  get('/v3/organizations', listOrgs),
  get('/v3/organizations/:guid', oneOrg),
  patch('/v3/organizations/:guid', changeOrg),
  remove('/v3/organizations/:guid', removeOrg),
  get('/v3/spaces', listSpaces),
  get('/v3/spaces/:guid', oneSpace),
  patch('/v3/spaces/:guid', changeSpace),
  remove('/v3/spaces/:guid', removeSpace),
  get('/v3/spaces/:guid/features', spaceFeatures),
  get('/v3/spaces/:guid/features/:name', spaceFeature),
  patch('/v3/spaces/:guid/features/:name', changeSpaceFeature),
  get('/v3/roles', listRoles),
  get('/v3/roles/:guid', oneRole),
];
