import { describe, expect, it } from 'vitest';
import { readCommandLine, type CommandLineRules } from '../../../src/lib/cf/command-line.ts';

const rules: CommandLineRules = {
  flags: [
    { name: 'force', char: 'f', takesValue: false },
    { name: 'routes', char: 'r', takesValue: false },
    { name: 'instances', char: 'i', takesValue: true, numeric: true },
    { name: 'path', char: 'p', takesValue: true },
    { name: 'var', takesValue: true, repeatable: true },
  ],
  args: [{ name: 'APP_NAME', required: true }],
};

const read = (...argv: string[]) => {
  const { flags, args } = readCommandLine(argv, rules);
  return { ...Object.fromEntries(flags), args };
};

describe('a command line in the syntax of cf', () => {
  it.each([
    ['flags before the name', ['-f', '-r', 'app'], { force: [''], routes: [''], args: ['app'] }],
    ['flags behind the name', ['app', '-r', '-f'], { force: [''], routes: [''], args: ['app'] }],
    ['clustered short flags', ['-fr', 'app'], { force: [''], routes: [''], args: ['app'] }],
    ['a value behind a blank', ['app', '-i', '3'], { instances: ['3'], args: ['app'] }],
    ['a value behind an equals sign', ['app', '-i=3', '--path=a=b'], { instances: ['3'], path: ['a=b'], args: ['app'] }],
    ['a value glued to its flag', ['app', '-i3'], { instances: ['3'], args: ['app'] }],
    ['a flag given twice: the last one counts', ['app', '-i', '1', '-i', '2'], { instances: ['2'], args: ['app'] }],
    ['a repeatable flag', ['app', '--var', 'a=1', '--var', 'b=2'], { var: ['a=1', 'b=2'], args: ['app'] }],
    ['a detached negative number', ['app', '-i', '-1'], { instances: ['-1'], args: ['app'] }],
    ['a dashed value with an equals sign', ['app', '--path=-x'], { path: ['-x'], args: ['app'] }],
    ['a value in double quotes', ['app', '--path', '"a b"'], { path: ['a b'], args: ['app'] }],
    ['a double dash as an argument', ['--'], { args: ['--'] }],
  ])('accepts %s', (_, argv, expected) => {
    expect(read(...argv)).toEqual(expected);
  });

  it.each([
    [['app', '--nope'], "Incorrect Usage: unknown flag `nope'"],
    [['app', '-x'], "Incorrect Usage: unknown flag `x'"],
    [['app', 'other'], 'Incorrect Usage: unexpected argument "other"'],
    [[], 'Incorrect Usage: the required argument `APP_NAME` was not provided'],
    [['app', '-p'], "Incorrect Usage: expected argument for flag `-p, --path'"],
    [['app', '-p', '-f'], "Incorrect Usage: expected argument for flag `-p, --path', but got option `-f'"],
    [['app', '-p', '-1'], "Incorrect Usage: expected argument for flag `-p, --path', but got option `-1'"],
    [['app', '--force=true'], "Incorrect Usage: bool flag `-f, --force' cannot have an argument"],
  ])("refuses %j with cf's message", (argv, message) => {
    expect(() => read(...argv)).toThrow(message);
  });

  it('gives all remaining words to a last argument that is repeatable', () => {
    const several = { ...rules, args: [...rules.args, { name: 'FILE', required: true, repeatable: true }] };
    expect(readCommandLine(['app', 'a', '-f', 'b', 'c'], several).args).toEqual(['app', 'a', 'b', 'c']);
    expect(() => readCommandLine(['app'], several)).toThrow('Incorrect Usage: the required argument `FILE` was not provided');
  });

  it('treats unknown flags as data if the command allows it', () => {
    const lenient = { ...rules, dashesAreData: true, args: ['APP_NAME', 'NAME', 'VALUE'].map((name) => ({ name, required: true })) };
    expect(readCommandLine(['app', 'OPTS', '-Xss512k'], lenient).args).toEqual(['app', 'OPTS', '-Xss512k']);
    expect(readCommandLine(['app', 'OPTS', '--force', '-x'], lenient).flags.has('force')).toBe(true);
  });
});
