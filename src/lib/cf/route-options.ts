// Options of single routes, as cf has them. The Gateway API knows none of them: gateways spread the requests for a route evenly, in turn.

import { KfError } from '../errors.ts';
import { incorrectUsage } from './usage.ts';

/** What a gateway does anyway. */
const usual = 'loadbalancing=round-robin';
const known = ['loadbalancing', 'hash_header', 'hash_balance'];

function refused(option: string): KfError {
  const why = `The gateway cannot do '${option}': the Gateway API has no setting for it, and requests go to the instances in turn.`;
  return new KfError('usage', why, { hints: [`-o ${usual} says what it does.`], details: { option } });
}

/** @throws KfError `usage` for an option that is none of cf's, or that no gateway of kf can do */
export function assertRouteOptions(set: readonly string[], removed: readonly string[]): void {
  const names = [...set.map((option) => option.split('=')[0] ?? ''), ...removed];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw incorrectUsage(`there is no option '${unknown}' of a route; there are ${known.join(', ')}`);
  const bare = set.find((option) => !option.includes('='));
  if (bare !== undefined) throw incorrectUsage(`the option '${bare}' needs a value: ${bare}=VALUE`);
  const other = set.find((option) => option !== usual);
  if (other !== undefined) throw refused(other);
}
