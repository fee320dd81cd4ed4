import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { sources } from '../../src/controller/sources.ts';
import { kinds } from '../../src/lib/api/group.ts';
import { cfRoles } from '../../src/lib/api/roles.ts';
import { buildRoleBinding } from '../../src/templates/tenancy.ts';
import { ask, installKinds, installRoles, kubectl, kubectlJson, makeNamespace } from './kubectl.ts';

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

type Grant = string | { verbs: string; names: (string | string[])[] };
interface Role {
  name: string;
  include?: string[];
  rules: Record<string, Record<string, Grant | Grant[]>>;
}

/** `group/resource verb` or `group/resource verb name`, sorted: two sets of rights are equal when these are. */
type Rights = string[];

const run = Date.now().toString(36);
const namespaceOf = (role: string): string => `roles-${run}-${role}`;
const table = parse(await readFile(join(import.meta.dirname, '../../manifests/roles.yaml'), 'utf8')) as { roles: Role[]; open: Role[] };
const people = table.roles.filter((role) => role.name.startsWith('korifi-'));
const short = (role: Role): string => role.name.replace('korifi-controllers-', '');

beforeAll(async () => {
  await installKinds();
  await installRoles();
  for (const role of people) {
    const ns = namespaceOf(short(role));
    await makeNamespace(ns);
    const binding = {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role.name },
      metadata: { name: 'role', namespace: ns },
    };
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: short(role) }];
    await kubectl(['create', '-f', '-'], {
      input: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', ...binding, subjects },
    });
  }
});

/** The promises of the table, written out; this shares no code with the generator. */
function promised(role: Role): Rights {
  const own = Object.entries(role.rules).flatMap(([group, rows]) =>
    Object.entries(rows).flatMap(([resources, grants]) =>
      resources.split(',').flatMap((resource) =>
        [grants].flat().flatMap((grant) => {
          const { verbs, names } =
            typeof grant === 'string' ? { verbs: grant, names: [''] } : { verbs: grant.verbs, names: grant.names.flat() };
          return verbs.split(' ').flatMap((verb) => names.map((name) => `${group}/${resource.trim()} ${verb} ${name}`.trim()));
        }),
      ),
    ),
  );
  const included = (role.include ?? []).flatMap((name) => promised(table.roles.find((other) => other.name === name) ?? role));
  return [...new Set([...own, ...included])].sort();
}

async function rulesOf(user: string, namespace: string): Promise<Rights> {
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } };
  const { status } = await kubectlJson<{ status: { resourceRules: Rule[] } }>(['create', '--validate=false', '-f', '-'], {
    input: review,
    as: user,
  });
  const all = status.resourceRules.flatMap(({ apiGroups, resources, verbs, resourceNames }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) => (resourceNames ?? ['']).map((name) => `${group}/${resource} ${verb} ${name}`.trim())),
      ),
    ),
  );
  return [...new Set(all)].sort();
}

describe('a role grants exactly what the table says', () => {
  test.each(people.map((role) => [short(role), role] as const))('%s', async (user, role) => {
    const nobody = new Set(await rulesOf('nobody', namespaceOf(user)));
    const granted = (await rulesOf(user, namespaceOf(user))).filter((right) => !nobody.has(right));
    expect(granted).toEqual(promised(role));
  });
});

/** Contract 6.3: verbs that clients of Korifi need. */
const contract: Record<string, Record<string, string>> = {
  'space-developer': {
    cfapps: 'get list watch create patch delete',
    cfprocesses: 'get list create patch',
    cfpackages: 'get list watch create patch',
    cfbuilds: 'get list create patch',
    cfroutes: 'get list create patch update delete',
    cftasks: 'get list watch create patch delete',
    cfserviceinstances: 'get list watch create patch delete',
    cfservicebindings: 'get list watch create patch delete',
    appworkloads: 'list',
    pods: 'list delete',
    'pods/log': 'get',
    'metrics.k8s.io/pods': 'get',
    secrets: 'get create patch',
    rolebindings: 'list',
  },
  admin: {
    cfapps: 'get list watch create patch delete',
    cfroutes: 'get list watch create patch update delete',
    'metrics.k8s.io/pods': 'get list watch',
    secrets: 'get create patch',
    rolebindings: 'create list delete',
    cforgs: 'get list watch create patch delete',
    cfspaces: 'get list watch create patch delete',
    cfdomains: 'get list create patch delete',
    cfservicebrokers: 'create get list delete patch',
    cfserviceofferings: 'list get patch delete',
    cfserviceplans: 'list get patch delete',
    builderinfos: 'get list watch',
    runnerinfos: 'get list watch',
    cfsecuritygroups: 'create',
  },
  'root-namespace-user': {
    cfdomains: 'get list',
    cforgs: 'get list watch',
    builderinfos: 'get list watch',
    runnerinfos: 'get list watch',
    cfserviceplans: 'get list',
    cfservicebrokers: 'list',
    // Not delete, as in Korifi: any user could delete a service of all others.
    cfserviceofferings: 'get list',
  },
  'organization-user': { cforgs: 'get list watch', cfspaces: 'get list', rolebindings: 'list' },
  'organization-manager': {
    cforgs: 'get list watch',
    builderinfos: 'get list watch',
    cfspaces: 'get list watch create',
    rolebindings: 'delete',
  },
  'space-manager': {
    cfapps: 'get list',
    cfpackages: 'get list',
    cfprocesses: 'get list',
    cfbuilds: 'get list',
    cfroutes: 'get list',
    cfserviceinstances: 'get list',
    cfservicebindings: 'get list',
    cftasks: 'get list',
    rolebindings: 'delete',
  },
  'space-auditor': { cfapps: 'get list' },
};

