import { describe, expect, test } from 'vitest';
import { gateKeeper, orphansOf } from '../../../src/controller/reconcilers/images.ts';
import { Readable } from 'node:stream';

const known = (space: string, app: string): boolean => space === 's-1' && app === 'known';

describe('repositories without an app', () => {
  test('are those whose app neither the cache nor the API server has', async () => {
    const asked: string[] = [];
    const orphans = await orphansOf(
      ['s-1/known-droplets', 's-1/late-packages', 's-1/gone-packages', 's-1/gone-droplets', 's-2/gone-cache'],
      known,
      async (space) => {
        asked.push(space);
        return Promise.resolve(space === 's-1' ? ['known', 'late'] : []);
      },
    );
    expect(orphans).toEqual(['s-1/gone-packages', 's-1/gone-droplets', 's-2/gone-cache']);
    expect(asked).toEqual(['s-1', 's-2']);
  });

  test('are none when the API server does not say which apps there are', async () => {
    const failing = (): Promise<string[]> => Promise.reject(new Error('the server could not find the requested resource'));
    await expect(orphansOf(['s-1/gone-packages'], known, failing)).rejects.toThrow('could not find');
  });

  test('stay where no app of kf can have made them', async () => {
    const none = (): Promise<string[]> => Promise.resolve([]);
    expect(
      await orphansOf(
        ['kf-setup/pull-test', 's-1/app', 's-1/app-other', 's-1/-packages', '../x-packages', 's-1/a/b-packages'],
        known,
        none,
      ),
    ).toEqual([]);
  });
});

test('an answer of the gate that is no list ends it', async () => {
  const send = async () => Promise.resolve({ status: 403, headers: {}, body: Readable.from([Buffer.from('{}')]) });
  const keeper = gateKeeper(send, Buffer.from('k'.repeat(32)), 1_800_000_000);
  await expect(keeper.list(AbortSignal.timeout(1_000))).rejects.toThrow("the registry's gate answers GET /kf/repositories with status 403");
});
