// The environment variables that an app can have: their names must be valid for a Secret and a container and not be used by the platform; a
// process must be able to get their values.

/** Keys of a Secret that every supported Kubernetes accepts as a variable's name. */
const namePattern = /^[-._a-zA-Z][-._a-zA-Z0-9]{0,252}$/;
/** Linux allows no longer `NAME=value` for a process (MAX_ARG_STRLEN, including the final NUL). */
const longestBytes = 131_071;
/** The capacity of a Secret. */
const mostBytes = 1_000_000;

/** Why the user cannot have a variable, as a sentence; undefined for a valid one. */
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

/** Why these variables cannot be used together; undefined when they can. */
export function variablesProblem(variables: Readonly<Record<string, string>>): string | undefined {
  const bytes = Object.entries(variables).reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value), 0);
  return bytes > mostBytes ? `The variables of an app take ${mostBytes} bytes together at most, and these have ${bytes}.` : undefined;
}
