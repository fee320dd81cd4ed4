// The order in which the objects of an app are listed.

import { expect, test } from 'vitest';
import { vcapApplicationOf } from '../../../src/controller/apps/vcap.ts';
import { bindingsOf, notReadyText } from '../../../src/controller/relations.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp, CFServiceBinding } from '../../../src/lib/api/types.generated.ts';
import { emptyStores } from './stores.ts';

const metadata = (name: string, resourceVersion: string, second = 0) => ({
  name,
  namespace: 's-1',
  uid: name,
  resourceVersion,
  creationTimestamp: `2030-01-01T00:00:0${String(second)}Z`,
});
const app = { metadata: metadata('a-1', '1'), spec: { displayName: 'shop' } } as Stored<CFApp>;

test('bindings are listed by age, and those of one second by name, whichever changed last', () => {
  const stores = emptyStores();
  const bind = (name: string, version: string, second?: number) =>
    stores.put(kinds.serviceBinding, { metadata: metadata(name, version, second), spec: { type: 'app', appRef: { name: 'a-1' } } });
  const listed = () => bindingsOf(stores, app).map((binding) => binding.metadata.name);
  bind('b-2', '1');
  bind('b-1', '2');
  bind('b-0', '3', 1);
  expect(listed()).toEqual(['b-1', 'b-2', 'b-0']);
  bind('b-1', '4');
  expect(listed()).toEqual(['b-1', 'b-2', 'b-0']);
});

test.each([
  ['', undefined, "The app's binding to service instance 'db' is not ready."],
  ['main', 'The Secret is missing.', "The app's binding 'main' to service instance 'db' is not ready: The Secret is missing."],
])(
  'a binding that is not ready is named by its service instance, and by its own name if it has one: "%s"',
  (displayName, why, expected) => {
    const stores = emptyStores();
    stores.put(kinds.serviceInstance, { metadata: metadata('i-1', '1'), spec: { displayName: 'db' } });
    const conditions = why === undefined ? [] : [{ type: 'Ready', status: 'False', message: why }];
    const binding = { metadata: metadata('b-1', '1'), spec: { displayName, service: { name: 'i-1' } }, status: { conditions } };
    expect(notReadyText(stores, binding as unknown as Stored<CFServiceBinding>)).toBe(expected);
  },
);

test("an app's addresses are listed by the age of their routes, and those of one second by name, whichever changed last", () => {
  const stores = emptyStores();
  const map = (name: string, version: string, second?: number) =>
    stores.put(kinds.route, {
      metadata: metadata(name, version, second),
      spec: { domainRef: { name: 'd-1', namespace: 'cf' }, destinations: [{ appRef: { name: 'a-1' } }] },
      status: { uri: `${name}.example.com` },
    });
  const processDefaults = { memoryMB: 256, diskQuotaMB: 1024 };
  const context = { stores, memory: new Memory(), info: () => ({ root: 'cf', processDefaults }) } as unknown as Context;
  const listed = () => vcapApplicationOf(context, app)['uris'];
  map('r-2', '1');
  map('r-1', '2');
  map('r-0', '3', 1);
  expect(listed()).toEqual(['r-1.example.com', 'r-2.example.com', 'r-0.example.com']);
  map('r-1', '4');
  expect(listed()).toEqual(['r-1.example.com', 'r-2.example.com', 'r-0.example.com']);
});
