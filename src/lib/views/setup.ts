// The output of setup and uninstall at their end.

import { line, pairs, type Block } from './block.ts';

/** The printed parts of an op's result; `ops/install` returns more for `--json`. */
export interface SetupView {
  kubernetes: string;
  version: string;
  created: number;
  changed: number;
  unchanged: number;
  removed: string[];
  requests: { cpuMilli: number; memoryMiB: number };
  reach: ReachView & { https?: ReachView };
  network: NetworkView;
  domain: string;
  org: { name: string };
  space: { name: string };
  /** What the next commands work on. */
  target: { org: { name: string }; space: { name: string } };
}

export interface ReachView {
  url: string;
  reachable: boolean;
  message?: string;
  hints?: string[];
}

export interface NetworkView {
  policies: 'on' | 'off';
  enforced?: boolean;
  message?: string;
}

export interface PlanView {
  changes: { action: 'create' | 'change' | 'unchanged'; object: { kind: string; metadata: { name: string; namespace?: string } } }[];
  /** Objects of earlier setups that are removed. */
  removals: string[];
  requests: { cpuMilli: number; memoryMiB: number };
}

/** Settings that are kept although nobody gave them now, and those that change. */
export interface SettingsView {
  kept: string[];
  from: 'record' | 'objects' | 'nothing';
  changed: { key: string; before: string; after: string }[];
}

/** The settings that a setup keeps and those that it changes; empty when there are none. */
export function settingsLines({ kept, from, changed }: SettingsView, bin: string): string[] {
  const names = kept.join(', ');
  const where =
    from === 'objects'
      ? 'This installation has no record of its settings; these were read from its objects and stay'
      : 'Settings that stay';
  const changes = changed.map(({ key, before, after }) => `${key} from ${before} to ${after}`);
  return [
    ...(names === '' ? [] : [`${where}: ${names} (others: ${bin} setup -f FILE)`]),
    ...(changes.length === 0 ? [] : [`Settings that change: ${changes.join(', ')}`]),
  ];
}

/** More changed objects than this are counted, not named. */
const namedChanges = 12;

function countByKind(changes: PlanView['changes']): string {
  const counts = new Map<string, number>();
  for (const { object } of changes) counts.set(object.kind, (counts.get(object.kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ');
}

function nameOf({ object: { kind, metadata } }: PlanView['changes'][number]): string {
  return `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`;
}

/** What a setup would remove, for a dry run; empty when it removes nothing. */
export function removalLines(removals: string[]): string[] {
  return removals.length === 0 ? [] : [`Objects of an earlier setup that would be removed: ${removals.join(', ')}`];
}

/** What setup is about to write; empty when nothing is to be written. */
export function planBlocks({ changes, removals, requests }: PlanView): Block[] {
  const of = (action: string) => changes.filter((change) => change.action === action);
  const [created, changed] = [of('create'), of('change')];
  if (created.length + changed.length + removals.length === 0) return [];
  const rows: [string, string][] = [];
  if (created.length > 0) rows.push(['to create:', countByKind(created)]);
  if (changed.length > 0) {
    rows.push(['to change:', changed.length > namedChanges ? countByKind(changed) : changed.map((change) => nameOf(change)).join(', ')]);
  }
  if (removals.length > 0) rows.push(['to remove:', removals.join(', ')]);
  rows.push(['to request:', `${requests.cpuMilli}m CPU, ${requests.memoryMiB} MiB memory in all`]);
  return [line(), pairs(...rows)];
}

function networkLine({ policies, enforced }: NetworkView): string {
  if (policies === 'off') return 'no policies';
  if (enforced === undefined) return 'policies made; whether they are enforced is not known';
  return enforced ? 'policies made and enforced' : "policies made, but the cluster's network does not enforce them";
}

/** What an operator must know about the network after a setup; empty when policies are enforced. */
export function networkWarnings({ policies, enforced, message }: NetworkView, bin: string): string[] {
  if (policies === 'off' || enforced === true) return [];
  const open = 'apps and builds can reach nodes, the API server and the apps of other spaces.';
  if (enforced === false)
    return [
      `The cluster's network does not enforce NetworkPolicies: ${open}\n   Install a network that does (Calico, Cilium), then: ${bin} setup --network-policies=on`,
    ];
  return [
    `Whether the cluster's network enforces NetworkPolicies could not be found out: ${message ?? 'no reason given'}.\n   If it does not, ${open}\n   To check again: ${bin} setup --network-policies=on`,
  ];
}

/** What an operator must know about the way to the gateway; empty when it answers from here. */
export function reachWarnings({ https, ...http }: ReachView & { https?: ReachView }): string[] {
  const failed = [http, https].filter((one) => one?.reachable === false);
  return failed.map((one) => [one?.message, ...(one?.hints ?? [])].join('\n   '));
}

function reachLine({ https, ...http }: ReachView & { https?: ReachView }): string {
  if (!http.reachable) return 'no';
  if (https?.reachable !== true || https.url === http.url) return `${http.url} answers from here`;
  return `${http.url} and ${https.url} answer from here`;
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
      ...(view.removed.length === 0 ? [] : ([['removed:', view.removed.join(', ')]] as [string, string][])),
      ['requests:', `${view.requests.cpuMilli}m CPU, ${view.requests.memoryMiB} MiB memory`],
      ['network:', networkLine(view.network)],
      ['apps domain:', view.domain],
      ['org:', view.org.name],
      ['space:', view.space.name],
      ['target:', `org ${view.target.org.name} / space ${view.target.space.name}`],
      ['reachable:', reachLine(view.reach)],
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
  if (view.keptApps + view.orgs + view.removed.length + view.kept.length === 0)
    return [line(), line('There was nothing to remove.'), line()];
  return [
    line(),
    pairs(
      ...(view.keptApps === 0 ? [] : ([['apps that keep running:', String(view.keptApps)]] as [string, string][])),
      ['apps removed:', String(view.apps)],
      ['orgs removed:', String(view.orgs)],
      ['objects removed:', String(view.removed.length)],
    ),
    ...view.kept.map((kept) => line(`${kept.object} stays: ${kept.reason}`)),
    line(),
  ];
}
