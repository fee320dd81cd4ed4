// Which environment variables an app can have: names that a Secret and a container take, and that the platform leaves free; values that a process can be given.

/** Keys of a Secret that every supported Kubernetes takes for a variable's name. */
const namePattern = /^[-._a-zA-Z][-._a-zA-Z0-9]{0,252}$/;
/** Linux gives a process no longer `NAME=value` (MAX_ARG_STRLEN, with the NUL at its end). */
const longestBytes = 131_071;
/** What a Secret can hold. */
const mostBytes = 1_000_000;

/** Why a variable cannot be the user's, as a sentence; undefined for one that can. */
export function variableProblem(name: string, value = ''): string | undefined {
  if (name === '') return 'A variable needs a name.';
  if (name === 'PORT' || name.startsWith('VCAP_') || name.startsWith('VMC_'))
    return `'${name}' is set by the platform and cannot be set by an app.`;
  if (!namePattern.test(name) || name === '.' || name.startsWith('..'))
    return `'${name}' cannot be the name of a variable: it takes letters, digits, '_', '-' and '.', does not begin with a digit or with '..', and has at most 253 characters.`;
  if (value.includes('\0')) return `The value of variable '${name}' contains a NUL character, which no environment can hold.`;
  const bytes = name.length + 1 + Buffer.byteLength(value);
  if (bytes > longestBytes)
    return `The value of '${name}' has ${bytes - name.length - 1} bytes; a variable with its name takes ${longestBytes} at most.`;
  return undefined;
}

/** Why these variables cannot stand together; undefined when they can. */
export function variablesProblem(variables: Readonly<Record<string, string>>): string | undefined {
  const bytes = Object.entries(variables).reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value), 0);
  return bytes > mostBytes ? `The variables of an app take ${mostBytes} bytes together at most, and these have ${bytes}.` : undefined;
}
