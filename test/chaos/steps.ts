// What a session does to its apps, and what each app is declared as afterwards. Pure: the same seed gives the same steps in the same order.

export const stepNames = [
  'push',
  'restart',
  'scale',
  'set-env',
  'rollback',
  'bind-service',
  'unbind-service',
  'map-route',
  'unmap-route',
  'stop',
  'start',
  'delete',
] as const;
export type StepName = (typeof stepNames)[number];

/** What the instances of an app were started with. */
export interface Settings {
  version: number;
  /** Value of the variable CHAOS; '' when it was never set. */
  env: string;
}

/** An app as the session's commands declare it. `undefined` stands for an app that does not exist. */
export interface Declared {
  started: boolean;
  instances: number;
  /** Of the running instances, or of those that ran last. */
  running: Settings;
  /** Whether the service is bound, and whether the instances know of it. */
  bound: boolean;
  runningBound: boolean;
  /** The value of CHAOS for the next start. */
  env: string;
  extraRoute: boolean;
  /** What each revision was started with. */
  history: Map<number, Settings>;
}

/** A step can be made from this state of an app. */
export function isPossible(step: StepName, app: Declared | undefined): boolean {
  if (app === undefined) return step === 'push';
  if (step === 'start') return !app.started;
  if (step === 'push' || step === 'delete' || step === 'set-env') return true;
  if (step === 'bind-service') return !app.bound;
  if (step === 'unbind-service') return app.bound;
  if (step === 'map-route') return !app.extraRoute;
  if (step === 'unmap-route') return app.extraRoute;
  return app.started;
}

/** The step that makes another one possible. */
export function preparing(step: StepName, app: Declared | undefined): StepName {
  if (app === undefined) return 'push';
  if (step === 'start') return 'stop';
  if (step === 'bind-service') return 'unbind-service';
  if (step === 'unbind-service') return 'bind-service';
  if (step === 'map-route') return 'unmap-route';
  if (step === 'unmap-route') return 'map-route';
  return 'start';
}

/** Numbers that a step needs, drawn before it is known which ones it uses: the seed alone decides the order. */
export interface Draw {
  instances: number;
  value: string;
}

const other = (version: number): number => (version === 1 ? 2 : 1);
/** What a start now gives the instances. */
const startedNow = (app: Declared, version = app.running.version): Partial<Declared> => ({
  started: true,
  running: { version, env: app.env },
  runningBound: app.bound,
});

/** The app after a step that succeeded. @param target of a rollback */
export function after(step: StepName, app: Declared | undefined, draw: Draw, target?: Settings): Declared | undefined {
  if (app === undefined) {
    const running = { version: 1, env: '' };
    return { started: true, instances: 1, running, bound: false, runningBound: false, env: '', extraRoute: false, history: new Map() };
  }
  const changed: Record<StepName, () => Partial<Declared> | undefined> = {
    push: () => startedNow(app, other(app.running.version)),
    restart: () => startedNow(app),
    start: () => startedNow(app),
    scale: () => ({ instances: draw.instances }),
    'set-env': () => ({ env: draw.value }),
    rollback: () => (target === undefined ? startedNow(app) : { running: target, env: target.env, runningBound: app.bound }),
    'bind-service': () => ({ bound: true }),
    'unbind-service': () => ({ bound: false }),
    'map-route': () => ({ extraRoute: true }),
    'unmap-route': () => ({ extraRoute: false }),
    stop: () => ({ started: false }),
    delete: () => undefined,
  };
  const change = changed[step]();
  return change === undefined ? undefined : { ...app, ...change };
}

/** The command of a step. */
export function commandOf(
  step: StepName,
  name: string,
  app: Declared | undefined,
  draw: Draw,
  image: (version: number) => string,
  revision?: number,
): string[] {
  const commands: Record<StepName, string[]> = {
    push: ['push', name, '-o', image(app === undefined ? 1 : other(app.running.version)), '-m', '64M'],
    restart: ['restart', name],
    start: ['start', name],
    scale: ['scale', name, '-i', String(draw.instances)],
    'set-env': ['set-env', name, 'CHAOS', draw.value],
    rollback: revision === undefined ? ['restart', name] : ['rollback', name, '--version', String(revision), '-f'],
    'bind-service': ['bind-service', name, serviceOf(name)],
    'unbind-service': ['unbind-service', name, serviceOf(name)],
    'map-route': ['map-route', name, 'apps.localhost', '-n', extraHostOf(name)],
    'unmap-route': ['unmap-route', name, 'apps.localhost', '-n', extraHostOf(name)],
    stop: ['stop', name],
    delete: ['delete', name, '-f', '-r'],
  };
  return commands[step];
}

export const serviceOf = (name: string): string => `${name}-db`;
export const extraHostOf = (name: string): string => `${name}-extra`;

/** A copy of `items` in an order that the numbers decide. */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
