// Where CF_TRACE sends what it shows.

type Env = Readonly<Record<string, string | undefined>>;

/** `true` means the terminal, and any other text is the name of a file. Undefined for `false` or nothing. */
export function traceOutput(env: Env): 'terminal' | { file: string } | undefined {
  const { CF_TRACE = '' } = env;
  if (CF_TRACE === '' || CF_TRACE.toLowerCase() === 'false') return undefined;
  return CF_TRACE.toLowerCase() === 'true' ? 'terminal' : { file: CF_TRACE };
}
