// Kinds of values of which a call of cf may have any: the decisions in tools/surface/decisions name them in angle brackets.

const valueKinds: Readonly<Record<string, RegExp>> = {
  '<URL>': /^[a-z]+:\/\//i,
  '<LIMIT>': /^(?!-1$)/,
};

/** @param kind `<URL>`; false for a kind that is not known */
export const isOfKind = (value: string, kind: string): boolean => valueKinds[kind]?.test(value) === true;

export const knownValueKinds: readonly string[] = Object.keys(valueKinds);
