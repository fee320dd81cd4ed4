import { expect, test } from 'vitest';
import { annotations, labels } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { AppWorkload, CFApp, CFProcess, GenerationStatus } from '../../../src/lib/api/types.generated.ts';
import { targetAfterCancellation } from '../../../src/controller/rollout/cancellation.ts';

const workload = (hash: string) =>
  ({ metadata: { name: hash, labels: { [labels.generation]: hash } }, spec: { image: hash } }) as unknown as Stored<AppWorkload>;
const served = (hash: string, state: GenerationStatus['state']) => ({ hash, state, served: true, instances: state === 'Old' ? 0 : 1 });
const app = { metadata: { annotations: { [annotations.deployId]: 'third' } } } as unknown as Stored<CFApp>;
const aimOf = (id: string, hashes: string[], droplet: string) => {
  const generations = hashes.map((hash, index) => served(hash, index === hashes.length - 1 ? 'Current' : 'Old'));
  const process = { status: { rollout: { id, generations } } } as unknown as Stored<CFProcess>;
  const aim = targetAfterCancellation(app, process, hashes.map(workload), { registry: { image: droplet } });
  return [aim?.workload.metadata.name, aim?.isUnknownBefore];
};

test.each(['second', 'third'])(
  'a process that serves by a version that the app never did returns to the one before, status about change %s',
  (id) => {
    expect(aimOf(id, ['one', 'two'], 'one')).toEqual(['one', false]);
  },
);

test('a process whose status is about the change before stays on a version that is that of the app, or has none before', () => {
  expect(aimOf('second', ['one', 'two'], 'two')).toEqual(['two', false]);
  expect(aimOf('second', ['two'], 'one')).toEqual(['two', false]);
});
