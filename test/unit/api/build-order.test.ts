import { expect, test } from 'vitest';
import { explicitOrder } from '../../../src/lib/api/build-order.ts';
import { readToml, tablesIn } from '../../../src/controller/builds/untrusted.ts';

const offered = [
  { id: 'kf/nodejs', version: '1.0.0' },
  { id: 'kf/procfile', version: '1.0.0' },
  { id: 'a/go', version: '2' },
  { id: 'b/go', version: '3' },
];
const groupOf = (wanted: string[]): string[] => {
  const result = explicitOrder(wanted, offered);
  if (!result.ok) return [result.message];
  return tablesIn(readToml(result.order, 'The order')['order'])
    .flatMap(({ group }) => tablesIn(group))
    .map(({ id, version, optional }) => `${String(id)}@${String(version)}${optional === true ? '?' : ''}`);
};

/** The Procfile counts with every buildpack, as in cf; without a Procfile its buildpack is skipped. */
const procfile = 'kf/procfile@1.0.0?';

test.each([
  [
    ['kf/procfile', 'kf/nodejs'],
    ['kf/procfile@1.0.0', 'kf/nodejs@1.0.0'],
  ],
  [['nodejs_buildpack'], ['kf/nodejs@1.0.0', procfile]],
  [['nodejs'], ['kf/nodejs@1.0.0', procfile]],
  [['paketo-buildpacks/nodejs'], ['kf/nodejs@1.0.0', procfile]],
  [['kf/nodejs@1.0.0'], ['kf/nodejs@1.0.0', procfile]],
  [['b/go'], ['b/go@3', procfile]],
  [['kf/nodejs@9'], ["The builder has no buildpack 'kf/nodejs@9'. It has: kf/nodejs, kf/procfile, a/go, b/go."]],
  [['go'], ["The builder has no buildpack 'go'. It has: kf/nodejs, kf/procfile, a/go, b/go."]],
  [['nodejs', 'cobol'], ["The builder has no buildpack 'cobol'. It has: kf/nodejs, kf/procfile, a/go, b/go."]],
  [['https://example.org/x.git'], ["The buildpack 'https://example.org/x.git' is a URL; builds take buildpacks from the builder only."]],
])('for the buildpacks %j the order is %j', (wanted, group) => expect(groupOf(wanted)).toEqual(group));
