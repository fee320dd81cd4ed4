// Finds the command, runs it, and maps the result to streams and an exit code. Loads only the modules that the command line needs.

import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { KfCommand } from './base-command.ts';
import type { CommandStatics } from './declared.ts';
import type { Frame, Program } from './frame.ts';
import { KfError } from './lib/errors.ts';
import { openTerminal, type Terminal } from './lib/output/terminal.ts';
import type { PluginDetails } from './lib/ops/plugins/folder.ts';
import { withSettings } from './lib/session/settings.ts';
import { followedCf, kfVersion } from './lib/version.ts';

/** A second signal, or this long after the first, ends the process at once. */
const forcedEndMs = 1800;

const fromSource = import.meta.url.endsWith('.ts');

function commandUrl(name: string): URL {
  return new URL(`./commands/${name}.${fromSource ? 'ts' : 'js'}`, import.meta.url);
}

function isThere(name: string): boolean {
  return /^[a-z][a-z0-9-]*$/.test(name) && existsSync(commandUrl(name));
}

/** The name of the program as it was started: `kf`, `cf`, or `kubectl kf`. */
function binaryName(path: string): string {
  const name = basename(path).replace(/\.(js|cmd|exe)$/, '');
  if (name === 'kubectl-kf') return 'kubectl kf';
  return name === 'cf' ? 'cf' : 'kf';
}

const withValue = new Set(['--context', '--org', '--space']);
const globalFlagNames = new Set([...withValue, '--json', '--verbose']);

/** Global flags before the command are moved behind it. */
function commandFirst(argv: readonly string[]): string[] {
  const before: string[] = [];
  const rest = [...argv];
  while (rest[0]?.startsWith('-') === true && !isHelpFlag(rest[0]) && rest[0] !== '--version') {
    const flag = rest.shift() ?? '';
    before.push(flag);
    const value = withValue.has(flag) ? rest.shift() : undefined;
    if (value !== undefined) before.push(value);
  }
  return rest.length === 0 ? before : [...rest.slice(0, 1), ...before, ...rest.slice(1)];
}

const isHelpFlag = (word: string): boolean => word === '-h' || word === '--help' || word === '--h';

interface CommandModule {
  default: (new (argv: string[], program: Program) => KfCommand<unknown>) & CommandStatics;
}

async function loadCommand(name: string): Promise<CommandModule['default']> {
  const own = process.stdout.listeners('error');
  const { default: command } = (await import(commandUrl(name).href)) as CommandModule;
  // When oclif is loaded, it adds a listener that throws the error: a full disk would end with a stack.
  for (const listener of process.stdout.listeners('error')) {
    if (!own.includes(listener)) process.stdout.off('error', listener as (error: Error) => void);
  }
  return command;
}

async function printHelp(words: readonly string[], frame: Frame): Promise<number> {
  const { terminal, bin } = frame;
  const [topic, ...rest] = words.filter((word) => !word.startsWith('-'));
  // `help` and `version` have no flags of their own; the overview has everything about them.
  if (topic === undefined || builtIn.has(topic)) {
    const [{ listCommands, overviewHelp }, ofPlugins] = await Promise.all([import('./lib/output/overview.ts'), pluginCommands(frame)]);
    const listed = { all: words.includes('-a'), isAvailable, ofPlugins };
    if (terminal.json) return printDocument(terminal, { commands: listCommands(listed) });
    terminal.print(overviewHelp({ bin, version: versionAs(bin), ...listed }));
    return 0;
  }
  const name = await resolveName(topic);
  if (name === undefined) return (await runPlugin(['help', topic, ...rest], frame)) ?? unknownCommand(topic, frame);
  const [command, { helpSubject }, { commandHelp, describeCommand }] = await Promise.all([
    loadCommand(name),
    import('./declared.ts'),
    import('./lib/output/help.ts'),
  ]);
  const subject = helpSubject(command, name);
  if (terminal.json) return printDocument(terminal, describeCommand(subject, bin));
  for (const line of commandHelp(subject, bin)) terminal.out(line);
  return 0;
}

function printDocument(terminal: Terminal, result: unknown): number {
  terminal.document({ status: 0, result, warnings: [] }, 2);
  return 0;
}

