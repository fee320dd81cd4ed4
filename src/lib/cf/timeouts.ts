// cf's environment variables for time limits.

type Env = Readonly<Record<string, string | undefined>>;

const timeouts = {
  CF_STAGING_TIMEOUT: { unit: 'minutes', standard: 15, unitMs: 60_000 },
  CF_STARTUP_TIMEOUT: { unit: 'minutes', standard: 5, unitMs: 60_000 },
  CF_DIAL_TIMEOUT: { unit: 'seconds', standard: 10, unitMs: 1000 },
} as const;

export type TimeoutVariable = keyof typeof timeouts;

/** The user's time limit in milliseconds; undefined when the variable is not set, or is not a number above 0 (cf then uses its default, too). */
export function askedMs(env: Env, variable: TimeoutVariable): number | undefined {
  const text = env[variable]?.trim() ?? '';
  const value = text === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) && value > 0 ? value * timeouts[variable].unitMs : undefined;
}

/** The user's time limit, otherwise the default, in milliseconds. */
export function timeoutFrom(env: Env, variable: TimeoutVariable): number {
  const { standard, unitMs } = timeouts[variable];
  return askedMs(env, variable) ?? standard * unitMs;
}

/** A limit of minutes as it is printed. */
export const minutesOf = (ms: number): number => Math.round(ms / 600) / 100;

/** The hint after a limit that was too short: twice as long. */
export function twiceAsLong(variable: 'CF_STAGING_TIMEOUT' | 'CF_STARTUP_TIMEOUT', usedMs: number): string {
  const minutes = minutesOf(usedMs * 2);
  return `${variable}=${minutes} gives it ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}.`;
}

/** A sentence for each of these variables that is set to an ignored value. Other variables are skipped. */
export function timeoutWarnings(env: Env, variables: readonly string[]): string[] {
  const unread = (Object.keys(timeouts) as TimeoutVariable[]).filter(
    (name) => variables.includes(name) && (env[name] ?? '') !== '' && askedMs(env, name) === undefined,
  );
  return unread.map((name) => {
    const { unit, standard } = timeouts[name];
    return `${name} is '${env[name] ?? ''}', which is not a number of ${unit} above 0; ${standard} ${unit} are taken.`;
  });
}
