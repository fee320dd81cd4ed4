// What the commands about a route and another space have in common: their arguments and flags, and what these name.

import * as Flags from '@oclif/core/flags';
import { hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import type { NamedRouteAndSpace } from '../lib/ops/routes/route-and-space.ts';

export const routeArgs = { DOMAIN: requiredArg('domain') };

/** @param summary of `--other-space` */
export const routeAndSpaceFlags = (summary: string) => ({
  hostname: hostnameFlag(),
  path: pathFlag(),
  'other-org': Flags.string({ char: 'o', summary: 'org of that space, default the targeted one', helpValue: 'OTHER_ORG' }),
  'other-space': Flags.string({ char: 's', summary, helpValue: 'OTHER_SPACE' }),
});

interface Given {
  hostname: string;
  path?: string | undefined;
  'other-org'?: string | undefined;
  'other-space'?: string | undefined;
}

/** The address and the other space. @throws KfError `usage` without a space */
export function routeAndSpaceIn({ DOMAIN }: { DOMAIN: string }, flags: Given): NamedRouteAndSpace {
  const { hostname: host, path = '', 'other-org': otherOrg, 'other-space': otherSpace = '' } = flags;
  if (otherSpace === '') throw incorrectUsage("the required flag `-s' was not specified");
  return { domain: DOMAIN, host, path, otherOrg, otherSpace };
}