const builtIn = new Set(['help', 'version']);
const isAvailable = (name: string): boolean => builtIn.has(name) || isThere(name);

/** The command with that name or alias, if kf has it. */
async function resolveName(typed: string): Promise<string | undefined> {
  if (isThere(typed)) return typed;
  const { findCommand } = await import('./lib/cf/cf-commands.ts');
  const name = findCommand(typed)?.command[0];
  return name !== undefined && isThere(name) ? name : undefined;
}

/** Runs a command of an installed plugin; undefined when no plugin has it. Without plugins, nothing of oclif is loaded. */
async function runPlugin(argv: readonly string[], frame: Frame): Promise<number | undefined> {
  const { hasPlugins, pluginFolder } = await import('./lib/ops/plugins/folder.ts');
  if (!hasPlugins(frame.env)) return undefined;
  const { runPluginCommand } = await import('./plugins.ts');
  return runPluginCommand(argv, frame, pluginFolder(frame.env));
}

/** The commands of installed plugins, from the record of their installation: nothing of oclif is loaded for it. */
async function pluginCommands({ env }: Frame): Promise<PluginDetails['commands']> {
  const { hasPlugins, pluginFolder, readPluginPackage } = await import('./lib/ops/plugins/folder.ts');
  if (!hasPlugins(env)) return [];
  const folder = pluginFolder(env);
  const { details } = await readPluginPackage(folder);
  const plugins = details ?? (await (await import('./plugins.ts')).loadPlugins(folder));
  return plugins.flatMap(({ commands }) => commands);
}

/** For a cf command that kf does not have yet: an alternative. For any other word: the most similar names. */
async function unknownCommand(typed: string, { terminal, bin }: Frame): Promise<number> {
  const [{ allNames, findCommand }, { likely }, { printFailure }] = await Promise.all([
    import('./lib/cf/cf-commands.ts'),
    import('./lib/api/names.ts'),
    import('./lib/output/error.ts'),
  ]);
  const known = findCommand(typed);
  if (known !== undefined) {
    const [name, , label, instead] = known.command;
    const { notThereYet } = await import('./lib/cf/usage.ts');
    return printFailure(terminal, notThereYet(`'${name}' (${label})`, instead, { command: name }));
  }
  const { foreignError } = await import('./lib/cf/plugin-commands.ts');
  const foreign = foreignError(typed);
  if (foreign !== undefined) return printFailure(terminal, foreign);
  // Commands of kf come before those that it does not have, short names before long ones.
  const names = allNames().filter((name) => name.length > 1);
  const near = likely(
    typed,
    names.toSorted((one, other) => Number(isAvailable(other)) - Number(isAvailable(one)) || one.length - other.length),
  );
  const message = `'${typed}' is not a registered command. See '${bin} help -a'`;
  if (terminal.json) return printFailure(terminal, new KfError('usage', message, { details: { near } }));
  terminal.err(near.length === 0 ? message : [message, '', 'Did you mean?', ...near.map((name) => `      ${name}`)].join('\n'));
  return terminal.env['KF_EXIT_CODES'] === 'class' ? 2 : 1;
}

async function dispatch(argv: readonly string[], frame: Frame): Promise<number> {
  const [typed, ...rest] = commandFirst(argv);
  if (typed === undefined || isHelpFlag(typed)) return printHelp(rest, frame);
  // The command line has global flags and no command.
  if (globalFlagNames.has(typed)) return printHelp([], frame);
  if (typed === '--version' || typed === '-v' || typed === 'version') return printVersion(frame.terminal, frame.bin);
  if (typed === 'help' || typed === 'h') return printHelp(rest, frame);
  if (typed === '__complete') {
    const { complete } = await import('./completion.ts');
    return complete(rest, frame, { resolve: resolveName, load: loadCommand, isAvailable });
  }
  const name = await resolveName(typed);
  if (name === undefined) return (await runPlugin([typed, ...rest], frame)) ?? unknownCommand(typed, frame);
  if (rest.some(isHelpFlag)) return printHelp([name], frame);
  const Command = await loadCommand(name);
  Command.id = name;
  return new Command(rest, { bin: frame.bin }).execute(frame);
}

/** Scripts that call cf read the major version of cf from it. */
const versionAs = (bin: string): string => `${bin === 'cf' ? `${followedCf}+kf.` : ''}${kfVersion()}`;

