// Decides which routes a push wants: named, random, default or none (cf-behaviour 4.6). Pure, so that it can be decided before anything is
// written.

import { randomInt } from 'node:crypto';
import type { Stored } from '../../api/object.ts';
import type { CFDomain } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import { splitHostname } from '../../manifest/routes.ts';
import { assertAddress } from '../routes/address.ts';
import type { MappedPlace } from '../routes/destinations.ts';

const adjectives = [
  'bold',
  'brave',
  'bright',
  'calm',
  'clever',
  'cool',
  'eager',
  'fair',
  'fresh',
  'gentle',
  'happy',
  'kind',
  'lively',
  'lucky',
  'mild',
  'noble',
  'proud',
  'quick',
  'quiet',
  'shiny',
  'silly',
  'smart',
  'swift',
  'wise',
];
const nouns = [
  'badger',
  'bear',
  'crane',
  'deer',
  'eagle',
  'falcon',
  'fox',
  'gecko',
  'hare',
  'heron',
  'koala',
  'lynx',
  'mole',
  'otter',
  'owl',
  'panda',
  'puffin',
  'raven',
  'seal',
  'swan',
  'tiger',
  'turtle',
  'whale',
  'wombat',
];

const pick = (words: readonly string[]): string => words[randomInt(words.length)] ?? '';
const letter = (): string => String.fromCharCode(97 + randomInt(26));

/** The longest host name (RFC 1035, 2.3.4). */
const longestHost = 63;

/** `<app>-<adjective>-<noun>-<two letters>`, with as much of the app's name as a host name takes. */
function randomHost(appName: string): string {
  const words = `${pick(adjectives)}-${pick(nouns)}-${letter()}${letter()}`;
  const name = hostFrom(appName).slice(0, longestHost - words.length - 1);
  const label = /[a-z0-9](?:[-a-z0-9]*[a-z0-9])?/.exec(name)?.[0];
  return label === undefined ? words : `${label}-${words}`;
}

/** An app's name as a host: host names have no underscores. */
export const hostFrom = (appName: string): string => appName.toLowerCase().replaceAll('_', '-');

function defaultHost(appName: string): string {
  if (/^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/.test(appName)) return hostFrom(appName);
  throw new KfError('usage', `The app's name '${appName}' cannot be a host name, so it has no default route.`, {
    hints: [`kf push ${appName} --random-route`, `kf push ${appName} --no-route`],
  });
}

function noSuchDomain(text: string, domains: readonly Stored<CFDomain>[]): KfError {
  return new KfError('not-found', `No domains exist for route ${text}`, {
    hints: [`Known domains: ${domains.map((domain) => domain.spec.name).join(', ') || 'none'}`],
  });
}

function namedRoutes(plan: AppPlan, domains: readonly Stored<CFDomain>[]): MappedPlace[] {
  const names = domains.map((domain) => domain.spec.name);
  return plan.routes.map((route) => {
    const { protocol } = route;
    if (route.port !== undefined || protocol === 'tcp') {
      throw new KfError('usage', `The route ${route.text} asks for TCP, which kf does not route yet.`, { hints: ['Take an HTTP route.'] });
    }
    const split = splitHostname(route.hostname, names);
    const domain = domains.find((candidate) => candidate.spec.name === split?.domain);
    if (split === undefined || domain === undefined) throw noSuchDomain(route.text, domains);
    const place = { host: split.host, domain, path: route.path ?? '' };
    assertAddress(place, `Write the route as HOST.${domain.spec.name}${place.path}.`);
    return { ...place, ...defined({ protocol }) };
  });
}

/** True when the plan needs the domains. An app with routes needs none for a push without named routes. */
export function needsDomains(plan: AppPlan, hasRoutes: boolean): boolean {
  return !plan.noRoute && (plan.routes.length > 0 || !hasRoutes);
}

/**
 * The routes that should lead to the app; empty when none are to be added.
 * @param domains oldest first: the first one that is not internal is the default domain
 */
export function wantedRoutes(plan: AppPlan, domains: readonly Stored<CFDomain>[], hasRoutes: boolean): MappedPlace[] {
  if (plan.noRoute) return [];
  if (plan.routes.length > 0) return namedRoutes(plan, domains);
  if (hasRoutes || !(plan.randomRoute || plan.defaultRoute)) return [];
  const domain = domains.find(({ spec }) => spec.internal !== true);
  if (domain === undefined)
    throw new KfError('not-found', 'There is no domain for the default route.', { hints: ['kf setup', `kf push ${plan.name} --no-route`] });
  return [{ host: plan.randomRoute ? randomHost(plan.name) : defaultHost(plan.name), domain, path: '' }];
}
