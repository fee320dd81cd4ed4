// Which orgs may use a domain (docs/decisions/0079).

import type { CFDomain } from './types.generated.ts';

/** True for a domain that belongs to an org. */
export const isPrivate = ({ spec }: CFDomain): boolean => spec.org !== undefined;

/**
 * True when every space of the org may have the route for all hosts of the domain: it is theirs. A path would come before the hosts of other
 * spaces.
 */
export function isFreeForEveryHost({ spec }: CFDomain, org: string | undefined, path = ''): boolean {
  return spec.org !== undefined && spec.org === org && path === '';
}

/** True when the spaces of the org may have routes on the domain. */
export function isUsableBy({ spec }: CFDomain, org: string): boolean {
  return spec.org === undefined || spec.org === org || (spec.sharedWith ?? []).includes(org);
}
