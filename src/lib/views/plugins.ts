// The output of `kf plugins`, as in cf: a row per command.

import { table, type Block } from './block.ts';

interface Plugin {
  name: string;
  version: string;
  commands: readonly { name: string; aliases: readonly string[]; summary: string }[];
}

export function renderPlugins(plugins: readonly Plugin[]): Block[] {
  const rows = plugins.flatMap(({ name, version, commands }) =>
    commands.map((command) => [name, version, [command.name, ...command.aliases].join(', '), command.summary]),
  );
  return [table(['plugin', 'version', 'command name', 'command help'], rows)];
}
