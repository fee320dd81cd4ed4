// What the commands about labels have in common: their arguments, and the session of the place in which a resource is.

import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { LabelledResource } from '../lib/cf/labels.ts';
import type { Labelled } from '../lib/ops/labels.ts';
import type { Session } from '../lib/session/session.ts';

export const resourceArgs = {
  RESOURCE: requiredArg('app, domain, org, route, service-instance or space'),
  RESOURCE_NAME: requiredArg('its name; of a route HOST.DOMAIN/PATH'),
};

/** The session that a resource needs, and the look-up, which follows the first line of output. */
export interface Opened {
  session: Session;
  find: () => Promise<Labelled>;
}

export abstract class LabelCommand<T> extends KfCommand<T> {
  protected async open(resource: LabelledResource, name: string): Promise<Opened> {
    const { resources } = await import('../lib/ops/labels.ts');
    const finder = resources[resource];
    if (finder.needs === 'space') {
      const session = await this.spaceSession();
      return { session, find: () => finder.find(session, name) };
    }
    if (finder.needs === 'org') {
      const session = await this.orgSession();
      return { session, find: () => finder.find(session, name) };
    }
    const session = await this.clusterSession();
    return { session, find: () => finder.find(session, name) };
  }
}
