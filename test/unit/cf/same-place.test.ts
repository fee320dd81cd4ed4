import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { inSamePlace } from '../../../src/lib/cf/same-place.ts';

const everywhere = { context: 'prod', org: 'my org', space: 'dev' };

describe('a hint that is a command', () => {
  test.each([
    ['kf logs shop --recent', "kf logs shop --recent --context prod --org 'my org' --space dev"],
    ['cf apps', "cf apps --context prod --org 'my org' --space dev"],
    ['kubectl kf why shop', "kubectl kf why shop --context prod --org 'my org' --space dev"],
    ['kf app shop --space other', "kf app shop --space other --context prod --org 'my org'"],
    ['kf push shop -s STACK', "kf push shop -s STACK --context prod --org 'my org' --space dev"],
    ['kf spaces', "kf spaces --context prod --org 'my org'"],
    ['kf orgs', 'kf orgs --context prod'],
    ['kf setup --context prod', 'kf setup --context prod'],
    ['kf target -o ORG -s SPACE', 'kf target -o ORG -s SPACE'],
    ['CF_STARTUP_TIMEOUT=10 cf start shop', "CF_STARTUP_TIMEOUT=10 cf start shop --context prod --org 'my org' --space dev"],
    ['Set it in the manifest, then: kf push shop', "Set it in the manifest, then: kf push shop --context prod --org 'my org' --space dev"],
    ['Or a larger quota: kf org-quota q', 'Or a larger quota: kf org-quota q --context prod'],
  ])('such as %s acts in the same place', (hint, after) => {
    expect(inSamePlace(hint, everywhere)).toBe(after);
  });

  test('is unchanged without a place that was given, and so are sentences and programs of others', () => {
    expect(inSamePlace('kf why shop', {})).toBe('kf why shop');
    for (const text of [
      'kubectl get pods',
      'Or make room: kf scale shop -i NUMBER, or stop others.',
      'CF_STAGING_TIMEOUT=4 gives it 4 minutes.',
    ])
      expect(inSamePlace(text, everywhere)).toBe(text);
  });
});

const folder = new URL('../../../src/commands/', import.meta.url);
const commands = readdirSync(folder).map((file) => ({
  name: file.replace('.ts', ''),
  source: readFileSync(new URL(file, folder), 'utf8'),
}));

/** Commands that set the target, or have another meaning for one of the flags. */
const choosing = ['api', 'auth', 'copy-source', 'login', 'target'];

test.each([
  ['the context alone', /\.(clusterSession|inCluster)\(/, /\.(orgSession|inOrg|spaceSession|inSpace)\(/, 'kf NAME --context prod'],
  ['context and org', /\.(orgSession|inOrg)\(/, /\.(spaceSession|inSpace)\(/, "kf NAME --context prod --org 'my org'"],
  ['all of it', /\.(spaceSession|inSpace)\(/, /^\b$/, "kf NAME --context prod --org 'my org' --space dev"],
])('commands that look at %s are given that in hints', (_, needs, more, after) => {
  const ofThat = commands.filter(({ name, source }) => needs.test(source) && !more.test(source) && !choosing.includes(name));
  expect(ofThat.length).toBeGreaterThan(15);
  expect(ofThat.map(({ name }) => inSamePlace(`kf ${name}`, everywhere))).toEqual(ofThat.map(({ name }) => after.replace('NAME', name)));
});
