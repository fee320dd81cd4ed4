// cf's variables for how long to wait.

type Env = Readonly<Record<string, string | undefined>>;

const timeouts = {
  CF_STAGING_TIMEOUT: { unit: 'minutes', standard: 15, unitMs: 60_000 },
  CF_STARTUP_TIMEOUT: { unit: 'minutes', standard: 5, unitMs: 60_000 },
  CF_DIAL_TIMEOUT: { unit: 'seconds', standard: 10, unitMs: 1000 },
} as const;

export type TimeoutVariable = keyof typeof timeouts;

/** The milliseconds that the user asks for; undefined when the variable is not set, or is no number above 0 (then cf takes its own, too). */
export function askedMs(env: Env, variable: TimeoutVariable): number | undefined {
  const text = env[variable]?.trim() ?? '';
  const value = text === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) && value > 0 ? value * timeouts[variable].unitMs : undefined;
}

/** What is asked for, else the standard value, in milliseconds. */
export function timeoutFrom(env: Env, variable: TimeoutVariable): number {
  const { standard, unitMs } = timeouts[variable];
  return askedMs(env, variable) ?? standard * unitMs;
}

/** A sentence for each of these variables that is set to something that counts for nothing. Other variables are passed over. */
export function timeoutWarnings(env: Env, variables: readonly string[]): string[] {
  const unread = (Object.keys(timeouts) as TimeoutVariable[]).filter(
    (name) => variables.includes(name) && (env[name] ?? '') !== '' && askedMs(env, name) === undefined,
  );
  return unread.map((name) => {
    const { unit, standard } = timeouts[name];
    return `${name} is '${env[name] ?? ''}', which is not a number of ${unit} above 0; ${standard} ${unit} are taken.`;
  });
}
