// `target`, `orgs`, `spaces`: short lists and rows.

import type { PlaceSummary, TargetDetails } from '../api/results.ts';
import { line, pairs, table, type Block } from './block.ts';

export function renderTarget(target: TargetDetails, bin: string): Block[] {
  const rows: [string, string][] = [
    ['API endpoint:', target.endpoint],
    ['API version:', target.apiVersion],
    ['user:', target.user],
  ];
  if (target.org !== undefined) rows.push(['org:', target.org.name]);
  if (target.space !== undefined) rows.push(['space:', target.space.name]);
  rows.push(['context:', target.context]);
  if (target.org === undefined) return [pairs(...rows), line(`No org or space targeted, use '${bin} target -o ORG -s SPACE'`)];
  if (target.space === undefined) return [pairs(...rows), line(`No space targeted, use '${bin} target -s SPACE'`)];
  return [pairs(...rows)];
}

/** @param none cf's text when there are none */
export function renderNames(places: readonly PlaceSummary[], none: string): Block[] {
  return places.length === 0
    ? [line(none)]
    : [
        table(
          ['name'],
          places.map(({ name }) => [name]),
        ),
      ];
}
