// `revisions` and `revision`, as cf prints them; kf's own `releases` and `diff`.

import type { RevisionChange, RevisionDetails, RevisionDiff, RevisionSummary } from '../api/results.ts';
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

/** As git shortens them. */
const shortCommit = (commit: string): string => commit.replace(/^([0-9a-f]{9})[0-9a-f]+/, '$1');
/** The repository is long and the same for all. */
const shortImage = (image: string): string => image.replace(/^.*@(sha256:[0-9a-f]{12})[0-9a-f]+$/, '$1');

/** Nothing of these is known of an app that is not pushed from a repository, or not by CI. */
const oftenEmpty = ['commit', 'CI run'];

/** Columns that are often empty stay away when they are: the table is wide enough without them. */
function withoutEmpty(columns: readonly string[], rows: readonly (readonly string[])[]): Block {
  const kept = columns.flatMap((name, at) => (oftenEmpty.includes(name) && rows.every((row) => row[at] === '') ? [] : [at]));
  const pick = (row: readonly string[]): string[] => kept.map((at) => row[at] ?? '');
  return table(pick(columns), rows.map(pick));
}

export function renderReleases(revisions: readonly RevisionSummary[]): Block[] {
  if (revisions.length === 0) return [line('No revisions found')];
  const rows = revisions.map(({ version, deployed, created, by = '', commit = '', ciRun = '', image = '', description }) => [
    deployed ? `${String(version)}(deployed)` : String(version),
    created,
    by,
    shortCommit(commit),
    shortImage(image),
    description,
    ciRun,
  ]);
  return [withoutEmpty(['revision', 'created at', 'by', 'commit', 'droplet', 'description', 'CI run'], rows)];
}

const shorten = { droplet: shortImage, commit: shortCommit, source: (hash: string) => hash.slice(0, 'sha256:'.length + 12) } as const;

/** The values of a change, shortened; '' when it has none that may be shown. */
export function changedValues({ what, from, to }: RevisionChange): string {
  const short = what in shorten ? shorten[what as keyof typeof shorten] : (text: string) => text;
  return from === undefined && to === undefined ? '' : `${short(from ?? '-')} -> ${short(to ?? '-')}`;
}

const changeRow = (changed: RevisionChange): string[] => [changed.what, changed.name ?? '', changed.change, changedValues(changed)];

export function renderRevisionDiff({ app, from, to, complete, changes }: RevisionDiff): Block[] {
  const heading = line(`Revision ${String(from)} -> ${String(to)} of app ${app}`);
  if (changes.length > 0) return [heading, line(), table(['what', 'name', 'change', 'values'], changes.map(changeRow))];
  return complete ? [heading, line(), line('No differences.')] : [heading];
}
