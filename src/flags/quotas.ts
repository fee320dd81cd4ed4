// The flags of the commands that create and update quotas.

import * as Flags from '@oclif/core/flags';
import { parseSize, parseWholeNumber } from '../lib/cf/values.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { KfError } from '../lib/errors.ts';
import type { NewLimits } from '../lib/ops/tenancy/quotas.ts';

const most = 2_147_483_647;

/** -1 is cf's word for unlimited. */
const unlimited = '-1';

/** Accepts a detached -1. */
function limitFlag(char: 'a' | 'i' | 'm' | 'r' | 's' | 'l', summary: string, helpValue: string, parse: (text: string) => number) {
  const read = async (text: string): Promise<number> => (text.trim() === unlimited ? -1 : Promise.resolve().then(() => parse(text)));
  return Object.assign(Flags.custom<number>({ parse: read, char, summary: `${summary}, -1 for no limit`, helpValue })(), { numeric: true });
}

const numberLimit = (char: 'a' | 'r' | 's', summary: string, helpValue: string) =>
  limitFlag(char, summary, helpValue, (text) => parseWholeNumber(text, `-${char}`, -1, most));

/** A limit of memory may be 0, without a unit. */
const memoryLimit = (char: 'i' | 'm', summary: string, helpValue: string) =>
  limitFlag(char, summary, helpValue, (text) => (/^0[a-z]*$/i.test(text.trim()) ? 0 : parseSize(text)));

function refuseLogRate(): number {
  throw new KfError(
    'usage',
    "kf cannot limit the volume of logs: nothing in the cluster counts the lines of an app. '-l' accepts -1 only.",
    {
      hints: ['-l -1'],
    },
  );
}

const portsFlag = () =>
  Object.assign(
    Flags.custom<number>({
      parse: (text) => Promise.resolve().then(() => parseWholeNumber(text, '--reserved-route-ports', -1, most)),
      summary: 'has no effect: kf has no TCP routes',
      helpValue: 'RESERVED_ROUTE_PORTS',
    })(),
    { numeric: true },
  );

export const quotaFlags = {
  'app-instances': numberLimit('a', 'instances of all apps', 'APP_INSTANCES'),
  'allow-paid-service-plans': Flags.boolean({ summary: 'has no effect: kf has no service plans' }),
  'instance-memory': memoryLimit('i', 'memory of one instance', 'INSTANCE_MEMORY'),
  'total-memory': memoryLimit('m', 'memory of all instances, tasks and builds', 'TOTAL_MEMORY'),
  routes: numberLimit('r', 'routes', 'ROUTES'),
  'reserved-route-ports': portsFlag(),
  'service-instances': numberLimit('s', 'service instances', 'SERVICE_INSTANCES'),
  'log-volume': limitFlag('l', 'volume of logs; kf cannot limit it', 'LOG_VOLUME', refuseLogRate),
};

export const quotaUpdateFlags = {
  ...quotaFlags,
  'disallow-paid-service-plans': Flags.boolean({ summary: 'has no effect: kf has no service plans' }),
  name: Flags.string({ char: 'n', summary: 'new name', helpValue: 'NEW_NAME' }),
};

interface Given {
  'app-instances'?: number | undefined;
  'instance-memory'?: number | undefined;
  'total-memory'?: number | undefined;
  routes?: number | undefined;
  'service-instances'?: number | undefined;
  'reserved-route-ports'?: number | undefined;
  'allow-paid-service-plans'?: boolean;
  'disallow-paid-service-plans'?: boolean;
}

/** The limits that the flags name. */
export function limitsOfFlags(flags: Given): NewLimits {
  const given = {
    totalMemoryMB: flags['total-memory'],
    instanceMemoryMB: flags['instance-memory'],
    appInstances: flags['app-instances'],
    routes: flags.routes,
    serviceInstances: flags['service-instances'],
  };
  const named = Object.entries(given).filter((entry): entry is [string, number] => entry[1] !== undefined);
  return Object.fromEntries(named.map(([key, limit]) => [key, limit === -1 ? null : limit]));
}

/**
 * What to tell about flags without an effect.
 * @throws KfError `usage` for flags that contradict each other
 */
export function idleFlags(flags: Given): string[] {
  const [allow, disallow] = [flags['allow-paid-service-plans'] === true, flags['disallow-paid-service-plans'] === true];
  if (allow && disallow)
    throw incorrectUsage('The following arguments cannot be used together: --allow-paid-service-plans, --disallow-paid-service-plans');
  return [
    ...(allow || disallow
      ? [`--${allow ? 'allow' : 'disallow'}-paid-service-plans has no effect: kf has user-provided services only, which have no plans.`]
      : []),
    ...(flags['reserved-route-ports'] === undefined ? [] : ['--reserved-route-ports has no effect: kf has no TCP routes.']),
  ];
}
