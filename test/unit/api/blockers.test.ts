import { describe, expect, test } from 'vitest';
import { foreignFinalizers, heldBy, namespaceBlockers } from '../../../src/lib/api/blockers.ts';
import type { Namespace } from '../../../src/lib/api/core.ts';
import { asStored } from '../../support/stored.ts';

describe('the finalizers that keep an object', () => {
  const object = (...finalizers: string[]) => asStored({ metadata: { name: 'o', finalizers } });

  test('are those of others, not those of kf or those that Kubernetes removes itself', () => {
    const all = ['cfOrg.korifi.cloudfoundry.org', 'foregroundDeletion', 'batch.kubernetes.io/job-tracking', 'example.org/hold'];
    expect(foreignFinalizers(object(...all), ['cfOrg.korifi.cloudfoundry.org'])).toEqual(['example.org/hold']);
  });

  test('are reported with kind, name and finalizer', () => {
    expect(heldBy('CFOrg', object('example.org/a'))).toBe("CFOrg 'o' has the finalizer 'example.org/a'");
    expect(heldBy('CFOrg', object('example.org/a', 'b'))).toBe("CFOrg 'o' has the finalizers 'example.org/a', 'b'");
    expect(heldBy('CFOrg', object('foregroundDeletion'))).toBeUndefined();
  });
});

describe('the reason why a namespace is not gone', () => {
  const condition = (type: string, message: string, status: 'True' | 'False' = 'True') => ({ type, status, message });
  const content = condition(
    'NamespaceContentRemaining',
    'Some resources are remaining: configmaps. has 1 resource instances, widgets.example.org has 2 resource instances',
  );

  const namespace = (metadata: object, ...conditions: (typeof content)[]) =>
    asStored<Namespace>({ metadata: { name: 'n', ...metadata }, status: { conditions } });

  test('is its own finalizer, if it has one', () => {
    expect(namespaceBlockers(namespace({ finalizers: ['example.org/hold'] }))).toBe("Namespace 'n' has the finalizer 'example.org/hold'.");
  });

  test('is its content, in the API server’s words, with the command that shows it', () => {
    expect(namespaceBlockers(namespace({}, content))).toBe(`${content.message} See: kubectl get configmaps,widgets.example.org -n n`);
  });

  describe('that the API server calls a failure', () => {
    const items = (gvr: string) => `unexpected items still remain in namespace: n for gvr: ${gvr}`;
    const failure = (rest: string) =>
      condition('NamespaceDeletionContentFailure', `Failed to delete all resource types, 1 remaining: ${rest}`);
    const pods = failure(items('/v1, Resource=pods'));

    test('is what is still to go, if nothing else is said', () => {
      expect(namespaceBlockers(namespace({}, pods))).toBe('still to go: pods.');
      const two = failure(`[${items('/v1, Resource=pods')}, ${items('apps/v1, Resource=statefulsets')}]`);
      expect(namespaceBlockers(namespace({}, two))).toBe('still to go: pods, statefulsets.');
    });

    test('is told once, with the command that shows it', () => {
      const counted = condition('NamespaceContentRemaining', 'Some resources are remaining: pods. has 1 resource instances');
      expect(namespaceBlockers(namespace({}, pods, counted))).toBe('still to go: pods. See: kubectl get pods -n n');
      expect(namespaceBlockers(namespace({}, pods, content))).toContain(`still to go: pods. ${content.message} See: `);
    });

    test.each([
      ['the server is currently unable to handle the request'],
      [`[${items('/v1, Resource=pods')}, Internal error occurred: etcd is away]`],
    ])('stays as it is if it says anything else: %s', (rest) => {
      expect(namespaceBlockers(namespace({}, failure(rest)))).toBe(failure(rest).message);
    });
  });

  describe('and a finalizer of others', () => {
    const remaining = 'Some content in the namespace has finalizers remaining:';
    const finalizers = (...names: string[]) =>
      condition('NamespaceFinalizersRemaining', `${remaining} ${names.map((name) => `${name} in 1 resource instances`).join(', ')}`);
    const columns = '-o custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers';
    const patch = (kind: string) => `kubectl patch ${kind} NAME -n n --type=merge -p '{"metadata":{"finalizers":null}}'`;

    test('comes with the commands that find and remove it', () => {
      const secrets = condition('NamespaceContentRemaining', 'Some resources are remaining: secrets. has 1 resource instances');
      const held = finalizers('example.com/x', 'kubernetes.io/pvc-protection');
      expect(namespaceBlockers(namespace({}, secrets, held))).toBe(
        `${secrets.message} ${held.message} See: kubectl get secrets -n n ${columns} If nothing else removes a finalizer: ${patch('secrets')}`,
      );
    });

    test('may be on one of several kinds, also of those that are known', () => {
      const known = ["CFApp 'a' has the finalizer 'x'"];
      expect(namespaceBlockers(namespace({}, content, finalizers('x')), known)).toContain(
        ` See: kubectl get configmaps,widgets.example.org -n n ${columns} If nothing else removes a finalizer: ${patch('KIND')}`,
      );
    });

    test('is not one that Kubernetes removes itself', () => {
      const held = finalizers('kubernetes.io/pvc-protection', 'foregroundDeletion');
      expect(namespaceBlockers(namespace({}, content, held))).toBe(
        `${content.message} ${held.message} See: kubectl get configmaps,widgets.example.org -n n`,
      );
    });
  });

  test('names the objects if they are known', () => {
    const held = ["CFApp 'a' has the finalizer 'x'"];
    expect(namespaceBlockers(namespace({}, content), held)).toBe(`CFApp 'a' has the finalizer 'x'. ${content.message}`);
  });

  test('is that its contents are being removed, if nothing blocks them', () => {
    const fine = condition('NamespaceContentRemaining', 'All content successfully removed', 'False');
    expect(namespaceBlockers(namespace({}, fine))).toBe('its contents are being removed.');
  });
});
