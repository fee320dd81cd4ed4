// What differs between two revisions of an app: names only, since variables, commands and sidecars are secret.

import type { Stored } from '../../api/object.ts';
import type { RevisionChange, RevisionDiff } from '../../api/results.ts';
import type { RevisionSettings } from '../../api/revisions.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { findRevisions, pickRevision, readSettings, type FoundRevision } from './revisions.ts';

type Texts = Record<string, string>;

/** The entries that differ, by name. An empty command is the detected one. */
function changedNames(what: RevisionChange['what'], before: Texts, after: Texts): RevisionChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  return names.flatMap((name): RevisionChange[] => {
    const [from, to] = [before[name] ?? '', after[name] ?? ''];
    const isThere = (record: Texts): boolean => (what === 'command' ? (record[name] ?? '') !== '' : name in record);
    if (from === to && isThere(before) === isThere(after)) return [];
    return [{ what, name, change: isThere(before) ? (isThere(after) ? 'changed' : 'removed') : 'added' }];
  });
}

/** The facts of the record that may be shown. */
function changedFacts({ record: before }: FoundRevision, { record: after }: FoundRevision): RevisionChange[] {
  const facts: [RevisionChange['what'], string | undefined, string | undefined][] = [
    ['droplet', before.image ?? before.droplet, after.image ?? after.droplet],
    ['source', before.contentHash, after.contentHash],
    ['commit', before.commit, after.commit],
  ];
  return facts.flatMap(([what, from, to]): RevisionChange[] => {
    if (from === to) return [];
    const change = from === undefined ? 'added' : to === undefined ? 'removed' : 'changed';
    return [{ what, change, ...defined({ from, to }) }];
  });
}

function changedSettings(before: RevisionSettings, after: RevisionSettings): RevisionChange[] {
  return [
    ...changedNames('variable', before.env, after.env),
    ...changedNames('command', before.commands, after.commands),
    ...changedNames('sidecars', before.sidecars, after.sidecars),
  ];
}

/** Undefined when the user may not read them. */
async function settingsOf(session: SpaceSession, app: Stored<CFApp>, { record }: FoundRevision): Promise<RevisionSettings | undefined> {
  try {
    const settings = await readSettings(session, app, record);
    if (settings === undefined) session.report({ type: 'settings-not-kept', version: record.version });
    return settings;
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'forbidden') throw error;
    session.report({ type: 'variables-hidden', cause: error.message });
    return undefined;
  }
}

/**
 * @param versions left out: the newest one and the one before it
 * @throws KfError `not-found` for a version that is not recorded
 */
export async function diffRevisions(
  session: SpaceSession,
  app: Stored<CFApp>,
  versions: { from?: number | undefined; to?: number | undefined },
): Promise<RevisionDiff> {
  const { displayName } = app.spec;
  const command = `${session.bin} releases ${displayName}`;
  const found = await findRevisions(session, app);
  const [newest, former] = found;
  if (newest === undefined)
    throw new KfError('not-found', `No revisions for app ${displayName}`, { hints: [`${session.bin} restart ${displayName}`] });
  const to = versions.to === undefined ? newest : pickRevision(found, versions.to, command);
  const from = versions.from === undefined ? former : pickRevision(found, versions.from, command);
  if (from === undefined) throw new KfError('not-found', `App '${displayName}' has one revision only.`, { hints: [command] });
  const hasSame = from.record.settings !== undefined && from.record.settings === to.record.settings;
  const [before, after] = hasSame ? [] : await Promise.all([settingsOf(session, app, from), settingsOf(session, app, to)]);
  const isComplete = hasSame || (before !== undefined && after !== undefined);
  return {
    ...{ app: displayName, from: from.record.version, to: to.record.version, complete: isComplete },
    changes: [...changedFacts(from, to), ...(before && after ? changedSettings(before, after) : [])],
  };
}
