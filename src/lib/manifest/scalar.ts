// The value of a plain YAML scalar. cf reads manifests with go-yaml, which is YAML 1.1 without base 60, single-letter booleans and lone dots.
// Source: gopkg.in/yaml.v2 and v3, resolve.go.

const words = new Map<string, boolean | null>([
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
  ...['true', 'True', 'TRUE', 'yes', 'Yes', 'YES', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['false', 'False', 'FALSE', 'no', 'No', 'NO', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
]);

const decimal = /^[-+]?(?:0|[1-9][0-9]*)$/;
const octal = /^([-+]?)0o?([0-7]+)$/;
const otherBase = /^([-+]?)(0[xb][0-9a-fA-F]+)$/;
/** A point needs a digit next to it. */
const float = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const longestNumber = 400;

/** Booleans, null and numbers; any other text is a string. A number that JSON cannot represent stays a string. */
export function plainScalar(source: string): string | number | boolean | null {
  const word = words.get(source);
  if (word !== undefined) return word;
  if (!/^[-+.0-9]/.test(source) || source.length > longestNumber) return source;
  const digits = source.replaceAll('_', '');
  if (decimal.test(digits)) return Number(digits);
  const [, octalSign, inOctal] = octal.exec(digits) ?? [];
  if (inOctal !== undefined) return signed(octalSign, Number.parseInt(inOctal, 8));
  const [, sign, literal] = otherBase.exec(digits) ?? [];
  if (literal !== undefined) return numberOr(signed(sign, Number(literal)), source);
  return float.test(digits) ? numberOr(Number(digits), source) : source;
}

const signed = (sign: string | undefined, value: number): number => (sign === '-' ? -value : value);
const numberOr = (value: number, source: string): number | string => (Number.isFinite(value) ? value : source);
