import { expect, test } from 'vitest';
import { bytesOf } from '../../../src/lib/ops/registry/prune.ts';
import { renderPrune } from '../../../src/lib/views/prune.ts';

const blobs = (...digests: string[]) => ({ blobs: digests.map((digest) => ({ digest, bytes: 100 })) });

test('a blob counts once, and only if every repository that has it loses it', () => {
  const counts = new Map([
    ['own', 1],
    ['shared-with-one-that-stays', 2],
    ['shared', 2],
  ]);
  const candidates = [blobs('own', 'shared-with-one-that-stays', 'shared'), blobs('shared')];
  expect(bytesOf(candidates, counts)).toEqual([200, 0]);
});

test('the output names apps, deleted ones and what a push uses', () => {
  const app = { app: 'shop', org: 'acme', space: 'dev', deleted: false, images: 3, bytes: 2048 };
  const gone = { app: '5c9f', deleted: true, images: 0, bytes: 1024 };
  const view = { dryRun: true, apps: [app, gone], inUse: ['s/a-packages'], failed: [], bytes: 3072, room: { free: 1024, total: 4096 } };
  expect(renderPrune(view, 'cf')).toEqual([
    {
      type: 'table',
      header: true,
      rows: [
        ['app', 'org/space', 'images', 'frees'],
        ['shop', 'acme/dev', '3', '2K'],
        ['5c9f (deleted)', 'deleted space', 'all', '1K'],
      ],
    },
    { type: 'line', text: '' },
    { type: 'line', text: 'Would free 3K; 1K of 4K are free.' },
    { type: 'line', text: 'A push uses 1 repository now. Later: cf prune' },
  ]);
  const nothing = renderPrune({ ...view, dryRun: false, apps: [], inUse: ['a', 'b'], bytes: 0 }, 'kf');
  expect(nothing.map((block) => (block.type === 'line' ? block.text : ''))).toEqual([
    'Nothing is unused.',
    '',
    'Freed 0B; 1K of 4K are free.',
    'Pushes use 2 repositories now. Later: kf prune',
  ]);
});
