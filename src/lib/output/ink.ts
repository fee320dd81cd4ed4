// Colours: with chalk if the terminal shows them; otherwise chalk is not even loaded.

export interface Ink {
  bold(text: string): string;
  /** Names of objects: bold cyan, as in cf. */
  name(text: string): string;
  good(text: string): string;
  bad(text: string): string;
  dim(text: string): string;
}

const same = (text: string): string => text;
export const plainInk: Ink = { bold: same, name: same, good: same, bad: same, dim: same };

export interface InkQuestion {
  env: Readonly<Record<string, string | undefined>>;
  isTTY: boolean;
}

/** cf's rules: colour on a TTY or with `CF_COLOR`, none with `NO_COLOR`. */
export function wantsColour({ env, isTTY }: InkQuestion): boolean {
  const forced = env['CF_COLOR']?.toLowerCase();
  if (forced === 'true') return true;
  if (forced === 'false') return false;
  if (env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '') return false;
  return isTTY && env['TERM'] !== 'dumb';
}

export async function loadInk(question: InkQuestion): Promise<Ink> {
  if (!wantsColour(question)) return plainInk;
  const { Chalk } = await import('chalk');
  const chalk = new Chalk({ level: 1 });
  return {
    bold: (text) => chalk.bold(text),
    name: (text) => chalk.cyan.bold(text),
    good: (text) => chalk.green.bold(text),
    bad: (text) => chalk.red.bold(text),
    dim: (text) => chalk.dim(text),
  };
}
