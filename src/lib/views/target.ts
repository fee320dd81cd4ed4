// `target`, `orgs`, `org`, `spaces`, `space`: short lists and rows.

import type { OrgDetails, PlaceSummary, SpaceDetails, TargetDetails } from '../api/results.ts';
import { line, pairs, table, type Block } from './block.ts';

export function renderTarget(target: TargetDetails, bin: string): Block[] {
  const rows: [string, string][] = [
    ['API endpoint:', target.endpoint],
    ['API version:', target.apiVersion],
    ['user:', target.user],
  ];
  if (target.org !== undefined) rows.push(['org:', target.org.name]);
  if (target.space !== undefined) rows.push(['space:', target.space.name]);
  rows.push(['context:', target.context], ['kubernetes:', target.kubernetesVersion]);
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

/** As for values that the user may not read elsewhere. */
const listed = (names: readonly string[] | undefined): string => names?.join(', ') ?? 'n/a';

/** kf has no isolation segments. */
export function renderOrg({ name, domains, quota, quotas, spaces }: OrgDetails): Block[] {
  return [
    pairs(
      ['name:', name],
      ['domains:', listed(domains)],
      ['quota:', quota ?? listed(quotas)],
      ['spaces:', listed(spaces.map((space) => space.name))],
      ['isolation segments:', ''],
    ),
  ];
}

/** kf has no isolation segments and no security groups. */
export function renderSpace({ name, org, apps, services, quota, quotas }: SpaceDetails): Block[] {
  return [
    pairs(
      ['name:', name],
      ['org:', org.name],
      ['apps:', listed(apps)],
      ['services:', listed(services)],
      ['isolation segment:', ''],
      ['quota:', quota ?? listed(quotas)],
      ['running security groups:', ''],
      ['staging security groups:', ''],
    ),
  ];
}
