// `revisions` and `revision`, as cf prints them.

import type { RevisionDetails, RevisionSummary } from '../api/results.ts';
import { line, pairs, table, type Block } from './block.ts';

export function renderRevisions(revisions: readonly RevisionSummary[]): Block[] {
  if (revisions.length === 0) return [line('No revisions found')];
  const rows = revisions.map(({ version, deployed, description, deployable, guid, created }) => [
    deployed ? `${version}(deployed)` : String(version),
    description,
    String(deployable),
    guid,
    created,
  ]);
  return [table(['revision', 'description', 'deployable', 'revision guid', 'created at'], rows)];
}

function group(title: string, values: Record<string, string>): Block[] {
  const rows = Object.entries(values).map(([name, value]): [string, string] => [`${name}:`, value]);
  return rows.length === 0 ? [line(title), line()] : [line(title), pairs(...rows), line()];
}

export function renderRevision(revision: RevisionDetails): Block[] {
  const { version, deployed, description, deployable, guid, droplet, created, labels, annotations, env } = revision;
  return [
    pairs(
      ['revision:', String(version)],
      ['deployed:', String(deployed)],
      ['description:', description],
      ['deployable:', String(deployable)],
      ['revision GUID:', guid],
      ['droplet GUID:', droplet],
      ['created on:', created],
    ),
    line(),
    ...group('labels:', labels),
    ...group('annotations:', annotations),
    ...(env === undefined ? [] : group('application environment variables:', env)),
  ];
}
