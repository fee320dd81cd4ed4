// `include`: resources that belong to those of a page, each once.

import { kinds } from '../../api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../api/object.ts';
import type { CFSpace } from '../../api/types.generated.ts';
import { presentApp } from '../../v3/apps.ts';
import type { Sortable, V3Page } from '../../v3/pages.ts';
import { presentOrg, presentSpace, presentUser } from '../../v3/places.ts';
import type { LinkTo, V3Resource } from '../../v3/resource.ts';
import { presentDomain } from '../../v3/routes.ts';
import { presentServiceInstance } from '../../v3/services.ts';
import { defined } from '../../defined.ts';
import { listDomainObjects } from '../find.ts';
import type { Asked } from './request.ts';

type Relationships = Partial<Record<string, { data?: { guid: string } | null } | null>>;

/** The GUIDs to which the resources have a relationship of that name. */
function related(resources: readonly Sortable[], name: string): string[] {
  const guids = resources.map(({ relationships }) => (relationships as Relationships | undefined)?.[name]?.data?.guid);
  return [...new Set(guids.filter((guid) => guid !== undefined))];
}

async function objects<T extends KubeObject>(
  { reader, link }: Asked,
  type: ResourceType<T>,
  guids: readonly string[],
  present: (object: Stored<T>, link: LinkTo) => V3Resource,
): Promise<V3Resource[]> {
  const found = await Promise.all(guids.map((guid) => reader.findIfAny(type, guid)));
  return found.filter((object) => object !== undefined).map((object) => present(object, link));
}

async function orgs({ reader, link }: Asked, guids: readonly string[]): Promise<V3Resource[]> {
  const all = await reader.orgs();
  return all.filter(({ metadata }) => guids.includes(metadata.name)).map((org) => presentOrg(org, link));
}

async function spaces({ reader }: Asked, page: readonly Sortable[]): Promise<Stored<CFSpace>[]> {
  const found = await Promise.all(related(page, 'space').map((guid) => reader.spaceIfAny(guid)));
  return found.filter((space) => space !== undefined);
}

/** What each word of `include` adds. */
const readers: Record<string, (asked: Asked, page: readonly Sortable[]) => Promise<Record<string, V3Resource[]>>> = {
  space: async (asked, page) => ({ spaces: (await spaces(asked, page)).map((space) => presentSpace(space, asked.link)) }),
  organization: async (asked, page) => ({ organizations: await orgs(asked, related(page, 'organization')) }),
  'space.organization': async (asked, page) => {
    const found = await spaces(asked, page);
    const organizations = await orgs(
      asked,
      found.map(({ metadata }) => metadata.namespace),
    );
    return { spaces: found.map((space) => presentSpace(space, asked.link)), organizations };
  },
  domain: async (asked, page) => {
    const guids = related(page, 'domain');
    const all = await listDomainObjects(asked.reader.session);
    return { domains: all.filter(({ metadata }) => guids.includes(metadata.name)).map((domain) => presentDomain(domain, asked.link)) };
  },
  user: (_, page) => Promise.resolve({ users: related(page, 'user').map(presentUser) }),
  app: async (asked, page) => ({ apps: await objects(asked, kinds.app, related(page, 'app'), presentApp) }),
  service_instance: async (asked, page) => ({
    service_instances: await objects(asked, kinds.serviceInstance, related(page, 'service_instance'), presentServiceInstance),
  }),
};

/** What the words of `include` add to these resources; undefined without any. @param possible words that the request knows */
async function includedIn(
  asked: Asked,
  resources: readonly Sortable[],
  possible: readonly string[],
): Promise<Record<string, V3Resource[]> | undefined> {
  const words = asked.query.includes(possible);
  if (words.length === 0) return undefined;
  const parts = await Promise.all(words.map(async (word) => readers[word]?.(asked, resources)));
  return Object.assign({}, ...parts) as Record<string, V3Resource[]>;
}

/** The page with the resources that `include` names. */
export async function withIncluded(asked: Asked, page: V3Page, possible: readonly string[]): Promise<V3Page> {
  return { ...page, ...defined({ included: await includedIn(asked, page.resources, possible) }) };
}

/** One resource with what `include` names. */
export async function oneWithIncluded(asked: Asked, resource: V3Resource, possible: readonly string[]): Promise<Sortable> {
  return { ...resource, ...defined({ included: await includedIn(asked, [resource], possible) }) };
}
