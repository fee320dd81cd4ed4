// Why a route or a service fails.

import { adviceOn } from '../../api/advice.ts';
import type { CauseCode } from '../../api/causes.ts';
import { issuedName, issueProblem } from '../../api/cert-manager.ts';
import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, kinds, labels, reasons } from '../../api/group.ts';
import type { Condition, KubeObject, Stored } from '../../api/object.ts';
import type { WhyDetails } from '../../api/results.ts';
import type { CFServiceInstance } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { routesOfText } from '../labels.ts';
import { isLive, otherHolder, type RoutePlace } from '../routes/holders.ts';
import { noRouteText, urlOf } from '../routes/routes.ts';
import { appNames } from '../rows.ts';
import { warningsAbout } from './evidence.ts';
import { answersOf } from './destinations.ts';

/** The first condition of these that says no. */
const refusal = (object: Stored<KubeObject>, ...types: string[]): Condition | undefined =>
  types.map((type) => findCondition(object, type)).find((condition) => condition?.status === 'False');

function causeOfRoute({ type, reason }: Condition): CauseCode {
  if (reason === reasons.duplicateName || reason === reasons.notShared) return 'route-taken';
  if (type === conditionTypes.programmed) return reason === reasons.notAnswered ? 'gateway-down' : 'route-not-programmed';
  return 'unknown';
}

/** A route that the space does not have: another space may have its host. */
async function whyNoRoute(session: SpaceSession, place: RoutePlace): Promise<WhyDetails> {
  const address = { ...place, domain: place.domain.spec.name };
  const holder = await otherHolder(session, place);
  const { bin } = session;
  if (holder === undefined) throw new KfError('not-found', noRouteText(address), { hints: [`${bin} routes`] });
  const message = `${holder} has this host, with all its paths.`;
  const next = [`${bin} map-route APP ${address.domain} -n HOST`];
  return { kind: 'route', name: urlOf(address), state: 'failed', cause: 'route-taken', message, events: [], next };
}

/** A route that works, with kf's own certificate in place of one of cert-manager. */
async function whyCertificate(session: SpaceSession, place: RoutePlace, problem: string): Promise<WhyDetails> {
  const name = urlOf({ ...place, domain: place.domain.spec.name });
  const message = `The gateway has loaded the route, with a certificate of kf. ${problem}`;
  const { namespace } = (await session.info()).gateway;
  const next = [`${session.bin} domains`, `kubectl -n ${namespace} describe certificate ${issuedName(place.domain)}`];
  return { kind: 'route', name, state: 'waiting', message, events: [], next };
}

/** Why a route does not work. @param text `host.example.com/path` @throws KfError `not-found` */
export async function whyRoute(session: SpaceSession, text: string): Promise<WhyDetails> {
  const { place, address, routes } = await routesOfText(session, text.replace(/^https?:\/\//, '').replace(/\/$/, ''));
  const route = routes.find(isLive) ?? routes[0];
  if (route === undefined) return whyNoRoute(session, place);
  const about = { kind: 'route' as const, name: urlOf(address) };
  const failed = refusal(route, conditionTypes.claimed, conditionTypes.programmed, conditionTypes.ready);
  if (failed === undefined) {
    if (findCondition(route, conditionTypes.programmed)?.status !== 'True')
      return { ...about, state: 'waiting', message: 'The gateway has not loaded the route yet.', events: [], next: [] };
    const answers = await answersOf(session, route, address);
    const problem = issueProblem(place.domain);
    if (answers.state === 'well' && problem !== undefined) return whyCertificate(session, place, problem);
    return { ...about, ...answers, events: [] };
  }
  const cause = causeOfRoute(failed);
  const [apps, events] = await Promise.all([appNames(session), warningsAbout(session, new Set([route.metadata.name]))]);
  const app = apps.get(route.spec.destinations?.[0]?.appRef.name ?? '') ?? 'APP';
  const next = adviceOn(cause, { bin: session.bin, app, ns: session.space.guid });
  return { ...about, state: 'failed', cause, message: failed.message, events, next };
}

const ofServices: Readonly<Record<string, CauseCode>> = {
  [reasons.duplicateName]: 'name-taken',
  [reasons.credentialsSecretNotAvailable]: 'secret-missing',
};

/** Why a service instance or one of its bindings is not ready. */
export async function whyService(session: SpaceSession, instance: Stored<CFServiceInstance>): Promise<WhyDetails> {
  const { cluster, space, signal, bin } = session;
  const labelSelector = `${labels.serviceInstanceGuid}=${instance.metadata.name}`;
  const { items } = await cluster.list(kinds.serviceBinding, { ns: space.guid, labelSelector, signal });
  const about = { kind: 'service' as const, name: instance.spec.displayName };
  const own = refusal(instance, conditionTypes.claimed, conditionTypes.ready);
  const bindings = items.map((binding) => refusal(binding, conditionTypes.claimed, conditionTypes.ready));
  const failed = own ?? bindings.find((condition) => condition !== undefined);
  if (failed === undefined)
    return { ...about, state: 'well', message: `Service '${instance.spec.displayName}' and its bindings are ready.`, events: [], next: [] };
  const names = new Set([instance.metadata.name, ...items.map(({ metadata }) => metadata.name)]);
  const cause = ofServices[failed.reason] ?? (own === undefined ? 'binding-not-ready' : 'unknown');
  const next = [`${bin} service ${instance.spec.displayName}`];
  return { ...about, state: 'failed', cause, message: failed.message, events: await warningsAbout(session, names), next };
}
