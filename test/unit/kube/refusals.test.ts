import { expect, test } from 'vitest';
import { errorFromAnswer } from '../../../src/lib/kube/errors.ts';
import { readRefusal } from '../../../src/lib/kube/refusals.ts';

test.each([
  [
    'a number beyond the schema',
    422,
    'CFProcess.korifi.cloudfoundry.org "1b" is invalid: spec.desiredInstances: Invalid value: 5000: spec.desiredInstances in body should be less than or equal to 1000',
    {
      kind: 'CFProcess',
      causes: [
        {
          field: 'spec.desiredInstances',
          message: 'Invalid value: 5000: spec.desiredInstances in body should be less than or equal to 1000',
        },
      ],
    },
    'the CFProcess is not valid: desiredInstances must be less than or equal to 1000 (it is 5000)',
  ],
  [
    'a name with other letters',
    422,
    'CFOrg.korifi.cloudfoundry.org "1b" is invalid: spec.displayName: Invalid value: "Ö": …',
    {
      kind: 'CFOrg',
      causes: [
        {
          field: 'spec.displayName',
          message: `Invalid value: "Ö": spec.displayName in body should match '^[[:alnum:][:punct:][:print:]]+$'`,
        },
      ],
    },
    'the CFOrg is not valid: displayName must consist of ASCII letters, digits, punctuation and blanks (it is "Ö")',
  ],
  [
    'a key that no Secret takes',
    422,
    'Secret "x-env" is invalid: data[A B]: Invalid value: "A B": a valid config key must consist of alphanumeric characters',
    {
      kind: 'Secret',
      causes: [{ field: 'data[A B]', message: 'Invalid value: "A B": a valid config key must consist of alphanumeric characters' }],
    },
    'the Secret is not valid: data[A B]: a valid config key must consist of alphanumeric characters (it is "A B")',
  ],
  [
    'a policy of kf, in its own words',
    422,
    "cfroutes.korifi.cloudfoundry.org \"x\" is forbidden: ValidatingAdmissionPolicy 'kf-routes' with binding 'kf-routes' denied request: A route for every host is an operator's.",
    {},
    "A route for every host is an operator's.",
  ],
  [
    "a policy of the cluster's owner",
    403,
    "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'b' denied request: tags only",
    {},
    "the policy 'no-latest' of the cluster does not allow it: tags only",
  ],
  [
    'a webhook',
    403,
    'admission webhook "guard.example.com" denied the request: label team is missing',
    {},
    "the webhook 'guard.example.com' of the cluster does not allow it: label team is missing",
  ],
  [
    'a quota of several things',
    403,
    'cfapps.korifi.cloudfoundry.org "x" is forbidden: exceeded quota: kf-limits, requested: count/cfapps.korifi.cloudfoundry.org=1, used: count/cfapps.korifi.cloudfoundry.org=100, limited: count/cfapps.korifi.cloudfoundry.org=100',
    {},
    "this would exceed the quota 'kf-limits' of the space (count/cfapps.korifi.cloudfoundry.org: 100 of 100 used, 1 more requested).",
  ],
])('%s reads as a sentence', (_, status, message, details, text) => {
  expect(readRefusal(status, message, details)?.text).toBe(text);
});

test('the message about a quota of kf says that the spaces of an org share it', () => {
  const refused = (quota: string): string[] =>
    readRefusal(403, `pods "x" is forbidden: exceeded quota: ${quota}, requested: pods=1, used: pods=1, limited: pods=1`)?.hints ?? [];
  expect(refused('kf-limits')[0]).toContain('The spaces of an org share its limits');
  expect(refused('other')[0]).toBe('Delete what is not needed, or ask an administrator of the cluster for more.');
});

test('other texts are not changed', () => {
  expect(readRefusal(403, 'User "jane" cannot list resource "pods"')).toBeUndefined();
  expect(readRefusal(500, 'exceeded quota: q, requested: a=1, used: a=1, limited: a=1')).toBeUndefined();
});

test('a quota that limits one instance speaks for itself', () => {
  const said = "The space quota 'small' allows instances of at most 128M of memory; asked: 256M";
  const body = {
    kind: 'Status',
    message: `cfprocesses.korifi.cloudfoundry.org "x" is forbidden: ValidatingAdmissionPolicy 'kf-instance-memory' with binding 'kf-instance-memory' denied request: ${said}`,
  };
  expect(errorFromAnswer(422, JSON.stringify(body))).toMatchObject({ code: 'quota', message: `${said}.`, hints: [] });
});
