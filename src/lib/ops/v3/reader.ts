// Finds objects of all orgs and spaces that the caller may read, by GUID or by the filters of a query.

import pLimit from 'p-limit';
import { roleBindingType, type RoleBinding } from '../../api/core.ts';
import { kinds } from '../../api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../api/object.ts';
import type { CFOrg, CFSpace } from '../../api/types.generated.ts';
import { isForbidden } from '../../kube/errors.ts';
import { withParts } from '../../session/overlay.ts';
import { readOrgs, readSpaces } from '../../session/places.ts';
import type { Session, SpaceSession } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { V3Error } from '../../v3/errors.ts';
import type { V3Query } from '../../v3/query.ts';

/** Requests at the same time. */
const parallelRequests = 5;
/** A GUID is the name of an object or a namespace. */
const isGuid = (text: string): boolean => /^[a-z0-9][-a-z0-9.]{0,252}$/.test(text);
const isLive = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined;
const guidOf = ({ metadata }: Stored): string => metadata.name;
const named = ({ metadata, spec }: Stored<CFOrg> | Stored<CFSpace>): NameAndGuid => ({ guid: metadata.name, name: spec.displayName });

/** The result, or `otherwise` where the caller may not read; spaces in which a user has no role are not an error. */
async function ifAllowed<T, O>(reading: Promise<T>, otherwise: O): Promise<T | O> {
  try {
    return await reading;
  } catch (error) {
    if (isForbidden(error)) return otherwise;
    throw error;
  }
}

export class Reader {
  readonly session: Session;
  readonly #limit = pLimit(parallelRequests);
  #orgs: Promise<Stored<CFOrg>[]> | undefined;
  readonly #spaces = new Map<string, Promise<Stored<CFSpace>[]>>();

  constructor(session: Session) {
    this.session = session;
  }

