// What setup and uninstall print when they are done.

import { line, pairs, type Block } from './block.ts';

/** The parts of an op's result that are shown; `ops/setup` returns more for `--json`. */
export interface SetupView {
  kubernetes: string;
  version: string;
  created: number;
  changed: number;
  unchanged: number;
  requests: { cpuMilli: number; memoryMiB: number };
  reach: { url: string; reachable: boolean; message?: string; hint?: string };
  domain: string;
  org: { name: string };
  space: { name: string };
}

export function setupBlocks(view: SetupView): Block[] {
  const didNothing = view.created + view.changed === 0;
  const changes = didNothing
    ? `nothing to change: all ${view.unchanged} objects are as they should be`
    : `${view.created} of ${view.created + view.changed + view.unchanged} objects created, ${view.changed} changed, ${view.unchanged} as they should be`;
  return [
    line(),
    pairs(
      ['kf:', view.version],
      ['kubernetes:', view.kubernetes],
      ['changes:', changes],
      ['requests:', `${view.requests.cpuMilli}m CPU, ${view.requests.memoryMiB} MiB memory`],
      ['apps domain:', view.domain],
      ['org:', view.org.name],
      ['space:', view.space.name],
      ['reachable:', view.reach.reachable ? `${view.reach.url} answers from here` : 'no'],
    ),
    line(),
  ];
}

export interface UninstallView {
  apps: number;
  keptApps: number;
  orgs: number;
  removed: string[];
  kept: { object: string; reason: string }[];
}

export function uninstallBlocks(view: UninstallView): Block[] {
  return [
    line(),
    pairs(
      ...(view.keptApps === 0 ? [] : ([['apps that go on:', String(view.keptApps)]] as [string, string][])),
      ['apps removed:', String(view.apps)],
      ['orgs removed:', String(view.orgs)],
      ['objects removed:', String(view.removed.length)],
    ),
    ...view.kept.map((kept) => line(`${kept.object} stays: ${kept.reason}`)),
    line(),
  ];
}
