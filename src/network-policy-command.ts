// What `add-network-policy` and `remove-network-policy` have in common: their arguments and their first line.

import { KfCommand } from './base-command.ts';
import { requiredArg } from './flags.ts';
import { incorrectUsage } from './lib/cf/usage.ts';
import type { PolicyEnds } from './lib/ops/apps/network-policies.ts';
import type { SpaceSession } from './lib/session/session.ts';

export const policyArgs = {
  SOURCE_APP: requiredArg('app that connects'),
  DESTINATION_APP: requiredArg('app that it connects to'),
};

interface Named {
  source: string;
  destination: string;
  org?: string | undefined;
  space?: string | undefined;
}

export abstract class NetworkPolicyCommand<T> extends KfCommand<T> {
  /** @throws KfError `usage` for an org without a space, as in cf */
  protected assertSpaceNamed({ org, space }: Named): void {
    if (org !== undefined && space === undefined)
      throw incorrectUsage('A space must be provided when an org is provided, but a space was not provided.');
  }

  /** Prints cf's first line, then finds both apps. @param verb `Adding` or `Removing` */
  protected async findPolicyEnds(session: SpaceSession, verb: string, named: Named): Promise<PolicyEnds> {
    const { findDestinationSpace, findEnds } = await import('./lib/ops/apps/network-policies.ts');
    const { source, destination, org: toOrg, space: toSpace } = named;
    const to = await findDestinationSpace(session, { org: toOrg, space: toSpace });
    const { org, space, user } = session;
    if (toSpace === undefined) this.announce`${verb} network policy from app ${source} to app ${destination}`;
    else
      this
        .say`${verb} network policy from app ${source} in org ${org.name} / space ${space.name} to app ${destination} in org ${toOrg ?? org.name} / space ${toSpace} as ${user}...`;
    return findEnds(session, { source, destination }, to);
  }
}
