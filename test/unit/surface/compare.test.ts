import { describe, expect, it } from 'vitest';
import { compare, type ComparisonInput, type Comparison } from '../../../tools/surface/compare.ts';
import type { CfCommandFacts, CommandDecision } from '../../../tools/surface/data.ts';
import { describeClass, type OwnCommand } from '../../../tools/surface/own.ts';
import type { FlagDefinition } from '../../../src/lib/cf/definitions.ts';

const shown = 'a/b a test';
const option = (more: Partial<FlagDefinition> = {}): FlagDefinition => ({ type: 'option', ...more });

interface Case {
  facts?: Partial<CfCommandFacts>;
  own?: Parameters<typeof describeClass>[1];
  decision?: CommandDecision;
  instead?: string;
  refusedFlags?: Record<string, string>;
}

/** Compares one command `scale, sc` of group APPS; without `own`, kf does not have it. */
function input({ facts, own, decision, instead = '', refusedFlags = {} }: Case): ComparisonInput {
  const command: CfCommandFacts = { name: 'scale', alias: 'sc', group: 'APPS', tier: 1, ...facts };
  const there: OwnCommand[] = own === undefined ? [] : [describeClass('scale', { aliases: ['sc'], ...own })];
  return {
    cf: { global: { flags: [], env: [] }, commands: [command] },
    own: there,
    table: {
      groups: { APPS: [['scale', 'sc']] },
      instead: () => instead,
      flagInstead: (_, flag) => refusedFlags[flag],
      globalFlags: [],
    },
    decisions: [
      { name: 'apps', commands: decision === undefined ? {} : { scale: decision } },
      { name: 'global', commands: { global: { shown } } },
    ],
    faultOfTest: (file, title, spellings) =>
      file !== 'a/b' || title !== 'a test'
        ? `there is no ${file}`
        : spellings.includes('--unused')
          ? `a/b does not use --unused`
          : undefined,
  };
}

const compared = (one: Case): Promise<Comparison> => compare(input(one));
const problems = async (one: Case): Promise<string[]> => (await compared(one)).problems;

describe('a command', () => {
  it('that is neither there nor decided is a problem, one with an alternative is refused', async () => {
    expect(await problems({})).toEqual(['scale: is neither there nor decided.']);
    const { commands, problems: none } = await compared({ instead: 'kf push -i N' });
    expect(none).toEqual([]);
    expect(commands).toMatchObject([{ status: 'refused', note: 'kf push -i N' }]);
  });

  it('that is there needs a test that exists', async () => {
    expect(await problems({ own: {} })).toEqual(['scale: names no test that shows it.']);
    expect(await problems({ own: {}, decision: { shown: 'c/d a test' } })).toEqual(['scale: there is no c/d.']);
    expect(await problems({ own: {}, decision: { shown } })).toEqual([]);
  });

  it('is compared by alias, group and place', async () => {
    expect(await problems({ own: { aliases: ['s'] }, decision: { shown } })).toEqual(["scale: has no alias 'sc'."]);
    const moved = input({ own: {}, decision: { shown } });
    moved.table.groups = { ROUTES: [['scale', 'sc']] };
    expect((await compare(moved)).problems).toEqual(["scale: kf help -a does not list 'APPS: scale, sc'."]);
  });

  it('whose decision no longer applies is a problem', async () => {
    expect(await problems({ instead: 'kf push', decision: { shown } })).toEqual([
      'scale: is decided, but src/lib/cf/cf-commands.ts says what to use instead of it.',
    ]);
    expect(await problems({ own: {}, decision: { shown, flags: { '--nope': shown }, args: { X: {} }, env: { Y: shown } } })).toEqual([
      'scale X: is decided, but cf has no such part.',
      'scale --nope: is decided, but cf has no such part.',
      'scale Y: is decided, but cf has no such part.',
    ]);
  });

  it('that is refused by a decision although kf has it, or its parts, is a problem', async () => {
    const refused = 'kf push';
    const facts = { args: [{ name: 'APP_NAME', required: true }], flags: [{ short: 'i', long: 'instances', type: 'int' }], env: ['CF_X'] };
    const own = {
      args: { APP_NAME: { required: true } },
      flags: { instances: option({ char: 'i' }) },
      environment: [['CF_X', 'x']] as [string, string][],
    };
    expect(await problems({ own: {}, decision: { refused } })).toEqual(['scale: is refused by its decision, but kf has it.']);
    const decision = { shown, args: { APP_NAME: { refused } }, flags: { '--instances': { refused } }, env: { CF_X: { refused } } };
    expect(await problems({ facts, own, decision })).toEqual([
      'scale APP_NAME: is refused by its decision, but kf has it.',
      'scale --instances: is refused by its decision, but kf has it.',
      'scale CF_X: is refused by its decision, but kf has it.',
    ]);
  });

  it('is decided in the file of its group, and the entries of a file are sorted', async () => {
    const misplaced = input({ own: {} });
    misplaced.decisions = [{ name: 'routes', commands: { scale: { shown }, nothing: { shown } } }, ...misplaced.decisions.slice(1)];
    expect((await compare(misplaced)).problems).toEqual([
      'decisions/routes.yaml: scale is not in the order of the alphabet.',
      'scale: belongs into decisions/apps.yaml.',
      'nothing: is decided, but cf has no such command.',
    ]);
  });
});

