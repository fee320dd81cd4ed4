// Which addresses a route can have. Checked before anything is written: a push writes its routes only after the build.

import { KfError } from '../../errors.ts';
import type { RoutePlace } from './holders.ts';

/** The rules of `spec.path` in tools/crds/network.ts, in the same order. */
const pathRules: readonly { holds: (path: string) => boolean; rule: string }[] = [
  { holds: (path) => path !== '/', rule: 'is the same as no path; leave it out' },
  { holds: (path) => !path.includes('?'), rule: "cannot contain '?'" },
  {
    holds: (path) => /^[-A-Za-z0-9._~!$&'()*+,;=:@%/]*$/.test(path),
    rule: 'contains characters that a URL may not contain; write them percent-encoded',
  },
  { holds: (path) => path.length <= 128, rule: 'is longer than 128 characters' },
];

/**
 * @param hint how to give a missing host
 * @throws KfError `usage` for a host or path that no route can have
 */
export function assertAddress({ host, domain, path }: RoutePlace, hint: string): void {
  if (host === '') throw new KfError('usage', `Missing host. Routes on domain '${domain.spec.name}' must have a host.`, { hints: [hint] });
  if (host !== '*' && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/i.test(host))
    throw new KfError('usage', `The host '${host}' is not a valid name: use letters, digits and '-', at most 63 characters.`);
  if (domain.spec.internal === true && host === '*')
    throw new KfError('usage', `Wildcard hosts are not supported on the internal domain '${domain.spec.name}'.`);
  if (domain.spec.internal === true && path !== '')
    throw new KfError('usage', `Paths are not supported on the internal domain '${domain.spec.name}'.`);
  const broken = pathRules.find(({ holds }) => !holds(path));
  if (broken !== undefined) throw new KfError('usage', `The path '${path}' of a route ${broken.rule}.`);
}
