// Compares kf's commands with cf's, entry by entry: each difference has a decision, and each decision a difference or a test.

import { faultsOfTable, type OwnTable } from './table.ts';
import {
  fileOfGroup,
  flagName,
  type CfArg,
  type CfCommandFacts,
  type CfFacts,
  type CfFlag,
  type CommandDecision,
  type Decision,
  type DecisionFile,
  type ShownBy,
} from './data.ts';
import type { OwnCommand, OwnFlag } from './own.ts';
import { valueDifferences } from './values.ts';

/** `ignored`: accepted without an effect. `open`: neither there nor decided. */
export type Status = 'done' | 'differs' | 'ignored' | 'refused' | 'open';

/** One flag, argument or variable of a command. */
export interface Entry {
  kind: 'argument' | 'flag' | 'variable';
  name: string;
  status: Status;
  /** Why, or what instead. */
  note: string;
  values: NonNullable<Decision['values']>;
}

export interface ComparedCommand {
  facts: CfCommandFacts;
  status: Status;
  note: string;
  entries: Entry[];
  /** What the class declares. */
  declared: readonly OwnFlag[];
  /** Those of them that only kf has. */
  ownFlags: OwnFlag[];
  /** How many arguments it takes at most. */
  mostArgs: number;
  dashesAreData: boolean;
}

export interface Comparison {
  commands: ComparedCommand[];
  /** Flags and variables of every command. */
  global: ComparedCommand;
  /** What makes the check fail, a sentence each. */
  problems: string[];
}

export interface ComparisonInput {
  cf: CfFacts;
  own: readonly OwnCommand[];
  table: OwnTable;
  decisions: readonly DecisionFile[];
  /** What is wrong with a reference to a test. @param spellings of what it is to show; its file must have one of them */
  faultOfTest: (file: string, title: string, spellings: readonly string[]) => string | undefined;
}

/** The commands of cf that are in no group: `cf help -a` does not list them. */
export const hiddenGroup = 'hidden';

/** A decision that is only the name of a test, in the long form. */
const longForm = (decision: Decision | ShownBy | undefined): Decision | undefined =>
  typeof decision === 'string' ? { shown: decision } : decision;

function statusOf(decision: Decision): { status: Status; note: string } {
  if (decision.refused !== undefined) return { status: 'refused', note: decision.refused };
  if (decision.ignored !== undefined) return { status: 'ignored', note: decision.ignored };
  if (decision.differs !== undefined) return { status: 'differs', note: decision.differs };
  return { status: 'done', note: '' };
}

/** Compares one command, and collects what is wrong. */
class CommandComparison {
  readonly #facts: CfCommandFacts;
  readonly #decision: CommandDecision;
  readonly #input: ComparisonInput;
  readonly problems: string[] = [];

  constructor(facts: CfCommandFacts, decision: CommandDecision, input: ComparisonInput) {
    this.#facts = facts;
    this.#decision = decision;
    this.#input = input;
  }