  /** All orgs, read once. */
  async orgs(): Promise<Stored<CFOrg>[]> {
    this.#orgs ??= readOrgs(this.session);
    return (await this.#orgs).filter(isLive);
  }

  /** The spaces of some orgs, or of all, each read once. */
  async spaces(orgs?: readonly string[]): Promise<Stored<CFSpace>[]> {
    const guids = orgs ?? (await this.orgs()).map(guidOf);
    const lists = guids.filter(isGuid).map((guid) => {
      const reading = this.#spaces.get(guid) ?? this.#limit(() => ifAllowed(readSpaces(this.session, { guid, name: '' }), []));
      this.#spaces.set(guid, reading);
      return reading;
    });
    return (await Promise.all(lists)).flat().filter(isLive);
  }

  /** The objects of the spaces that `space_guids` and `organization_guids` choose; without them, of all spaces. */
  async list<T extends KubeObject>(type: ResourceType<T>, query?: V3Query): Promise<Stored<T>[]> {
    const [spaces, orgs] = [query?.words('space_guids'), query?.words('organization_guids')];
    if (spaces === undefined && orgs === undefined) return this.#everywhere(type);
    const ofOrgs = orgs === undefined ? undefined : (await this.spaces(orgs)).map(guidOf);
    const wanted = spaces === undefined ? (ofOrgs ?? []) : spaces.filter((guid) => ofOrgs?.includes(guid) ?? true);
    return this.#inEach(type, wanted);
  }

  /** The objects of these namespaces; none of a namespace that the caller may not read. */
  listIn<T extends KubeObject>(type: ResourceType<T>, namespaces: readonly string[]): Promise<Stored<T>[]> {
    return this.#inEach(type, namespaces);
  }

  /** The same. @throws KfError `forbidden` for a namespace that the caller may not read */
  listWhole<T extends KubeObject>(type: ResourceType<T>, namespaces: readonly string[]): Promise<Stored<T>[]> {
    return this.#inEach(type, namespaces, (reading) => reading);
  }

  /** Those of which the answer is yes; no where the caller may not ask. */
  async filterAllowed<T>(items: readonly T[], ask: (item: T) => Promise<boolean>): Promise<T[]> {
    const answers = await this.#limit.map(items, (item) => ifAllowed(ask(item), false));
    return items.filter((_, at) => answers[at]);
  }

  /** The roles in the orgs and spaces that the query chooses. */
  async roleBindings(query: V3Query): Promise<Stored<RoleBinding>[]> {
    const [spaces, orgs] = [query.words('space_guids'), query.words('organization_guids')];
    if (spaces !== undefined || orgs !== undefined) return this.#inEach(roleBindingType, [...(spaces ?? []), ...(orgs ?? [])]);
    const all = [...(await this.orgs()), ...(await this.spaces())];
    return this.#inEach(roleBindingType, all.map(guidOf));
  }

  /** The roles in the whole installation: in its root namespace, and in all orgs and spaces. */
  async allRoleBindings(): Promise<Stored<RoleBinding>[]> {
    const all = [...(await this.orgs()), ...(await this.spaces())];
    return this.#inEach(roleBindingType, [this.session.root, ...all.map(guidOf)]);
  }

  /** @param what its kind in a sentence: `App` @throws V3Error 404 */
  async find<T extends KubeObject>(type: ResourceType<T>, what: string, guid: string): Promise<Stored<T>> {
    const found = await this.findIfAny(type, guid);
    if (found === undefined) throw new V3Error('not-found', `${what} not found`);
    return found;
  }

  /** The object in any space: first in the targeted one. */
  async findIfAny<T extends KubeObject>(type: ResourceType<T>, guid: string): Promise<Stored<T> | undefined> {
    if (!isGuid(guid)) return undefined;
    const { cluster, signal, space } = this.session;
    if (space !== undefined) {
      const near = await ifAllowed(cluster.get(type, space.guid, guid, signal), undefined);
      if (near !== undefined) return near;
    }
    const [found] = await this.#everywhere(type, guid);
    return found;
  }

  async org(guid: string): Promise<Stored<CFOrg>> {
    const { cluster, signal, root } = this.session;
    const found = isGuid(guid) ? await cluster.get(kinds.org, root, guid, signal) : undefined;
    if (found === undefined) throw new V3Error('not-found', 'Organization not found');
    return found;
  }

  async space(guid: string): Promise<Stored<CFSpace>> {
    const found = await this.spaceIfAny(guid);
    if (found === undefined) throw new V3Error('not-found', 'Space not found');
    return found;
  }

  /** The space in any org: first in the targeted one. */
  async spaceIfAny(guid: string): Promise<Stored<CFSpace> | undefined> {
    if (!isGuid(guid)) return undefined;
    const { org } = this.session;
    const near = org === undefined ? undefined : (await this.spaces([org.guid])).find((space) => guidOf(space) === guid);
    if (near !== undefined) return near;
    const { cluster, signal } = this.session;
    const everywhere = await ifAllowed(cluster.list(kinds.space, { fieldSelector: `metadata.name=${guid}`, signal }), undefined);
    return everywhere === undefined ? (await this.spaces()).find((space) => guidOf(space) === guid) : everywhere.items[0];
  }

  /** The session in the space of an object, for ops that only read: its names are not looked up. */
  within({ metadata }: { metadata: { namespace: string } }): SpaceSession {
    const space = { guid: metadata.namespace, name: '' };
    return withParts(this.session, { org: { guid: '', name: '' }, space });
  }

  /** The session in the space of an object, as if the space was targeted. */
  async at({ metadata }: { metadata: { namespace: string } }): Promise<SpaceSession> {
    const space = await this.space(metadata.namespace);
    const org = await this.org(space.metadata.namespace);
    return withParts(this.session, { org: named(org), space: named(space) });
  }

  /** In one request where the caller may read the whole cluster, otherwise space by space. */
  async #everywhere<T extends KubeObject>(type: ResourceType<T>, guid?: string): Promise<Stored<T>[]> {
    const { cluster, signal } = this.session;
    const only = guid === undefined ? {} : { fieldSelector: `metadata.name=${guid}` };
    const all = await ifAllowed(cluster.list(type, { ...only, signal }), undefined);
    if (all !== undefined) return guid === undefined ? all.items.filter(isLive) : all.items;
    const spaces = (await this.spaces()).map(guidOf);
    if (guid === undefined) return this.#inEach(type, spaces);
    const found = await this.#limit.map(spaces, (ns) => ifAllowed(cluster.get(type, ns, guid, signal), undefined));
    return found.filter((object) => object !== undefined);
  }

  async #inEach<T extends KubeObject>(
    type: ResourceType<T>,
    namespaces: readonly string[],
    judge: (reading: Promise<Stored<T>[]>) => Promise<Stored<T>[]> = (reading) => ifAllowed(reading, []),
  ): Promise<Stored<T>[]> {
    const { cluster, signal } = this.session;
    const read = async (ns: string): Promise<Stored<T>[]> => (await cluster.list(type, { ns, signal })).items.filter(isLive);
    const lists = await this.#limit.map([...new Set(namespaces)].filter(isGuid), (ns) => judge(read(ns)));
    return lists.flat();
  }
}
