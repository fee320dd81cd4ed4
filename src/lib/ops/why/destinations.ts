// Which apps answer the requests of a route that the gateway has loaded, and why others do not.

import { desiredInstances, instanceCountsOf, webProcess } from '../../api/app.ts';
import type { CauseCode } from '../../api/causes.ts';
import { currentCondition } from '../../api/conditions.ts';
import { conditionTypes, kinds, labels, reasons } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { WhyDetails } from '../../api/results.ts';
import type { CFApp, CFProcess, CFRoute, RouteDestination } from '../../api/types.generated.ts';
import { quoted } from '../../cf/shell-word.ts';
import type { SpaceSession } from '../../session/session.ts';
import { protocolOf } from '../routes/destinations.ts';
import type { RouteAddress } from '../routes/routes.ts';

type Answers = Pick<WhyDetails, 'state' | 'message' | 'next'> & { cause?: CauseCode };

/** A destination without an instance that answers. */
interface Silent {
  state: 'failed' | 'waiting';
  /** It should have instances. One that is stopped or scaled to 0 has none because somebody wants that. */
  isDown: boolean;
  /** Goes on after `the route leads to`. */
  text: string;
  next: string[];
}

/** A destination, and what is known of its app. */
interface Seen {
  destination: RouteDestination;
  /** Left out when there is no such app. */
  app?: Stored<CFApp>;
  silent?: Silent | undefined;
}

const ofProcess = (processType: string): string => (processType === webProcess ? '' : ` of its process '${processType}'`);

/** What keeps a destination from answering; undefined when one of its instances runs, and when nothing is known of it. */
function silentOf(app: Stored<CFApp>, process: Stored<CFProcess> | undefined, bin: string): Silent | undefined {
  const { displayName: name, desiredState } = app.spec;
  if (desiredState !== 'STARTED')
    return { state: 'waiting', isDown: false, text: `app '${name}', which is stopped`, next: [`${bin} start ${name}`] };
  if (process === undefined) return undefined;
  const { processType } = process.spec;
  const of = ofProcess(processType);
  const wanted = desiredInstances(process);
  if (wanted === 0) {
    const flag = processType === webProcess ? '' : ` --process ${processType}`;
    const scale = `${bin} scale ${name}${flag} -i 1`;
    const text = `app '${name}', which is scaled to 0 instances${of}`;
    return { state: 'failed', isDown: false, text, next: [scale, `${bin} why ${name}`] };
  }
  const { running } = instanceCountsOf(process);
  if (running > 0) return undefined;
  const { phase } = app.status?.deployment ?? {};
  const state = phase === 'Pending' || phase === 'Starting' ? 'waiting' : 'failed';
  return { state, isDown: true, text: `app '${name}', of which 0 of ${String(wanted)} instances${of} run`, next: [`${bin} why ${name}`] };
}

async function look({ cluster, space, signal, bin }: SpaceSession, destination: RouteDestination): Promise<Seen> {
  const { appRef, processType } = destination;
  const labelSelector = `${labels.appGuid}=${appRef.name}`;
  const [app, { items }] = await Promise.all([
    cluster.get(kinds.app, space.guid, appRef.name, signal),
    cluster.list(kinds.process, { ns: space.guid, labelSelector, signal }),
  ]);
  const process = items.find(({ spec }) => spec.processType === processType);
  return app === undefined ? { destination } : { destination, app, silent: silentOf(app, process, bin) };
}

/** The address as arguments of `map-route` and its like. */
function argumentsOf({ domain, host, path }: RouteAddress): string {
  const flags = [host === '' ? '' : ` --hostname ${quoted(host)}`, path === '' ? '' : ` --path ${quoted(path)}`];
  return `${domain}${flags.join('')}`;
}

const nextOf = (silent: readonly Silent[]): string[] => [...new Set(silent.flatMap(({ next }) => next))];

function noneAnswers(silent: readonly Silent[]): Answers {
  const isFailed = silent.some(({ state }) => state === 'failed');
  return {
    state: isFailed ? 'failed' : 'waiting',
    ...(isFailed ? { cause: 'not-serving' as const } : {}),
    message: `No instance answers: the route leads to ${silent.map(({ text }) => text).join(', and to ')}.`,
    next: nextOf(silent),
  };
}

/**
 * What the controller saw when it asked the apps behind the route for the first time, as a sentence and the logs to look at; undefined when all of them
 * answered. It does not say which one did not, and it does not ask again while the route stays the same.
 */
function firstAnswers(bin: string, route: Stored<CFRoute>, seen: readonly Seen[]): Pick<Answers, 'message' | 'next'> | undefined {
  const programmed = currentCondition(route, conditionTypes.programmed);
  if (programmed?.reason !== reasons.appDoesNotAnswer) return undefined;
  const asked = seen.flatMap(({ destination, app }) => {
    // The status has the port that the gateway uses, also when the user named none.
    const used = route.status?.destinations?.find(({ guid }) => guid === destination.guid) ?? destination;
    const port = used.port === undefined ? 'its port' : `port ${String(used.port)}`;
    const where = `on ${port} (protocol ${protocolOf(used)})${ofProcess(used.processType)}`;
    return app === undefined ? [] : [{ name: app.spec.displayName, where }];
  });
  if (asked.length === 0) return undefined;
  const apps = asked.map(({ name, where }) => `app '${name}' ${where}`).join(', or ');
  const which = asked.length === 1 ? apps : `one of its apps (${apps})`;
  const message = `After its last change, ${which} gave errors or no answer for some seconds. If that lasts, look at port and protocol.`;
  return { message, next: [...new Set(asked.map(({ name }) => `${bin} logs ${name} --recent`))] };
}

/** Whether the apps behind a route that the gateway has loaded answer. What a shared route leads to in another space is not known here. */
export async function answersOf(session: SpaceSession, route: Stored<CFRoute>, address: RouteAddress): Promise<Answers> {
  const { destinations = [], sharedFrom, sharedWith = [] } = route.spec;
  const message = 'The gateway has loaded the route.';
  const well: Answers = { state: 'well', message, next: [] };
  if (sharedFrom !== undefined || sharedWith.length > 0) return well;
  const { bin } = session;
  if (destinations.length === 0)
    return { state: 'waiting', message: 'The route leads to no app.', next: [`${bin} map-route APP ${argumentsOf(address)}`] };
  const seen = await Promise.all(destinations.map((destination) => look(session, destination)));
  const silent = seen.flatMap((one) => one.silent ?? []);
  if (silent.length === seen.length) return noneAnswers(silent);
  const first = firstAnswers(bin, route, seen);
  // The gateway sends no requests to these while another app of the route has instances.
  const down = silent.filter(({ isDown }) => isDown);
  const besides = down.length === 0 ? [] : [`It also leads to ${down.map(({ text }) => text).join(', and to ')}.`];
  const sentences = [message, ...besides, ...(first === undefined ? [] : [first.message])];
  return { ...well, message: sentences.join(' '), next: [...nextOf(down), ...(first?.next ?? [])] };
}