  async run(own: OwnCommand): Promise<ComparedCommand> {
    const { args = [], flags = [], env = [], alias } = this.#facts;
    if (alias !== undefined && !own.aliases.includes(alias)) this.#say('', `has no alias '${alias}'`);
    this.#checkRefused('', this.#decision);
    this.#checkTest('', this.#decision, true, []);
    this.#checkNames();
    const entries = [
      ...(await Promise.all(args.map((arg, index) => this.#arg(arg, index, own)))).flat(),
      ...(await Promise.all(flags.map((flag) => this.#flag(flag, own)))).flat(),
      ...env.flatMap((name) => this.#variable(name, own)),
    ];
    for (const { name } of own.args.slice(args.length)) this.#say(name, 'is no argument of cf');
    const known = (flag: OwnFlag): boolean => flags.some((cf) => isSame(cf, flag));
    const { status, note } = statusOf(this.#decision);
    return {
      facts: this.#facts,
      status,
      note,
      entries,
      declared: own.flags,
      ownFlags: own.flags.filter((flag) => !known(flag)),
      mostArgs: own.args.some(({ repeatable }) => repeatable) ? Number.POSITIVE_INFINITY : own.args.length,
      dashesAreData: own.dashesAreData,
    };
  }

  #say(part: string, text: string): void {
    this.problems.push(`${[this.#facts.name, part].filter(Boolean).join(' ')}: ${text}.`);
  }

  /** Decisions about what the command of cf does not have. */
  #checkNames(): void {
    const { args = [], flags = [], env = [] } = this.#facts;
    const unknown = [
      ...Object.keys(this.#decision.args ?? {}).filter((name) => !args.some((arg) => arg.name === name)),
      ...Object.keys(this.#decision.flags ?? {}).filter((name) => !flags.some((flag) => flagName(flag) === name)),
      ...Object.keys(this.#decision.env ?? {}).filter((name) => !env.includes(name)),
    ];
    for (const name of unknown) this.#say(name, 'is decided, but cf has no such part');
  }

  /** A decision about what kf has in the meantime. */
  #checkRefused(part: string, decision: Decision | undefined): void {
    if (decision?.refused !== undefined) this.#say(part, 'is refused by its decision, but kf has it');
  }

  #checkTest(part: string, { shown = [], refused, ignored }: Decision, isNeeded: boolean, spellings: readonly string[]): void {
    const tests = [shown].flat();
    if (tests.length === 0 && isNeeded && refused === undefined && ignored === undefined) this.#say(part, 'names no test that shows it');
    for (const test of tests) {
      const at = test.indexOf(' ');
      const fault = this.#input.faultOfTest(test.slice(0, Math.max(at, 0)), test.slice(at + 1), spellings);
      if (fault !== undefined) this.#say(part, fault);
    }
  }

  async #arg(arg: CfArg, index: number, own: OwnCommand): Promise<Entry> {
    const decision = this.#decision.args?.[arg.name];
    const there = own.args[index];
    if (there !== undefined) this.#checkRefused(arg.name, decision);
    const differences =
      there === undefined
        ? ['is not there']
        : [
            ...(there.name === arg.name ? [] : [`is called ${there.name}`]),
            ...(there.required === arg.required ? [] : [arg.required ? 'is not required' : 'is required']),
            ...(there.repeatable === (arg.repeatable ?? false) ? [] : [arg.repeatable === true ? 'is not repeatable' : 'is repeatable']),
            ...(await valueDifferences(arg, there.accepts, Object.keys(decision?.values ?? {}))),
          ];
    return this.#entry('argument', arg.name, decision, differences);
  }

  /** kf need not have a flag that is hidden or in no release of cf. */
  async #flag(flag: CfFlag, own: OwnCommand): Promise<Entry[]> {
    const name = flagName(flag);
    const decision = longForm(this.#decision.flags?.[name]);
    const instead = this.#input.table.flagInstead(this.#facts.name, flag.long ?? flag.short ?? '');
    const there = own.flags.find((candidate) => isSame(flag, candidate));
    if (there === undefined && instead !== undefined) {
      if (decision !== undefined) this.#say(name, 'is decided, but src/lib/cf/cf-flags.ts refuses it');
      return [{ kind: 'flag', name, status: 'refused', note: instead, values: {} }];
    }
    if (there === undefined && decision === undefined && (flag.hidden === true || flag.unreleased === true)) return [];
    if (there !== undefined) this.#checkRefused(name, decision);
    const differences = there === undefined ? ['is not there'] : await flagDifferences(flag, there, decision);
    const spellings = [flag, { short: there?.char, long: there?.name }].flatMap(({ short, long }) => [
      ...(short === undefined ? [] : [`-${short}`]),
      ...(long === undefined ? [] : [`--${long}`]),
    ]);
    return [this.#entry('flag', name, decision, differences, spellings)];
  }

  #variable(name: string, own: OwnCommand): Entry[] {
    const decision = longForm(this.#decision.env?.[name]);
    const isRead = own.variables.includes(name);
    if (isRead) this.#checkRefused(name, decision);
    return [this.#entry('variable', name, decision, isRead ? [] : ['is not read'], [name])];
  }

  /** @param spellings how it is typed; an argument is shown with its command */
  #entry(kind: Entry['kind'], name: string, decision: Decision | undefined, differences: string[], spellings: string[] = []): Entry {
    const { status, note } = statusOf(decision ?? {});
    const values = decision?.values ?? {};
    if (differences.length > 0 && status === 'done') {
      for (const difference of differences) this.#say(name, `${difference}, and nothing is decided`);
      return { kind, name, status: 'open', note: differences.join('; '), values };
    }
    this.#checkTest(name, decision ?? {}, spellings.length > 0, spellings);
    return { kind, name, status, note, values };
  }
}

const isSame = (cf: CfFlag, own: OwnFlag): boolean => (cf.long === undefined ? cf.short === own.char : cf.long === own.name);

/** Types after whose flags cf takes `-1` as a value, and not as another flag. */
const takesNegative = new Set(['int', 'int>=0', 'int>=1', 'int>=-1', 'bytes|-1', 'megabytes|-1']);

async function flagDifferences(cf: CfFlag, own: OwnFlag, decision: Decision | undefined): Promise<string[]> {
  const takesValue = cf.type !== 'bool';
  return [
    ...(cf.short === undefined || cf.short === own.char ? [] : [`has no short form -${cf.short}`]),
    ...(takesValue === own.takesValue ? [] : [takesValue ? 'takes no value' : 'takes a value']),
    ...((cf.repeatable ?? false) === own.repeatable ? [] : [own.repeatable ? 'is repeatable' : 'is not repeatable']),
    ...((cf.required ?? false) === own.required ? [] : [own.required ? 'is required' : 'is not required']),
    ...(own.takesValue && takesNegative.has(cf.type) && !own.numeric ? ['does not take a negative number as a word of its own'] : []),
    ...(takesValue && own.takesValue ? await valueDifferences(cf, own.accepts, Object.keys(decision?.values ?? {})) : []),
  ];
}

/** The decisions about the flags and variables of every command are under this name. */
const globalName = 'global';

function problemsOfFiles({ cf, decisions, table }: ComparisonInput): string[] {
  const groupOf = new Map(cf.commands.map(({ name, group }) => [name, group]));
  return decisions.flatMap(({ name: file, commands }) => {
    const names = Object.keys(commands);
    const sorted = names.toSorted();
    const moved = names.find((name, at) => name !== sorted[at]);
    return [
      ...(moved === undefined ? [] : [`decisions/${file}.yaml: ${moved} is not in the order of the alphabet.`]),
      ...names.flatMap((name) => {
        const group = groupOf.get(name);
        if (name === globalName && file === globalName) return [];
        if (group === undefined) return [`${name}: is decided, but cf has no such command.`];
        if (fileOfGroup(group) !== file) return [`${name}: belongs into decisions/${fileOfGroup(group)}.yaml.`];
        if (table.instead(name) !== '') return [`${name}: is decided, but src/lib/cf/cf-commands.ts says what to use instead of it.`];
        return [];
      }),
    ];
  });
}

/** A command that kf does not have. */
function absent(facts: CfCommandFacts, instead: string): ComparedCommand {
  return {
    facts,
    status: instead === '' ? 'open' : 'refused',
    note: instead,
    entries: [],
    declared: [],
    ownFlags: [],
    mostArgs: 0,
    dashesAreData: false,
  };
}

/** Compares all commands. Pure: `input` has everything that was read. */
export async function compare(input: ComparisonInput): Promise<Comparison> {
  const { cf, own, table, decisions } = input;
  const decided = new Map(decisions.flatMap(({ commands }) => Object.entries(commands)));
  const problems = [
    ...problemsOfFiles(input),
    ...faultsOfTable(
      table,
      cf.commands.filter(({ group }) => group !== hiddenGroup),
    ),
  ];
  const compareOne = async (facts: CfCommandFacts, there: OwnCommand): Promise<ComparedCommand> => {
    const comparison = new CommandComparison(facts, decided.get(facts.name) ?? {}, input);
    const result = await comparison.run(there);
    problems.push(...comparison.problems);
    return result;
  };
  const commands: ComparedCommand[] = [];
  for (const facts of cf.commands) {
    const there = own.find(({ name }) => name === facts.name);
    const instead = table.instead(facts.name);
    if (there !== undefined) commands.push(await compareOne(facts, there));
    else {
      if (instead === '') problems.push(`${facts.name}: is neither there nor decided.`);
      commands.push(absent(facts, instead));
    }
  }
  const facts: CfCommandFacts = { name: globalName, group: globalName, tier: 1, ...cf.global };
  const everywhere = { name: globalName, aliases: [], args: [], flags: table.globalFlags, variables: cf.global.env, dashesAreData: false };
  return { commands, global: await compareOne(facts, everywhere), problems };
}
