// Pushes all apps of a plan: all are checked before anything is written, then they are pushed in parallel.

import type { AppDetails } from '../../api/results.ts';
import { inSamePlace } from '../../cf/same-place.ts';
import { defined } from '../../defined.ts';
import { KfError, messageOf, type FailureClass } from '../../errors.ts';
import { repeatPush } from '../../manifest/again.ts';
import type { PushPlan } from '../../manifest/plan.ts';
import { nameLeaving } from '../../session/leaving-place.ts';
import { withParts } from '../../session/overlay.ts';
import type { SpaceSession } from '../../session/session.ts';
import { askRoute, routeToAsk, type RouteAnswer } from '../routes/route-check.ts';
import { describeApp, readDroplet } from '../apps/details.ts';
import { findAppIfAny } from '../find.ts';
import type { Report } from '../../events.ts';
import { manifestDiff, type DiffLine } from '../../manifest/diff.ts';
import { abortError } from '../../wait.ts';
import { assertDefaultRoutesDiffer } from './default-route.ts';
import { preparePush, pushApp, type PreparedPush, type PushOptions } from './push.ts';

/** Builds share the cluster and uploads share one connection, so more at a time would not be faster. */
const mostAtOnce = 4;

export interface PushedDetails extends AppDetails {
  unchanged: boolean;
  built: boolean;
  layerBytesSent: number;
  /** The answer of the first route, seen from here. */
  answer?: RouteAnswer;
}

/** The output of one app. */
export interface AppOutput {
  report: Report;
  /** The attributes in its manifest. */
  attributes(lines: readonly DiffLine[]): void;
  pushed(details: PushedDetails): void;
  /** The app after a failed start. */
  summary(details: AppDetails): void;
  failed(error: KfError): void;
  end(): void;
}

interface Outcome {
  name: string;
  details?: PushedDetails;
  error?: unknown;
}

/** Hints that contain a push command repeat the flags of this push; others act in the same place. */
function repeating(error: unknown, session: SpaceSession, { flags }: PushPlan): unknown {
  nameLeaving(session, error);
  if (!(error instanceof KfError)) return error;
  error.hints.splice(0, error.hints.length, ...error.hints.map((hint) => inSamePlace(repeatPush(hint, flags), flags)));
  return error;
}

/** The error of one of several apps names the app, as in cf. */
function ofApplication(name: string, error: unknown): KfError {
  if (!(error instanceof KfError)) throw error;
  const { code, hints, details, message } = error;
  return new KfError(code, `For application '${name}': ${message}`, { hints, details, cause: error });
}

/** The entry of an app in `error.details.apps`; its `error` is as that of a push of this app alone. */
interface AppFailure {
  name: string;
  error: { code: FailureClass; message: string; hints?: string[]; details?: Record<string, unknown> };
}

function failureOf(name: string, error: unknown): AppFailure {
  if (!(error instanceof KfError)) return { name, error: { code: 'bug', message: messageOf(error) } };
  const { code, message, hints, details } = error;
  const told = { hints: hints.length > 0 ? [...hints] : undefined, details: Object.keys(details).length > 0 ? details : undefined };
  return { name, error: { code, message, ...defined(told) } };
}

/** The results of all apps. @throws one error for all apps that failed */
export function allOrError<T>(apps: readonly { name: string }[], settled: readonly PromiseSettledResult<T>[]): T[] {
  const looks = apps.map(({ name }, index) => ({ name, look: settled[index] }));
  const failures = looks.flatMap(({ name, look }) => (look?.status === 'rejected' ? [{ name, error: look.reason as unknown }] : []));
  const [first] = failures;
  if (first === undefined) return settled.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
  if (apps.length === 1) throw first.error;
  const errors = failures.map(({ name, error }) => ofApplication(name, error));
  const message = errors.map((error) => error.message).join('\n');
  throw new KfError(errors[0]?.code ?? 'failed', message, {
    hints: [...new Set(errors.flatMap(({ hints }) => hints))],
    details: { apps: looks.map(({ name, look }) => (look?.status === 'rejected' ? failureOf(name, look.reason) : { name })) },
    cause: first.error,
  });
}

/** Reports every app that cannot be pushed before any app is pushed. */
async function prepareAll(sessions: ReadonlyMap<string, SpaceSession>, plan: PushPlan): Promise<PreparedPush[]> {
  const settled = await Promise.allSettled(plan.apps.map((app) => preparePush(thatOf(sessions, app.name), plan, app)));
  const prepared = allOrError(plan.apps, settled);
  assertDefaultRoutesDiffer(prepared);
  return prepared;
}

/** The entry of this app. */
function thatOf<T>(each: ReadonlyMap<string, T>, name: string): T {
  const one = each.get(name);
  if (one === undefined) throw new Error(`nothing is there of app ${name}`);
  return one;
}

