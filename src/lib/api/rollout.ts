// How a change of an app replaces its instances: `spec.rollout` of the CFApp (docs/internals.md, Rollouts).

import { defined } from '../defined.ts';
import { annotations, labels } from './group.ts';
import type { KubeObject } from './object.ts';
import type { AppRollout, CFApp, DeploymentStatus } from './types.generated.ts';

export const strategies = ['rolling', 'canary', 'recreate'] as const;
export type Strategy = (typeof strategies)[number];

/** Those that can be the default of an app or a space. A canary waits for somebody, so it is none. */
export const defaultStrategies = ['rolling', 'recreate'] as const;
export type DefaultStrategy = (typeof defaultStrategies)[number];

/** The strategy that a CFApp or CFSpace has for changes that ask for none. */
export function defaultStrategyOf({ metadata }: KubeObject): DefaultStrategy | undefined {
  return defaultStrategies.find((one) => one === metadata.labels?.[labels.strategy]);
}

/** What a user may ask for with a change. */
export interface RolloutOptions {
  strategy?: Strategy | undefined;
  maxInFlight?: number | undefined;
  /** Percentages of a canary, ascending. */
  instanceSteps?: readonly number[] | undefined;
}

/** `spec.rollout` as a merge patch; null removes what an earlier change left. */
export type RolloutPatch = { [Key in keyof AppRollout]: AppRollout[Key] | null };

/**
 * The part of the patch of a change that says how it replaces the instances; undefined when nothing was asked. Of an app that does not run, nothing
 * is replaced: as in cf, all its instances start at once.
 */
export function rolloutPatch(app: CFApp, id: string, { strategy, maxInFlight, instanceSteps }: RolloutOptions): RolloutPatch | undefined {
  if (strategy === undefined || app.spec.desiredState !== 'STARTED') return undefined;
  return {
    id,
    strategy,
    maxInFlight: maxInFlight ?? null,
    instanceSteps: instanceSteps === undefined ? null : [...instanceSteps],
    step: null,
    canceled: null,
  };
}

/** What was asked for with the app's present change. */
export function rolloutOf({ spec, metadata }: CFApp): AppRollout | undefined {
  return spec.rollout !== undefined && spec.rollout.id === metadata.annotations?.[annotations.deployId] ? spec.rollout : undefined;
}

/** The app's present change was canceled. */
export function isCanceled(app: CFApp): boolean {
  return rolloutOf(app)?.canceled === true;
}

/** The version of the revision that the app's present change returns to; undefined when that change is no rollback. */
export function rolledBackTo({ metadata: { annotations: given = {} } }: CFApp): number | undefined {
  const [, version, id] = /^(\d+)\/(.*)$/.exec(given[annotations.rolledBack] ?? '') ?? [];
  return version !== undefined && id === given[annotations.deployId] ? Number(version) : undefined;
}

/** @param space left out: its default is as the controller has written it to the app */
export function strategyOf(app: CFApp, space?: KubeObject): Strategy {
  const ofSpace = space === undefined ? app.status?.spaceStrategy : defaultStrategyOf(space);
  return rolloutOf(app)?.strategy ?? defaultStrategyOf(app) ?? ofSpace ?? 'rolling';
}

/** How many instances are replaced at a time. The annotation is for changes that ask for nothing. */
export function maxInFlightOf(app: CFApp): number {
  const given = rolloutOf(app)?.maxInFlight ?? Number(app.metadata.annotations?.[annotations.maxInFlight] ?? '1');
  return Number.isInteger(given) && given > 0 ? given : 1;
}

/** Where a canary may go to. */
export interface CanaryProgress {
  /** From 1 on; the canary pauses when it has reached this step. */
  step: number;
  steps: number;
  percent?: number;
}

/** The step of the app's canary; undefined when its change is none, or was continued after the last step, or canceled. */
export function canaryOf(app: CFApp): CanaryProgress | undefined {
  const rollout = rolloutOf(app);
  if (rollout?.strategy !== 'canary' || rollout.canceled === true) return undefined;
  const { step = 1, instanceSteps = [] } = rollout;
  const steps = Math.max(1, instanceSteps.length);
  const percent = instanceSteps[step - 1];
  return step > steps ? undefined : { step, steps, ...defined({ percent }) };
}

/** What the controller does with the app's present change. */
export type DeploymentState = 'DEPLOYING' | 'PAUSED' | 'CANCELING' | 'DEPLOYED' | 'CANCELED';

const activeStates: readonly (string | undefined)[] = ['DEPLOYING', 'PAUSED', 'CANCELING'];

/** The deployment has not ended. */
export const isActive = (state: DeploymentState | 'STOPPED' | undefined): boolean => activeStates.includes(state);

/**
 * The state of the app's present change, in the words of cf; undefined for an app that is stopped, or that was never started. The status may be about
 * the change before, or about an earlier step: then the change is on its way.
 */
export function deploymentStateOf(app: CFApp): DeploymentState | undefined {
  const known = app.status?.deployment;
  const id = app.metadata.annotations?.[annotations.deployId] ?? known?.id;
  if (id === undefined || app.spec.desiredState !== 'STARTED') return undefined;
  const status = known?.id === id ? known : undefined;
  const phase = status?.phase ?? 'Pending';
  if (isCanceled(app)) return status?.canceled === true && (phase === 'Serving' || phase === 'Failed') ? 'CANCELED' : 'CANCELING';
  if (phase === 'Serving') return 'DEPLOYED';
  if (phase === 'Failed') return 'CANCELED';
  return hasPaused(app) ? 'PAUSED' : 'DEPLOYING';
}

/** The canary of the app's present change has reached the step up to which it may go. */
export function hasPaused(app: CFApp): boolean {
  const { id, phase, step } = app.status?.deployment ?? {};
  const canary = canaryOf(app);
  return canary !== undefined && id === rolloutOf(app)?.id && phase === 'Paused' && step === canary.step;
}

/** What `status.deployment` of an app says that has nothing to start. */
export const noInstances = 'The app has no instances.';

/** What to tell of a change that has succeeded. */
export const servingText = ({ message }: DeploymentStatus): string => (message === noInstances ? noInstances : 'The app serves.');

/** The app's present change is a canary that has not ended: somebody may still decide about the new version. */
export const isCanaryUnderWay = (app: CFApp): boolean => canaryOf(app) !== undefined && isActive(deploymentStateOf(app));