function printVersion(terminal: Terminal, bin: string): number {
  if (terminal.json) return printDocument(terminal, { version: kfVersion() });
  terminal.out(`${bin} version ${versionAs(bin)}`);
  return 0;
}

/** How long remaining work of a command (a watch, a lost request) may take after its end. */
const leftoverMs = 200;

/** Ends the process even if work remains, once all output was written. */
function endSoon(code: number, exit: (code: number) => void): void {
  const look = (): void => {
    const isFlushed = process.stdout.writableLength === 0 && process.stderr.writableLength === 0;
    if (isFlushed) exit(code);
    else setTimeout(look, leftoverMs).unref();
  };
  setTimeout(look, leftoverMs).unref();
}

/** SIGINT and SIGTERM abort the command; if it does not end by itself, the process is ended. */
function catchSignals(controller: AbortController, exit: (code: number) => void): () => void {
  const end = () => {
    if (controller.signal.aborted) exit(130);
    controller.abort(new KfError('interrupted', 'Interrupted.', { exitCode: 130 }));
    setTimeout(() => exit(130), forcedEndMs).unref();
  };
  process.on('SIGINT', end).on('SIGTERM', end);
  return () => void process.off('SIGINT', end).off('SIGTERM', end);
}

/** The exit code of a program that was ended by the signal of a broken pipe; a shell reports it for cf, too. */
const brokenPipeCode = 141;

interface Output {
  stderr: () => { write(text: string): unknown };
  /** The exit code, once all output was written. */
  codeAfter(ended: number): Promise<number>;
}

/** A reader that goes away (`kf logs | head`) ends the command without a message; an output that accepts nothing (a full disk) is a failure. */
function watchOutput(controller: AbortController): Output {
  let failure: NodeJS.ErrnoException | undefined;
  let opened: NodeJS.WriteStream | undefined;
  const fail = (error: NodeJS.ErrnoException): void => {
    failure ??= error;
    if (!controller.signal.aborted) controller.abort(new KfError('interrupted', 'The output has ended.'));
  };
  const flushed = (): Promise<unknown> => new Promise((resolve) => process.stdout.write('', resolve));
  const stderr = (): NodeJS.WriteStream => (opened ??= process.stderr.on('error', fail));
  process.stdout.on('error', fail);
  return {
    // Later messages are only about the interruption; the cause is reported once, at the end.
    stderr: () => (failure === undefined ? stderr() : { write: () => true }),
    async codeAfter(ended) {
      await flushed();
      if (failure === undefined) return ended;
      if (failure.code === 'EPIPE') return brokenPipeCode;
      stderr().write(`The output cannot be written: ${failure.message}.\n`);
      return 1;
    },
  };
}

async function run(argv: readonly string[], frame: Frame): Promise<number> {
  try {
    return await dispatch(argv, frame);
  } catch (thrown) {
    const { printFailure, toKfError } = await import('./lib/output/error.ts');
    return printFailure(frame.terminal, toKfError(thrown));
  }
}

/**
 * Runs one command line. Returns the exit code; only `bin/run.js` sets it.
 * @param exit ends the process at once, if an interruption does not end it in time
 */
export async function start(processArgv: readonly string[], exit: (code: number) => void): Promise<number> {
  const argv = processArgv.slice(2);
  const controller = new AbortController();
  const release = catchSignals(controller, exit);
  const output = watchOutput(controller);
  const bin = binaryName(processArgv[1] ?? 'kf');
  const env = withSettings(process.env);
  // For the completion of shells, it is a word of another line.
  const json = argv.includes('--json') && argv[0] !== '__complete';
  const options = {
    env,
    stdout: process.stdout,
    stderr: output.stderr,
    canAsk: () => process.stdin.isTTY === true && (json ? process.stderr : process.stdout).isTTY === true,
    json,
  };
  const terminal = await openTerminal(options, bin);
  const ended = await run(argv, { terminal, signal: controller.signal, env, bin });
  release();
  const code = await output.codeAfter(ended);
  // Waits whose result is no longer needed end with the command.
  if (!controller.signal.aborted) controller.abort(new KfError('interrupted', 'The command has ended.'));
  endSoon(code, exit);
  return code;
}
