// Commands of plugins: found, loaded and run by oclif. Loaded only for a command that kf does not have, and for listing and installing plugins.

import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Config, type Command } from '@oclif/core';
import { helpSubject, type CommandStatics } from './declared.ts';
import { setFrame, type Frame } from './frame.ts';
import { KfError } from './lib/errors.ts';
import type { PluginDetails } from './lib/ops/plugins/folder.ts';
import { kfVersion } from './lib/version.ts';

/** The module name with which plugins import kf. */
const apiName = '@kf/cli/api';

/** Its file: in the bundle this module is a chunk. */
const api = import.meta.url.endsWith('.ts') ? new URL('api.ts', import.meta.url) : new URL('../api.js', import.meta.url);

let isProvided = false;

/** `@kf/cli/api` in a plugin is the API of the running kf, wherever the plugin is installed. */
function provideApi(): void {
  if (isProvided) return;
  isProvided = true;
  registerHooks({ resolve: (asked, context, next) => (asked === apiName ? { url: api.href, shortCircuit: true } : next(asked, context)) });
}

/** oclif's configuration with the plugins of a folder, and without kf's own commands. */
async function loadConfig(folder: string): Promise<Config> {
  provideApi();
  // The variable in which oclif looks for the folder of user plugins.
  process.env['KF_DATA_DIR'] = folder;
  const pjson = { name: '@kf/cli', version: kfVersion(), oclif: { bin: 'kf', dirname: 'kf' } };
  return Config.load({ root: fileURLToPath(new URL('..', api)), pjson, userPlugins: true, devPlugins: false, ignoreManifest: true });
}

const isOfUser = (type: string | undefined): boolean => type === 'user';

/** The plugins of a folder with their commands, by name: oclif loads them in parallel, in any order. */
export async function loadPlugins(folder: string): Promise<PluginDetails[]> {
  const config = await loadConfig(folder);
  const plugins = [...config.plugins.values()].filter(({ type }) => isOfUser(type));
  const byName = plugins.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  return byName.map(({ name, version, commands }) => ({
    name,
    version,
    commands: commands.map(({ id, aliases, summary, description = '' }) => ({
      name: id.replaceAll(':', ' '),
      aliases,
      summary: summary ?? description,
    })),
  }));
}

/** oclif lists each alias as a command of that name. */
function ofOwnName(config: Config, command: Command.Loadable): Command.Loadable {
  const { commands = [] } = config.plugins.get(command.pluginName ?? '') ?? {};
  return commands.find(({ id, aliases }) => id === command.id || aliases.includes(command.id)) ?? command;
}

/** Finds the command of the first words, and returns the words after it: `kf topic command` is oclif's `topic:command`. */
function find(config: Config, words: readonly string[]): { command: Command.Loadable; rest: string[] } | undefined {
  for (let count = words.length; count > 0; count -= 1) {
    const command = config.findCommand(words.slice(0, count).join(':'));
    if (command !== undefined && isOfUser(command.pluginType)) return { command: ofOwnName(config, command), rest: words.slice(count) };
  }
  return undefined;
}

const isHelp = (word: string): boolean => word === '-h' || word === '--help';

/** Prints help in kf's own form, also for a command that extends oclif's class and not kf's. */
async function printHelp(command: Command.Loadable, { terminal, bin }: Frame): Promise<number> {
  const { commandHelp, describeCommand } = await import('./lib/output/help.ts');
  const loaded = await command.load();
  const { summary = loaded.description ?? '', aliases, examples, flags, args, baseFlags } = loaded;
  const { seeAlso = [], environment = [] }: Partial<Pick<CommandStatics, 'seeAlso' | 'environment'>> = loaded as object;
  const plain = { id: command.id, dashesAreData: false, json: 'document' as const };
  const statics = { ...plain, summary, aliases, examples, flags, args, baseFlags, seeAlso, environment };
  const subject = helpSubject(statics, command.id.replaceAll(':', ' '));
  if (terminal.json) terminal.document({ status: 0, result: describeCommand(subject, bin), warnings: [] }, 2);
  else for (const line of commandHelp(subject, bin)) terminal.out(line);
  return 0;
}

/** Fields that oclif adds to errors. */
interface OfOclif extends Error {
  oclif: { exit?: number };
  code?: string;
  suggestions?: string[];
}

/** The exit code of a command that ended by itself. @throws KfError for an error of oclif; any other error unchanged */
function exitCodeOf(thrown: unknown): number {
  if (!(thrown instanceof Error) || !('oclif' in thrown)) throw thrown;
  const { oclif, code, message, suggestions = [] } = thrown as OfOclif;
  const { exit = 1 } = oclif;
  if (code === 'EEXIT') return exit;
  throw new KfError('failed', message, { exitCode: exit, hints: suggestions, cause: thrown });
}

/**
 * Runs a plugin's command, or prints its help.
 * @param argv the command line; also `help COMMAND`
 * @returns the exit code, or undefined when no plugin has that command
 */
export async function runPluginCommand(argv: readonly string[], frame: Frame, folder: string): Promise<number | undefined> {
  const config = await loadConfig(folder);
  const wantsHelp = argv[0] === 'help';
  const found = find(config, wantsHelp ? argv.slice(1) : argv);
  if (found === undefined) return undefined;
  const { command, rest } = found;
  if (wantsHelp || rest.some(isHelp)) return printHelp(command, frame);
  setFrame(config, frame);
  try {
    await config.runHook('init', { argv: rest, id: command.id });
    await config.runCommand(command.id, rest, command);
    return 0;
  } catch (thrown) {
    return exitCodeOf(thrown);
  }
}
