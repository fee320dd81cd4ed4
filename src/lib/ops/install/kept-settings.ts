// What a setup takes over from the one before: flags over the file of -f, and without a file over what the installation was made with.

import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { configMapType } from '../../api/core.ts';
import { places } from '../../api/group.ts';
import { KfError, messageOf } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import { readBuildEnv } from './build-env.ts';
import type { RecordedInfo } from './recorded-info.ts';
import { standard, type SetupRequest } from './request.ts';
import { settingsOfObjects } from './settings-of-objects.ts';
import { knownKeys } from './settings-schema.ts';

/** What the operator gives. */
export interface SetupOrder {
  flags: SetupRequest;
  /** Of `-f`: the whole truth beside the flags. What it does not name is as if it had never been named. */
  file?: SetupRequest;
}

/** What an installation was made with. */
export interface KeptSettings {
  settings: SetupRequest;
  /** Objects: a kf without the record made the installation. */
  from: 'record' | 'objects' | 'nothing';
}

export interface SettingChange {
  /** As in setup.yaml, with dots: `images.node`. */
  key: string;
  /** Of the environment of builds no values, only `set` and `none`. */
  before: string;
  after: string;
}

/** What an operator is told before anything is written. */
export interface SettingsReport {
  /** Keys that hold although nobody gave them now. */
  kept: string[];
  from: KeptSettings['from'];
  changed: SettingChange[];
}

const recordName = `ConfigMap ${systemNamespace}/${places.settings}`;

function unreadable(why: string, cause?: unknown): KfError {
  return new KfError('failed', `The settings of this installation (${recordName}) cannot be read: ${why}`, {
    hints: ['kf setup -f setup.yaml', 'Or install the kf that set this cluster up, or a newer one.'],
    ...(cause === undefined ? {} : { cause }),
  });
}

function isMap(content: unknown): content is Record<string, unknown> {
  return content !== null && typeof content === 'object' && !Array.isArray(content);
}

function settingsIn(text: string): SetupRequest {
  let content: unknown;
  try {
    content = parse(text);
  } catch (error) {
    throw unreadable(messageOf(error), error);
  }
  if (!isMap(content)) throw unreadable('it holds no map of settings.');
  const unknown = Object.keys(content).find((key) => !knownKeys.some((known) => known === key));
  if (unknown !== undefined) throw unreadable(`this kf does not know the key '${unknown}'.`);
  return content;
}

async function readKept(cluster: Cluster, recorded: RecordedInfo): Promise<KeptSettings> {
  const [record, buildEnv] = await Promise.all([cluster.get(configMapType, systemNamespace, places.settings), readBuildEnv(cluster)]);
  const env = buildEnv === undefined ? {} : { buildEnv };
  const text = record?.data?.[places.settingsKey];
  if (text !== undefined) return { settings: { ...settingsIn(text), ...env }, from: 'record' };
  const found = await settingsOfObjects(cluster, recorded);
  return found === undefined ? { settings: {}, from: 'nothing' } : { settings: { ...found, ...env }, from: 'objects' };
}

/** What the installation in the cluster was made with. A file makes up for what cannot be read. @throws KfError `failed` asking for one */
export async function keptSettings(cluster: Cluster, order: SetupOrder, recorded: RecordedInfo): Promise<KeptSettings> {
  try {
    return await readKept(cluster, recorded);
  } catch (error) {
    if (order.file === undefined || !(error instanceof KfError) || error.code !== 'failed') throw error;
    return { settings: {}, from: 'nothing' };
  }
}

const hostOf = (registry: string | undefined): string | undefined => registry?.split('/')[0];

/** Flags change what they name; what belongs to the former choice goes with it. */
function withFlags(kept: SetupRequest, flags: SetupRequest): SetupRequest {
  const base = { ...kept };
  if (flags.gateway !== undefined) delete base.gatewayClass;
  if (flags.gatewayClass !== undefined) delete base.gateway;
  if (flags.registry !== undefined && hostOf(flags.registry) !== hostOf(base.registry)) delete base.insecureRegistry;
  return { ...base, ...flags };
}

/** What this setup is asked for in all. */
export function settle({ flags, file }: SetupOrder, { settings }: KeptSettings): SetupRequest {
  return file === undefined ? withFlags(settings, flags) : { ...file, ...flags };
}

function flat(settings: object, prefix = ''): [key: string, value: unknown][] {
  return Object.entries(settings).flatMap(([key, value]): [string, unknown][] =>
    isMap(value) ? flat(value, `${prefix}${key}.`) : value === undefined ? [] : [[`${prefix}${key}`, value]],
  );
}

const standards = new Map(flat(standard));

function shown(key: string, value: unknown): string {
  if (key.startsWith('buildEnv.')) return value === undefined ? 'none' : 'set';
  const held = value ?? standards.get(key);
  return held === undefined ? 'none' : typeof held === 'string' ? held : JSON.stringify(held);
}

/** How the gateway is reached is a setting only where both have a gateway of kf's own. */
function isComparable(key: string, before: unknown, after: unknown): boolean {
  return key !== 'gatewayExposure' || (before !== undefined && after !== undefined);
}

function changesBetween(before: object, after: object): SettingChange[] {
  const [old, next] = [new Map(flat(before)), new Map(flat(after))];
  const differing = [...new Set([...old.keys(), ...next.keys()])].filter(
    (key) => !isDeepStrictEqual(old.get(key), next.get(key)) && isComparable(key, old.get(key), next.get(key)),
  );
  const changes = differing.map((key) => ({ key, before: shown(key, old.get(key)), after: shown(key, next.get(key)) }));
  return changes.filter((change) => change.key.startsWith('buildEnv.') || change.before !== change.after);
}

/**
 * What stays and what changes.
 * @param exposure what the cluster's own way in would be
 */
export function reportSettings(order: SetupOrder, { settings, from }: KeptSettings, plan: SetupPlan, exposure: string): SettingsReport {
  const asked = { ...plan.settings, buildEnv: plan.buildEnv };
  const isPlain = (key: string): boolean => key === 'gatewayExposure' && settings.gatewayExposure === exposure;
  const stays = (key: string): boolean => key in asked && !(key in order.flags) && !isPlain(key);
  const kept = order.file === undefined ? Object.keys(settings).filter((key) => stays(key)) : [];
  const isKnown = from === 'record' || (from === 'objects' && order.file === undefined);
  return { kept, from, changed: isKnown ? changesBetween(settings, asked) : [] };
}
