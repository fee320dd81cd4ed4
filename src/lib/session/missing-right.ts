// Says what a user may not do in the words of cf, and which role allows it: the API server names kinds, namespaces and verbs.

import type { KfError } from '../errors.ts';
import { describeRight } from '../kube/errors.ts';
import type { NameAndGuid } from './state.ts';

type Right = Parameters<typeof describeRight>[0];

/** The part of a session that names places. */
interface Place {
  readonly org?: NameAndGuid | undefined;
  readonly space?: NameAndGuid | undefined;
  readonly root: string;
  readonly bin: string;
}

const things: Readonly<Record<string, string>> = {
  cfapps: 'apps',
  cfprocesses: 'processes',
  'cfprocesses/scale': 'the number of instances',
  cfpackages: 'packages',
  cfbuilds: 'builds',
  cfroutes: 'routes',
  cfnetworkpolicies: 'network policies',
  cftasks: 'tasks',
  cfserviceinstances: 'service instances',
  cfservicebindings: 'service bindings',
  cforgs: 'orgs',
  cfspaces: 'spaces',
  cfquotas: 'quotas',
  cfdomains: 'domains',
  cffeatureflags: 'feature flags',
  secrets: 'variables and credentials',
  pods: 'instances',
  'pods/log': 'logs',
  rolebindings: 'roles of users',
};

const verbs: Readonly<Record<string, string>> = {
  get: 'read',
  list: 'read',
  watch: 'read',
  create: 'create',
  patch: 'change',
  update: 'change',
  delete: 'delete',
};

const doings: Readonly<Record<string, string>> = {
  'pods/exec': 'run commands in instances',
  'pods/portforward': 'connect to ports of instances',
};

/** What a right allows, in words; undefined for what cf has no word for. */
function doingOf({ verb, resource }: Right): string | undefined {
  const known = doings[resource];
  if (known !== undefined) return known;
  const [doing, thing] = [verbs[verb], things[resource]];
  return doing === undefined || thing === undefined ? undefined : `${doing} ${thing}`;
}

const isReading = ({ verb, resource }: Right): boolean =>
  verbs[verb] === 'read' && resource !== 'secrets' && doings[resource] === undefined;

/** The role of a space that has the right, and few others. */
export function spaceRoleFor(right: Right): string {
  if (isReading(right)) return 'SpaceAuditor';
  return right.resource === 'rolebindings' || right.resource === 'cfspaces' ? 'SpaceManager' : 'SpaceDeveloper';
}

/** The same for an org. */
export const orgRoleFor = (right: Right): string => (isReading(right) ? 'OrgAuditor' : 'OrgManager');

interface Named {
  /** ` in org 'o' / space 's'` */
  where: string;
  /** Who grants it, and the command for it. */
  hints: string[];
}

const byManager = 'A manager of the org or space, or an administrator of the cluster, must grant it.';
const byAdministrator = 'An administrator of the cluster must grant it.';

const word = (text: string): string => (/^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

function named({ org, space, root, bin }: Place, right: Right, user: string): Named | undefined {
  // Every member of an org may read there.
  if (right.ns === root) return { where: '', hints: [isReading(right) ? byManager : byAdministrator] };
  if (org === undefined) return undefined;
  const command = (verb: string, ...args: string[]): string => [bin, verb, ...args.map(word)].join(' ');
  if (right.ns === space?.guid && space !== undefined) {
    const role = command('set-space-role', user, org.name, space.name, spaceRoleFor(right));
    return { where: ` in org '${org.name}' / space '${space.name}'`, hints: [byManager, role] };
  }
  if (right.ns !== org.guid) return undefined;
  return { where: ` in org '${org.name}'`, hints: [byManager, command('set-org-role', user, org.name, orgRoleFor(right))] };
}

function rightsOf({ details }: KfError): (Right & { user: string })[] {
  const { missingRight, missingRights } = details;
  return (Array.isArray(missingRights) ? missingRights : missingRight === undefined ? [] : [missingRight]) as (Right & { user: string })[];
}

/** Puts the error of missing rights into words of cf, as far as it has them. `error.details` keeps the rights as Kubernetes names them. */
export function nameRights(place: Place, error: KfError): void {
  let isFirst = true;
  for (const right of rightsOf(error)) {
    const [doing, known] = [doingOf(right), named(place, right, right.user)];
    if (doing === undefined || known === undefined) continue;
    error.message = error.message.replace(describeRight(right), `may not ${doing}${known.where}`);
    if (isFirst && (error.hints[0] === byManager || error.hints[0] === byAdministrator)) error.hints.splice(0, 1, ...known.hints);
    isFirst = false;
  }
}