test.each(Object.entries(contract))("%s keeps every right of Korifi's role", (name, wanted) => {
  const role = people.find((each) => short(each) === name);
  const rights = new Set(role === undefined ? [] : promised(role));
  const groups = ['korifi.cloudfoundry.org', '', 'rbac.authorization.k8s.io'];
  const lacking = Object.entries(wanted).flatMap(([resource, verbs]) =>
    verbs
      .split(' ')
      .filter((verb) => {
        const candidates = resource.startsWith('metrics') ? [`${resource} ${verb}`] : groups.map((group) => `${group}/${resource} ${verb}`);
        return !candidates.some((right) => rights.has(right));
      })
      .map((verb) => `${verb} ${resource}`),
  );
  expect(lacking).toEqual([]);
});

test('no role can list or watch secrets, not even the controller', () => {
  for (const role of table.roles) {
    const rights = promised(role);
    expect(rights, role.name).not.toContain('/secrets list');
    expect(rights, role.name).not.toContain('/secrets watch');
  }
});

describe('granting roles', () => {
  const give = async (giver: string, role: keyof typeof cfRoles): Promise<string> => {
    const input = buildRoleBinding({ role: cfRoles[role], subject: { user: 'new' }, namespace: namespaceOf(giver), guid: 'g' });
    const { code, stderr } = await ask(['create', '--dry-run=server', '-f', '-'], { input, as: giver });
    return code === 0 ? 'given' : stderr;
  };

  test('is allowed to managers and admins, for the roles below their own', async () => {
    expect(await give('space-manager', 'spaceDeveloper')).toBe('given');
    expect(await give('organization-manager', 'spaceDeveloper')).toBe('given');
    expect(await give('organization-manager', 'organizationManager')).toBe('given');
    expect(await give('admin', 'admin')).toBe('given');
  });

  const refused = /rolebindings.*forbidden|not have.*bind|forbidden.*attempting to grant/s;

  test('is refused for any other role', async () => {
    expect(await give('space-manager', 'organizationManager')).toMatch(refused);
    expect(await give('organization-manager', 'admin')).toMatch(refused);
    expect(await give('space-developer', 'spaceDeveloper')).toMatch(refused);
    expect(await give('space-auditor', 'spaceAuditor')).toMatch(refused);
  });
});

interface Question {
  verb: string;
  resource: string;
  group?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

/** The questions that the API server answers with yes. No discovery: the kind need not exist. */
async function allowed(user: string, questions: Question[]): Promise<Question[]> {
  const input = questions.map((resourceAttributes) => ({
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
  }));
  const text = await kubectl(['create', '--validate=false', '-f', '-', '-o', 'jsonpath={.status.allowed}{"\\n"}'], { input, as: user });
  const answers = text.trim().split('\n');
  return questions.filter((_, index) => answers[index] === 'true');
}

describe('every authenticated user', () => {
  test('may read kf-info and nothing else in its namespace', async () => {
    const read = { verb: 'get', resource: 'configmaps', namespace: 'cf', name: 'kf-info' };
    const more = [
      { ...read, name: 'other' },
      { ...read, verb: 'patch' },
      { verb: 'list', resource: 'configmaps', namespace: 'cf' },
    ];
    expect(await allowed('somebody', [read, ...more])).toEqual([read]);
  });

  test("may reach the registry's push port through the API server, and no other service", async () => {
    const proxy = (verb: string, name: string) => ({ verb, resource: 'services', subresource: 'proxy', namespace: 'kf-system', name });
    const pushPort = ['get', 'create', 'update', 'patch'].map((verb) => proxy(verb, 'http:kf-registry:5000'));
    const others = [
      proxy('delete', 'http:kf-registry:5000'),
      proxy('get', 'http:kf-registry-pull:5001'),
      proxy('get', 'http:kf-controller:8080'),
    ];
    expect(await allowed('somebody', [...pushPort, ...others])).toEqual(pushPort);
  });
});

describe('the controller', () => {
  const account = 'system:serviceaccount:kf-system:kf-controller';

  beforeAll(async () => {
    const subjects = [{ kind: 'ServiceAccount', name: 'kf-controller', namespace: 'kf-system' }];
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'kf-controller' };
    const binding = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name: 'kf-controller' } };
    await kubectl(['apply', '--server-side', '-f', '-'], { input: { ...binding, roleRef, subjects } });
  });

  test('may list and watch everything that its informers follow', async () => {
    // Only policies read feature flags.
    const own = Object.values(kinds).filter(({ kind }) => kind !== kinds.featureFlag.kind);
    const followed = [...sources('cf'), ...own.map((type) => ({ type, ns: undefined, fieldSelector: undefined }))];
    const questions = followed.flatMap(({ type, ns = '', fieldSelector }) => {
      const name = fieldSelector === undefined ? {} : { name: fieldSelector.replace('metadata.name=', '') };
      return ['list', 'watch'].map((verb) => ({ verb, group: type.group, resource: type.plural, namespace: ns, ...name }));
    });
    expect(await allowed(account, questions)).toEqual(questions);
  });

  test('may not access Secrets or workloads where its role is not bound', async () => {
    const kept = [
      ['', 'secrets'],
      ['', 'pods'],
      ['', 'services'],
      ['', 'configmaps'],
      ['apps', 'statefulsets'],
      ['batch', 'jobs'],
      ['coordination.k8s.io', 'leases'],
    ] as const;
    const questions = kept.flatMap(([group, resource]) =>
      ['get', 'create', 'patch', 'delete'].map((verb) => ({ verb, group, resource, namespace: namespaceOf('admin'), name: 'x' })),
    );
    expect(await allowed(account, questions)).toEqual([]);
  });
});
