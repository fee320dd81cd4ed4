// `env`: cf's four sections.

import type { EnvDetails } from '../api/results.ts';
import { line, type Block } from './block.ts';

const isEmpty = (object: Record<string, unknown>): boolean => Object.keys(object).length === 0;

/** A JSON document whose first line follows the name. */
function document(name: string, value: Record<string, unknown>): Block[] {
  return `${name}: ${JSON.stringify(value, null, 2)}`.split('\n').map(line);
}

/** One line per missing Secret: "none" would be wrong. */
function missingLines(names: (string | undefined)[], what: string): Block[] {
  const gone = names.filter((name) => name !== undefined);
  return gone.map((name) => line(`${what} env variables are missing: the Secret '${name}' is gone.`));
}

export function renderEnv(env: EnvDetails): Block[] {
  const { vcapServices, vcapApplication, variables } = env.missing ?? {};
  const lostSystem = missingLines([vcapServices, vcapApplication], 'System-provided');
  const lostUser = missingLines([variables], 'User-provided');
  const system =
    isEmpty(env.vcapServices) && isEmpty(env.vcapApplication)
      ? lostSystem.length > 0
        ? lostSystem
        : [line('No system-provided env variables have been set')]
      : [
          ...lostSystem,
          line('System-Provided:'),
          ...(isEmpty(env.vcapServices) ? [line('VCAP_SERVICES: {}')] : document('VCAP_SERVICES', env.vcapServices)),
          ...document('VCAP_APPLICATION', env.vcapApplication),
        ];
  const user = isEmpty(env.variables)
    ? lostUser.length > 0
      ? lostUser
      : [line('No user-provided env variables have been set')]
    : [line('User-Provided:'), ...Object.entries(env.variables).map(([name, value]) => line(`${name}: ${value}`))];
  return [
    ...system,
    line(),
    ...user,
    line(),
    line('No running env variables have been set'),
    line(),
    line('No staging env variables have been set'),
    line(),
  ];
}