/** For an image that was pushed before, its name as the user typed it is in its package: one request. */
async function attributesOf({ session, plan, push, found, checked: { facts } }: PreparedPush): Promise<DiffLine[]> {
  if (found === undefined) return manifestDiff(plan, undefined, push);
  const build = facts.builds.find(({ metadata }) => metadata.name === found.spec.currentDropletRef?.name);
  const { image } = plan.docker === undefined ? {} : await readDroplet(session, found, defined({ build }));
  return manifestDiff(plan, { app: found, facts, image }, push);
}

/** The app after a failed start; undefined when it cannot be read, because the cause of the failure matters more. */
async function describeFailed(session: SpaceSession, name: string): Promise<AppDetails | undefined> {
  try {
    const app = await findAppIfAny(session, name);
    return app === undefined ? undefined : await describeApp(session, app);
  } catch (error) {
    if (error instanceof KfError) return undefined;
    throw error;
  }
}

async function finish(prepared: PreparedPush, options: PushOptions, output: AppOutput): Promise<PushedDetails> {
  const { session, push } = prepared;
  const pushed = await pushApp(prepared, options).catch(async (error: unknown) => {
    const details = error instanceof KfError && error.code === 'start' ? await describeFailed(session, prepared.plan.name) : undefined;
    if (details !== undefined) output.summary(details);
    throw error;
  });
  const { app, known, unchanged, built, layerBytesSent } = pushed;
  const details = await describeApp(session, app, known);
  const asked = push.wait ? routeToAsk(details) : undefined;
  const answer = asked === undefined ? undefined : await askRoute(await session.info(), asked.route);
  return { ...details, unchanged, built, layerBytesSent, ...defined({ answer: answer && { ...answer, ...asked?.about } }) };
}

const told = ({ name, details, error }: Outcome): PushedDetails | AppFailure | undefined =>
  error === undefined ? details : failureOf(name, error);

/** After Ctrl-C: which changes go on in the cluster, and what was pushed before. Undefined when no change goes on. */
function interruptedPush(outcomes: readonly Outcome[]): KfError | undefined {
  const hints = outcomes.flatMap(({ error }) => (error instanceof KfError && error.code === 'interrupted' ? error.hints : []));
  return hints.length === 0
    ? undefined
    : new KfError('interrupted', 'Interrupted.', { exitCode: 130, hints, details: { apps: outcomes.map((outcome) => told(outcome)) } });
}

/** One error for all apps, after all have ended, with the code of the first that failed. */
function notPushed({ bin }: SpaceSession, outcomes: readonly Outcome[]): KfError {
  const failed = outcomes.filter(({ error }) => error !== undefined);
  const [first] = failed;
  const names = failed.map(({ name }) => `'${name}'`).join(', ');
  const apps = outcomes.map((outcome) => told(outcome));
  return new KfError(
    first?.error instanceof KfError ? first.error.code : 'bug',
    `${failed.length} of ${outcomes.length} apps could not be pushed: ${names}.`,
    { hints: [`${bin} apps`], details: { apps }, cause: first?.error },
  );
}

/**
 * Pushes the apps of a plan, a few at a time. A failed one does not stop the others.
 * @throws KfError of {@link pushApp}; for several apps one error with the code of the first that failed and all of them in its details
 */
export async function pushAll(
  session: SpaceSession,
  plan: PushPlan,
  options: PushOptions,
  outputOf: (name: string) => AppOutput,
): Promise<PushedDetails[]> {
  const outputs = new Map(plan.apps.map(({ name }) => [name, outputOf(name)]));
  const sessions = new Map([...outputs].map(([name, output]) => [name, withParts(session, { report: output.report })]));
  const looked = await prepareAll(sessions, plan).catch((error: unknown) => {
    throw repeating(error, session, plan);
  });
  const waiting = looked.map((prepared, index) => ({ prepared, index }));
  const outcomes: Outcome[] = [];
  const run = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined && !session.signal.aborted; next = waiting.shift()) {
      const { prepared, index } = next;
      const { name } = prepared.plan;
      const output = thatOf(outputs, name);
      try {
        if (plan.manifest !== undefined) output.attributes(await attributesOf(prepared));
        const details = await finish(prepared, options, output);
        outcomes[index] = { name, details };
        output.pushed(details);
      } catch (thrown) {
        const isInterrupted = session.signal.aborted && !(thrown instanceof KfError);
        const error = isInterrupted ? abortError(session.signal) : repeating(thrown, session, plan);
        if (plan.apps.length === 1) throw error;
        outcomes[index] = { name, error };
        if (error instanceof KfError && !session.signal.aborted) output.failed(error);
      }
      output.end();
    }
  };
  await Promise.all(Array.from({ length: mostAtOnce }, run));
  // Those that were not begun have none.
  const interrupted = session.signal.aborted ? interruptedPush(Object.values(outcomes)) : undefined;
  if (interrupted !== undefined) throw interrupted;
  session.signal.throwIfAborted();
  if (outcomes.some(({ error }) => error !== undefined)) throw repeating(notPushed(session, outcomes), session, plan);
  return outcomes.flatMap(({ details }) => details ?? []);
}
