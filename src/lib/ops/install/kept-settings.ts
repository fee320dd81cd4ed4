// Settings that a setup takes over from the one before. Flags override the file of -f; without a file they override the settings of the existing
// installation.

import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { configMapType } from '../../api/core.ts';
import { places } from '../../api/group.ts';
import { defined } from '../../defined.ts';
import { KfError, messageOf } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import { readBuildEnv } from './build-env.ts';
import { httpsKeys, noIssuer } from './https.ts';
import type { RecordedInfo } from './recorded-info.ts';
import { standard, type SetupRequest } from './request.ts';
import { settingsOfObjects } from './settings-of-objects.ts';
import { knownKeys } from './settings-schema.ts';

/** The operator's input. */
export interface SetupOrder {
  flags: SetupRequest;
  /** The file of `-f`: together with the flags it is complete. A key that it does not name has its default. */
  file?: SetupRequest;
}

/** The settings of the existing installation. */
export interface KeptSettings {
  settings: SetupRequest;
  /** `objects`: a kf without the record made the installation. */
  from: 'record' | 'objects' | 'nothing';
}

export interface SettingChange {
  /** The key in setup.yaml, with dots: `images.node`. */
  key: string;
  /** For the environment of builds only `set` and `none`, no values. */
  before: string;
  after: string;
}

/** Reported to the operator before anything is written. */
export interface SettingsReport {
  /** Keys that stay although nobody gave them now. */
  kept: string[];
  from: KeptSettings['from'];
  changed: SettingChange[];
}

const recordName = `ConfigMap ${systemNamespace}/${places.settings}`;

function unreadable(why: string, cause?: unknown): KfError {
  return new KfError('failed', `The settings of this installation (${recordName}) cannot be read: ${why}`, {
    hints: ['kf setup -f setup.yaml', 'Or install the kf that set this cluster up, or a newer one.'],
    ...defined({ cause }),
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
  const env = defined({ buildEnv });
  const text = record?.data?.[places.settingsKey];
  if (text !== undefined) return { settings: { ...settingsIn(text), ...env }, from: 'record' };
  const found = await settingsOfObjects(cluster, recorded);
  return found === undefined ? { settings: {}, from: 'nothing' } : { settings: { ...found, ...env }, from: 'objects' };
}

/** The settings of the installation in the cluster. A file replaces settings that cannot be read. @throws KfError `failed` asking for one */
export async function keptSettings(cluster: Cluster, order: SetupOrder, recorded: RecordedInfo): Promise<KeptSettings> {
  try {
    return await readKept(cluster, recorded);
  } catch (error) {
    if (order.file === undefined || !(error instanceof KfError) || error.code !== 'failed') throw error;
    return { settings: {}, from: 'nothing' };
  }
}

const hostOf = (registry: string | undefined): string | undefined => registry?.split('/')[0];

/** Applies the flags to the kept settings; settings that belong only to a former choice are removed. */
function withFlags(kept: SetupRequest, flags: SetupRequest): SetupRequest {
  const base = { ...kept };
  if (flags.gateway !== undefined) delete base.gatewayClass;
  if (flags.gatewayClass !== undefined) delete base.gateway;
  // These are for a gateway of kf, and for https.
  if (flags.gateway !== undefined) delete base.https;
  if (flags.gateway !== undefined || flags.https === 'off') for (const key of httpsKeys) delete base[key];
  if (flags.gatewayClass !== undefined) delete base.httpRedirect;
  if (flags.gateway !== undefined || flags.gatewayClass !== undefined) delete base.gatewayGuard;
  if (flags.registry !== undefined && hostOf(flags.registry) !== hostOf(base.registry)) delete base.insecureRegistry;
  return { ...base, ...flags };
}

/** The complete request of this setup. */
export function settle({ flags, file }: SetupOrder, { settings }: KeptSettings): SetupRequest {
  const all = file === undefined ? withFlags(settings, flags) : { ...file, ...flags };
  if (all.tlsIssuer === noIssuer) delete all.tlsIssuer;
  return all;
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

/** The way to the gateway counts as a setting only if both plans have kf's own gateway. */
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
 * Lists the settings that stay and those that change.
 * @param exposure the cluster's own default for reaching the gateway
 */
export function reportSettings(order: SetupOrder, { settings, from }: KeptSettings, plan: SetupPlan, exposure: string): SettingsReport {
  const asked = { ...plan.settings, buildEnv: plan.buildEnv };
  const isPlain = (key: string): boolean => key === 'gatewayExposure' && settings.gatewayExposure === exposure;
  const stays = (key: string): boolean => key in asked && !(key in order.flags) && !isPlain(key);
  const kept = order.file === undefined ? Object.keys(settings).filter((key) => stays(key)) : [];
  const isKnown = from === 'record' || (from === 'objects' && order.file === undefined);
  return { kept, from, changed: isKnown ? changesBetween(settings, asked) : [] };
}
