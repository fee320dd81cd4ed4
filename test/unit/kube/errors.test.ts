import { describe, expect, test } from 'vitest';
import {
  errorFromAnswer,
  isAlreadyExists,
  isConflict,
  isExpired,
  isForbidden,
  isMissingKind,
  isNotFound,
  isTerminating,
  unreachableError,
} from '../../../src/lib/kube/errors.ts';

const identity = { context: 'prod', server: 'https://k8s.example.com:6443', user: 'jane' };

function status(code: number, reason: string, message: string, details: object = {}): string {
  return JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', message, reason, details, code });
}

describe('an answer of the API server', () => {
  test('that refuses names the missing right, the user, the place, and who can grant it', () => {
    const text =
      'cfapps.korifi.cloudfoundry.org is forbidden: User "jane" cannot list resource "cfapps" in API group "korifi.cloudfoundry.org" in the namespace "space-1"';
    const error = errorFromAnswer(403, status(403, 'Forbidden', text), identity);
    expect(error.code).toBe('forbidden');
    expect(error.message).toBe(
      'Error from Kubernetes: the user "jane" may not list "cfapps.korifi.cloudfoundry.org" in the namespace "space-1".',
    );
    expect(error.hints).toContain('kubectl auth can-i list cfapps.korifi.cloudfoundry.org --namespace space-1 --context prod');
    expect(error.missingRight).toEqual({ user: 'jane', verb: 'list', resource: 'cfapps', group: 'korifi.cloudfoundry.org', ns: 'space-1' });
  });

  test('that refuses at cluster scope or for a subresource names that', () => {
    const text =
      'pods "x" is forbidden: User "system:serviceaccount:a:b" cannot get resource "pods/log" in API group "" at the cluster scope';
    const error = errorFromAnswer(403, status(403, 'Forbidden', text), identity);
    expect(error.message).toContain('may not get "pods/log" in the whole cluster');
    expect(error.hints.join(' ')).toContain('An administrator of the cluster');
  });

  test('about a used up quota has its own class', () => {
    const text = 'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5';
    expect(errorFromAnswer(403, status(403, 'Forbidden', text), identity)).toMatchObject({
      code: 'quota',
      message: "Error from Kubernetes: this would exceed the quota 'q' of the space (pods: 5 of 5 used, 1 more requested).",
    });
  });

  test('about a namespace that is being deleted is no missing right', () => {
    const text = 'cfbuilds "x" is forbidden: unable to create new content in namespace space-1 because it is being terminated';
    const causes = [{ reason: 'NamespaceTerminating', message: 'namespace space-1 is being terminated', field: 'metadata.namespace' }];
    const error = errorFromAnswer(403, status(403, 'Forbidden', text, { name: 'x', kind: 'cfbuilds', causes }), identity);
    expect(error).toMatchObject({ code: 'not-found', message: 'Error from Kubernetes: the namespace "space-1" is being deleted.' });
    expect([isTerminating(error), isForbidden(error), isNotFound(error)]).toEqual([true, true, false]);
  });

  test('about refused credentials names user and context', () => {
    const error = errorFromAnswer(401, status(401, 'Unauthorized', 'Unauthorized'), identity);
    expect(error.message).toContain('the credentials of the user "jane" (context "prod") are not accepted');
    expect(error.hints).toEqual(['kubectl auth whoami --context prod']);
  });

  test('distinguishes a missing object from a missing kind', () => {
    const object = errorFromAnswer(404, status(404, 'NotFound', 'pods "x" not found', { name: 'x', kind: 'pods' }), identity, '/api/v1/x');
    const kind = errorFromAnswer(404, '404 page not found\n', identity, '/apis/korifi.cloudfoundry.org/v1alpha1/cfapps?limit=500');
    expect([isNotFound(object), isMissingKind(object)]).toEqual([true, false]);
    expect([isNotFound(kind), isMissingKind(kind)]).toEqual([true, true]);
    expect(kind.message).toBe('Error from Kubernetes: this cluster does not know /apis/korifi.cloudfoundry.org/v1alpha1/cfapps.');
  });

  test('distinguishes the two meanings of 409, and 410 means expired', () => {
    const exists = errorFromAnswer(409, status(409, 'AlreadyExists', 'already exists'));
    const changed = errorFromAnswer(409, status(409, 'Conflict', 'the object has been modified'));
    expect([isAlreadyExists(exists), isConflict(exists)]).toEqual([true, false]);
    expect([isAlreadyExists(changed), isConflict(changed)]).toEqual([false, true]);
    expect(isExpired(errorFromAnswer(410, status(410, 'Expired', 'too old resource version')))).toBe(true);
  });

  test('whose body is not a Status is shown as it is', () => {
    expect(errorFromAnswer(500, 'upstream connect error').message).toBe('Error from Kubernetes: upstream connect error.');
    expect(errorFromAnswer(502, '').message).toBe('Error from Kubernetes: HTTP status 502.');
  });
});

describe('a missing answer', () => {
  test.each([
    ['ECONNREFUSED', 'nothing listens there'],
    ['ENOTFOUND', 'cannot be resolved'],
    ['CERT_HAS_EXPIRED', 'its certificate has expired'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'not signed by the authority of the kubeconfig'],
  ])('(%s) names server, context and what to try', (code, text) => {
    const error = unreachableError(Object.assign(new Error('x'), { code }), identity);
    expect(error.message).toContain('Kubernetes does not answer at https://k8s.example.com:6443 (context "prod")');
    expect(error.message).toContain(text);
    expect(error).toMatchObject({ code: 'unreachable', status: 0, reason: code });
    expect(error.hints[0]).toBe('kubectl cluster-info --context prod');
  });

  test('after several attempts shows the first error', () => {
    const both = new AggregateError([Object.assign(new Error('a'), { code: 'ECONNREFUSED' }), new Error('b')]);
    expect(unreachableError(both, identity).message).toContain('connection refused');
  });
});
