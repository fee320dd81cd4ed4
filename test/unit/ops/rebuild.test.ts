import { expect, test } from 'vitest';
import { adviceOn } from '../../../src/lib/api/advice.ts';
import type { Block } from '../../../src/lib/views/block.ts';
import { renderRebuild } from '../../../src/lib/views/rebuild.ts';

const lost = (app: string, state: string, message?: string) => ({
  ...{ app, org: 'acme', space: 'dev', image: `localhost:32500/s/${app}-droplets@sha256:1`, state },
  ...(message === undefined ? {} : { message }),
});
const texts = (blocks: Block[]): unknown[] =>
  blocks.map((block) => (block.type === 'table' ? block.rows : 'text' in block ? block.text : ''));

test('the output names each app whose droplet is lost, and what is left to do', () => {
  const all = [lost('shop', 'rebuilt'), lost('old', 'push'), lost('bad', 'failed', 'It broke.')];
  expect(texts(renderRebuild({ dryRun: false, intact: 1, lost: all, leftOut: [] }, 'cf'))).toEqual([
    [
      ['app', 'org/space', 'lost droplet', 'state'],
      ['shop', 'acme/dev', 'sha256:1', 'built again'],
      ['old', 'acme/dev', 'sha256:1', 'push it again: its source is lost too'],
      ['bad', 'acme/dev', 'sha256:1', 'failed: It broke.'],
    ],
    '',
    'The registry has the droplets of 1 app.',
    'Push those without a source from its folder: cf push APP',
  ]);
  expect(texts(renderRebuild({ dryRun: true, intact: 0, lost: [lost('shop', 'buildable')], leftOut: [] }, 'kf'))).toEqual([
    [
      ['app', 'org/space', 'lost droplet', 'state'],
      ['shop', 'acme/dev', 'sha256:1', 'can be built again'],
    ],
    '',
    'The registry has the droplets of 0 apps.',
    'Build them again: kf rebuild',
  ]);
  expect(texts(renderRebuild({ dryRun: true, intact: 2, lost: [], leftOut: [] }, 'kf'))).toEqual([
    'No droplet is lost.',
    'The registry has the droplets of 2 apps.',
  ]);
});

test('a missing droplet is built again, and a missing image of the user is replaced', () => {
  const about = { bin: 'kf', app: 'shop', ns: 's' };
  expect(adviceOn('image-not-found', { ...about, isBuilt: true })[0]).toBe('kf restage shop');
  expect(adviceOn('image-not-found', about)[0]).toBe('kf push shop -o IMAGE');
});

test('a refused password is one of the space for a droplet, and one that the user gives for an image of the user', () => {
  const about = { bin: 'kf', app: 'shop', ns: 's' };
  expect(adviceOn('image-unauthorized', { ...about, isBuilt: true })[0]).toBe('kubectl get secret image-registry-credentials -n s');
  expect(adviceOn('image-unauthorized', about)[0]).toBe('CF_DOCKER_PASSWORD=PASSWORD kf push shop -o IMAGE --docker-username USERNAME');
});
