import { describe, expect, it, test } from 'vitest';
import { annotations } from '../../../src/lib/api/group.ts';
import { isUnstaged, neededPackages, packageMark, packagesOf, packageToBuild, unstagedMark } from '../../../src/lib/api/packages.ts';
import type { CFApp, CFPackage } from '../../../src/lib/api/types.generated.ts';

const app = (marks: Record<string, string> = {}): CFApp =>
  ({ metadata: { name: 'shop', annotations: marks }, spec: { displayName: 'shop' } }) as unknown as CFApp;
const source = (name: string, second: number, of = 'shop', image = 'image'): CFPackage => ({
  metadata: { name, creationTimestamp: `2026-01-01T00:00:${String(second).padStart(2, '0')}Z` },
  spec: { type: 'bits', appRef: { name: of }, source: { registry: { image } } },
});
const built = (marks: Record<string, string>, packages: CFPackage[]): string | undefined =>
  packageToBuild(app(marks), packagesOf(app(), packages))?.metadata.name;
const [a, b, c] = [source('a', 1), source('b', 2), source('c', 3)];

test('packages of an app are those with source, newest first, in a stable order if two are of the same second', () => {
  const others = [source('other', 9, 'blog'), source('empty', 9, 'shop', '')];
  expect(packagesOf(app(), [a, c, ...others, b, source('d', 3)]).map(({ metadata }) => metadata.name)).toEqual(['d', 'c', 'b', 'a']);
});

describe('the package that is built next', () => {
  it('is the newest by default', () => {
    expect(built({}, [a, b])).toBe('b');
    expect(built({}, [])).toBeUndefined();
  });

  it('is the one that was pushed again, until there is a newer one', () => {
    const mark = { [annotations.package]: packageMark('a', [b, a]) ?? '' };
    expect(built(mark, [a, b])).toBe('a');
    expect(built(mark, [a, b, c])).toBe('c');
    expect(packageMark('b', [b, a])).toBeNull();
  });

  it('is the newest even if an older one waits for its start, as after a later push whose build failed', () => {
    const mark = { [annotations.unstaged]: unstagedMark('a', app()) };
    expect(built(mark, [a, b, c])).toBe('c');
    const again = { ...mark, [annotations.package]: packageMark('a', [b, a]) ?? '' };
    expect([built(again, [a, b]), built(again, [a, b, c])]).toEqual(['a', 'c']);
  });

  it('counts as waiting for its start until the app has another droplet', () => {
    const running = (droplet: string, mark = ''): CFApp => {
      const { metadata, spec } = app({ [annotations.unstaged]: mark });
      return { metadata, spec: { ...spec, currentDropletRef: { name: droplet } } };
    };
    const mark = unstagedMark('a', running('before'));
    expect([running('before', mark), running('after', mark), running('before')].map(isUnstaged)).toEqual([true, false, false]);
  });

  it.each(['x', '/', 'a/b/c', 'other/c', '../c', '/c'])('is the newest when the annotation says %j', (text) => {
    expect(built({ [annotations.package]: text, [annotations.unstaged]: text }, [a, b, c, source('other', 9, 'blog')])).toBe('c');
  });
});

test('an app needs the package that waits for its start and the one that was pushed again', () => {
  expect(neededPackages(app({ [annotations.unstaged]: 'b/d', [annotations.package]: 'a/c' }))).toEqual(['b', 'a']);
  expect(neededPackages(app())).toEqual([]);
});
