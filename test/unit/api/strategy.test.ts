import { expect, test } from 'vitest';
import { annotations, labels } from '../../../src/lib/api/group.ts';
import { strategyOf, type Strategy } from '../../../src/lib/api/rollout.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';

const app = (more: { asked?: Strategy; own?: string; ofSpace?: string }): CFApp =>
  ({
    metadata: {
      annotations: { [annotations.deployId]: 'one' },
      labels: more.own === undefined ? {} : { [labels.strategy]: more.own },
    },
    spec: more.asked === undefined ? {} : { rollout: { id: 'one', strategy: more.asked } },
    status: more.ofSpace === undefined ? {} : { spaceStrategy: more.ofSpace },
  }) as unknown as CFApp;

test.each([
  [{}, 'rolling'],
  [{ ofSpace: 'recreate' }, 'recreate'],
  [{ ofSpace: 'recreate', own: 'rolling' }, 'rolling'],
  [{ ofSpace: 'recreate', own: 'rolling', asked: 'canary' as const }, 'canary'],
])('of an app with %j, a change has the strategy %s', (given, strategy) => {
  expect(strategyOf(app(given))).toBe(strategy);
});

test('the default of the space as it is now counts more than the one that the app was told', () => {
  const space = (strategy: string) => ({ metadata: { labels: { [labels.strategy]: strategy } } });
  expect([strategyOf(app({ ofSpace: 'recreate' }), { metadata: {} }), strategyOf(app({}), space('recreate'))]).toEqual([
    'rolling',
    'recreate',
  ]);
});
