import { describe, expect, test } from 'vitest';
import { referencesOf, type ReferringObjects } from '../../../src/lib/api/image-references.ts';

const none: ReferringObjects = { packages: [], builds: [], buildWorkloads: [], workloads: [], sets: [], tasks: [] };
const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;
const named = (spec: object, status: object = {}) => ({ metadata: { name: 'x' }, spec, status }) as never;
const own = (status?: object) => ({ metadata: { name: 'x', namespace: 's-1' }, spec: { appRef: { name: 'a' } }, status }) as never;
const source = (image: string) => ({ source: { registry: { image } } });
const keptOf = (objects: Partial<ReferringObjects>): Record<string, string[]> =>
  Object.fromEntries([...referencesOf('s-1', { ...none, ...objects })].map(([repository, kept]) => [repository, [...kept]]));

describe('the images that a space refers to', () => {
  test.each([
    ['a package', { packages: [named(source(`kf-registry.kf-system.svc:5000/s-1/a-packages@${digest('a')}`))] }, 'a-packages', digest('a')],
    [
      'a droplet',
      { builds: [named({}, { droplet: { registry: { image: `localhost:32500/s-1/a-droplets@${digest('b')}` } } })] },
      'a-droplets',
      digest('b'),
    ],
    ['a generation', { workloads: [named({ image: `localhost:32500/s-1/a-droplets@${digest('c')}` })] }, 'a-droplets', digest('c')],
    [
      'a set of instances',
      { sets: [named({ template: { spec: { containers: [{ image: `localhost:32500/s-1/a-droplets@${digest('d')}` }] } } })] },
      'a-droplets',
      digest('d'),
    ],
    ['a running task', { tasks: [named({ image: `localhost:32500/s-1/a-droplets@${digest('e')}` })] }, 'a-droplets', digest('e')],
    ['a running build', { buildWorkloads: [named(source(`r:5000/s-1/a-packages@${digest('f')}`))] }, 'a-packages', digest('f')],
    ['an image with a tag', { packages: [named(source('localhost:32500/s-1/a-droplets:v1'))] }, 'a-droplets', 'v1'],
    ['an image with both', { packages: [named(source(`localhost:32500/s-1/a-droplets:v1@${digest('a')}`))] }, 'a-droplets', digest('a')],
    ['an image with neither', { packages: [named(source('localhost:32500/s-1/a-droplets'))] }, 'a-droplets', 'latest'],
    ['a build that has no result yet', { builds: [own()] }, 'a-droplets', 'x'],
    ['a package that names no image yet', { packages: [own()] }, 'a-packages', 'x'],
  ])('include that of %s', (_, objects, name, kept) => {
    expect(keptOf(objects)).toEqual({ [`s-1/${name}`]: [kept] });
  });

  test('include none of another space', () => {
    expect(keptOf({ packages: [named(source(`localhost:32500/s-2/a-packages@${digest('a')}`))] })).toEqual({});
  });

  test.each([
    ['of a registry without the space in its path', { packages: [named(source('docker.io/library/nginx'))] }],
    [
      'of a task that has ended',
      { tasks: [named({ image: 'r/s-1/a-droplets:x' }, { conditions: [{ type: 'Succeeded', status: 'True' }] })] },
    ],
    [
      'of a build that has ended',
      { buildWorkloads: [named(source('r/s-1/a-packages:x'), { conditions: [{ type: 'Succeeded', status: 'False' }] })] },
    ],
    ['of a build that failed', { builds: [own({ state: 'FAILED' })] }],
    ['without a name', { packages: [named({})], builds: [named({})] }],
    ['that are no references', { packages: [named(source('../s-1/a-packages/../../x'))] }],
  ])('include none %s', (_, objects) => {
    expect(keptOf(objects)).toEqual({});
  });
});
