// The output of `rebuild`.

import { line, table, type Block } from './block.ts';

/** The part of the op's result that is shown. */
export interface RebuildView {
  dryRun: boolean;
  intact: number;
  lost: readonly { app: string; org: string; space: string; image: string; state: string; message?: string }[];
  leftOut: readonly { org: string; space: string }[];
}

const words: Readonly<Record<string, string>> = {
  buildable: 'can be built again',
  rebuilt: 'built again',
  push: 'push it again: its source is lost too',
  failed: 'failed',
};

const digestOf = (image: string): string => image.slice(image.lastIndexOf('@') + 1);

export function renderRebuild({ dryRun, intact, lost, leftOut }: RebuildView, bin: string): Block[] {
  const has = line(`The registry has the droplets of ${intact} ${intact === 1 ? 'app' : 'apps'}.`);
  const without = leftOut.map(({ org, space }) => line(`Not known of the apps in ${org}/${space}.`));
  if (lost.length === 0) return [...(without.length === 0 ? [line('No droplet is lost.')] : []), has, ...without];
  const rows = lost.map(({ app, org, space, image, state, message }) => [
    app,
    `${org}/${space}`,
    digestOf(image),
    message === undefined ? (words[state] ?? state) : `failed: ${message}`,
  ]);
  const toPush = lost.filter(({ state }) => state === 'push');
  return [
    table(['app', 'org/space', 'lost droplet', 'state'], rows),
    line(),
    has,
    ...without,
    ...(dryRun && toPush.length < lost.length ? [line(`Build them again: ${bin} rebuild`)] : []),
    ...(toPush.length === 0 ? [] : [line(`Push those without a source from its folder: ${bin} push APP`)]),
  ];
}
