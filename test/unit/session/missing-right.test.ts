// Missing rights in words of cf. The roles that are named have the right: they are compared with the roles of the installation.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { KfError } from '../../../src/lib/errors.ts';
import { describeRight } from '../../../src/lib/kube/errors.ts';
import { nameRights, orgRoleFor, spaceRoleFor } from '../../../src/lib/session/missing-right.ts';

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

const roles = parseAllDocuments(readFileSync('manifests/roles.generated.yaml', 'utf8')).map(
  (document) => document.toJS() as { metadata: { name: string }; rules: Rule[] },
);
const clusterRoles: Record<string, string> = {
  SpaceAuditor: 'space-auditor',
  SpaceDeveloper: 'space-developer',
  SpaceManager: 'space-manager',
  OrgAuditor: 'organization-auditor',
  OrgManager: 'organization-manager',
};
const rulesOf = (role: string): Rule[] =>
  roles.find(({ metadata }) => metadata.name === `korifi-controllers-${clusterRoles[role] ?? role}`)?.rules ?? [];
const rightsOf = (role: string): { verb: string; resource: string; group: string }[] =>
  rulesOf(role).flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => ({ verb, resource, group })))),
  );
const allowed = (role: string, verb: string, resource: string): boolean =>
  rightsOf(role).some((right) => right.verb === verb && right.resource === resource);

const place = { org: { name: 'o', guid: 'org-guid' }, space: { name: 'my space', guid: 'space-guid' }, root: 'cf', bin: 'cf' };

function told(right: { verb: string; resource: string; group: string; ns: string }): [string, string[]] {
  const [first, check] = ['A manager of the org or space, or an administrator of the cluster, must grant it.', 'kubectl auth can-i'];
  const options = { hints: [first, check], details: { missingRight: { user: 'alice', ...right } } };
  const error = new KfError('forbidden', `Error from Kubernetes: the user "alice" ${describeRight(right)}.`, options);
  nameRights(place, error);
  return [error.message, error.hints];
}

const group = 'korifi.cloudfoundry.org';

it.each([...new Set([...rightsOf('SpaceDeveloper'), ...rightsOf('SpaceManager')].map(({ verb, resource }) => `${verb} ${resource}`))])(
  'the role of a space that is named for %s has that right',
  (text) => {
    const [verb = '', resource = ''] = text.split(' ');
    // Without a word of cf the error stays as Kubernetes has it.
    if (told({ verb, resource, group, ns: 'space-guid' })[0].includes('namespace')) return;
    expect(allowed(spaceRoleFor({ verb, resource, group }), verb, resource)).toBe(true);
  },
);

it.each(['cforgs', 'cfspaces', 'cfquotas', 'rolebindings'])('the role of an org that is named for %s has the right', (resource) => {
  for (const { verb } of rightsOf('OrgManager').filter((right) => right.resource === resource))
    expect(allowed(orgRoleFor({ verb, resource, group }), verb, resource)).toBe(true);
});

it('names the space, the role and the command that gives it', () => {
  const manager = 'A manager of the org or space, or an administrator of the cluster, must grant it.';
  expect(told({ verb: 'patch', resource: 'cfapps', group, ns: 'space-guid' })).toEqual([
    `Error from Kubernetes: the user "alice" may not change apps in org 'o' / space 'my space'.`,
    [manager, "cf set-space-role alice o 'my space' SpaceDeveloper", 'kubectl auth can-i'],
  ]);
  expect(told({ verb: 'create', resource: 'pods/exec', group: '', ns: 'space-guid' })[0]).toContain('may not run commands in instances in');
  expect(told({ verb: 'create', resource: 'cfspaces', group, ns: 'org-guid' })).toEqual([
    `Error from Kubernetes: the user "alice" may not create spaces in org 'o'.`,
    [manager, 'cf set-org-role alice o OrgManager', 'kubectl auth can-i'],
  ]);
});

it('names an administrator for what no role of an org gives', () => {
  expect(told({ verb: 'create', resource: 'cforgs', group, ns: 'cf' })).toEqual([
    'Error from Kubernetes: the user "alice" may not create orgs.',
    ['An administrator of the cluster must grant it.', 'kubectl auth can-i'],
  ]);
});

it('leaves what cf has no word for, and other namespaces, as Kubernetes names them', () => {
  const proxy = { verb: 'create', resource: 'services/proxy', group: '', ns: 'kf-system' };
  expect(told(proxy)[0]).toBe(`Error from Kubernetes: the user "alice" ${describeRight(proxy)}.`);
});