describe('an argument', () => {
  it.each([
    [{}, 'is not there'],
    [{ APP: { required: true } }, 'is called APP'],
    [{ APP_NAME: {} }, 'is not required'],
    [{ APP_NAME: { required: true, multiple: true } }, 'is repeatable'],
  ])('%j differs', async (args, difference) => {
    const facts = { args: [{ name: 'APP_NAME', required: true }] };
    expect(await problems({ facts, own: { args }, decision: { shown } })).toEqual([
      `scale APP_NAME: ${difference}, and nothing is decided.`,
    ]);
    const decision = { shown, args: { APP_NAME: { differs: 'why' } } };
    expect(await problems({ facts, own: { args }, decision })).toEqual([]);
  });

  it('that only kf has is a problem', async () => {
    expect(await problems({ own: { args: { MORE: {} } }, decision: { shown } })).toEqual(['scale MORE: is no argument of cf.']);
  });
});

describe('a flag', () => {
  const facts = { flags: [{ short: 'i', long: 'instances', type: 'int>=0' }] };
  const whole = (text: string): Promise<number> => (/^\d+$/.test(text) ? Promise.resolve(Number(text)) : Promise.reject(new Error('no')));
  const parse = whole as NonNullable<FlagDefinition['parse']>;
  const done = { shown, flags: { '--instances': shown } };

  it.each([
    [{}, ['is not there']],
    [{ instances: option({ parse, numeric: true }) }, ['has no short form -i']],
    [{ instances: option({ char: 'i', parse }) }, ['does not take a negative number as a word of its own']],
    [{ instances: { type: 'boolean' as const, char: 'i' } }, ['takes no value']],
    [{ instances: option({ char: 'i', parse, numeric: true, multiple: true }) }, ['is repeatable']],
    [{ instances: option({ char: 'i', parse, numeric: true, required: true }) }, ['is required']],
    [
      { instances: option({ char: 'i', numeric: true }) },
      ["takes '-1', which cf refuses", "takes 'x', which cf refuses", "takes '1.5', which cf refuses"],
    ],
  ])('%j differs', async (flags, differences) => {
    expect(await problems({ facts, own: { flags }, decision: done })).toEqual(
      differences.map((difference) => `scale --instances: ${difference}, and nothing is decided.`),
    );
  });

  it('that is done names a test of its own', async () => {
    const own = { flags: { instances: option({ char: 'i', parse, numeric: true }) } };
    expect(await problems({ facts, own, decision: { shown } })).toEqual(['scale --instances: names no test that shows it.']);
    expect(await problems({ facts, own, decision: done })).toEqual([]);
    const ignored = { shown, flags: { '--instances': { ignored: 'why' } } };
    expect((await compared({ facts, own, decision: ignored })).commands[0]?.entries).toMatchObject([{ status: 'ignored', note: 'why' }]);
  });

  it('whose test does not use it is a problem', async () => {
    const unused = { facts: { flags: [{ long: 'unused', type: 'bool' }] }, own: { flags: { unused: { type: 'boolean' as const } } } };
    expect(await problems({ ...unused, decision: { shown, flags: { '--unused': shown } } })).toEqual([
      'scale --unused: a/b does not use --unused.',
    ]);
  });

  it('that kf refuses has its alternative from the code, and no other decision', async () => {
    const refusedFlags = { instances: 'kf push' };
    const { commands, problems: none } = await compared({ facts, own: {}, decision: { shown }, refusedFlags });
    expect(none).toEqual([]);
    expect(commands[0]?.entries).toMatchObject([{ name: '--instances', status: 'refused', note: 'kf push' }]);
    expect(await problems({ facts, own: {}, decision: done, refusedFlags })).toEqual([
      'scale --instances: is decided, but src/lib/cf/cf-flags.ts refuses it.',
    ]);
  });

  it('of cf with a short name alone may have a long one; a further flag of kf is listed', async () => {
    const own = { flags: { force: { type: 'boolean' as const, char: 'f' }, wait: { type: 'boolean' as const } } };
    const short = { flags: [{ short: 'f', type: 'bool' }] };
    const result = await compared({ facts: short, own, decision: { shown, flags: { '-f': shown } } });
    expect(result.problems).toEqual([]);
    expect(result.commands[0]?.ownFlags.map(({ name }) => name)).toEqual(['wait']);
  });

  it('with a value of which one is refused has that value decided', async () => {
    const enumeration = { flags: [{ long: 'strategy', type: 'enum', values: ['rolling', 'canary'] }] };
    const rolling = (text: string): Promise<string> => (text === 'rolling' ? Promise.resolve(text) : Promise.reject(new Error('no')));
    const own = { flags: { strategy: option({ parse: rolling }) } };
    expect(await problems({ facts: enumeration, own, decision: { shown, flags: { '--strategy': shown } } })).toEqual([
      "scale --strategy: does not take 'canary', and nothing is decided.",
    ]);
    const values = { canary: { refused: '--strategy rolling' } };
    expect(await problems({ facts: enumeration, own, decision: { shown, flags: { '--strategy': { shown, values } } } })).toEqual([]);
  });

  it('that is in no release of cf may be missing', async () => {
    const coming = { flags: [{ long: 'source', type: 'string', unreleased: true }] };
    const { commands, problems: none } = await compared({ facts: coming, own: {}, decision: { shown } });
    expect([none, commands[0]?.entries]).toEqual([[], []]);
  });
});

it('a variable that is not read needs a decision', async () => {
  const facts = { env: ['CF_X'] };
  expect(await problems({ facts, own: {}, decision: { shown } })).toEqual(['scale CF_X: is not read, and nothing is decided.']);
  expect(await problems({ facts, own: { environment: [['CF_X', 'why']] }, decision: { shown, env: { CF_X: shown } } })).toEqual([]);
});
