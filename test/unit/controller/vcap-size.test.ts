// VCAP_SERVICES of an app whose services have large credentials.

import { expect, test } from 'vitest';
import { ensureVcapSecrets } from '../../../src/controller/apps/vcap.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import type { CFApp, CFServiceBinding, CFServiceInstance } from '../../../src/lib/api/types.generated.ts';
import { asStored } from '../../support/stored.ts';

const app = asStored({ metadata: { name: 'a', namespace: 'ns' } } as CFApp);
const bindings = Array.from({ length: 60 }, (_, n) =>
  asStored({
    metadata: { name: `b-${String(n)}`, namespace: 'ns', uid: `b-${String(n)}` },
    spec: { service: { name: 'i' } },
    status: { envSecretRef: { name: 'large' } },
  } as unknown as CFServiceBinding),
);

test('is refused before more than one Secret of 600 KiB was read at a time, and before the second was parsed', async () => {
  const instances = new Store<CFServiceInstance>();
  instances.put(
    asStored({ metadata: { name: 'i', namespace: 'ns' }, spec: { displayName: 'i', type: 'user-provided' } } as CFServiceInstance),
  );
  const credentials = Buffer.from(JSON.stringify({ a: 'x'.repeat(600 * 1024) })).toString('base64');
  let [open, most, reads] = [0, 0, 0];
  const get = async (): Promise<unknown> => {
    reads += 1;
    open += 1;
    most = Math.max(most, open);
    await Promise.resolve();
    open -= 1;
    return { metadata: { name: 'large', namespace: 'ns' }, data: { credentials } };
  };
  const context = { cluster: { get }, stores: { of: () => instances }, memory: new Memory() } as unknown as Context;
  await expect(ensureVcapSecrets(context, app, bindings)).rejects.toThrow(
    "The credentials of the app's services have more than 768 KiB together.",
  );
  expect([most, reads]).toEqual([1, 2]);
});
