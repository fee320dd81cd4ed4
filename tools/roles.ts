// manifests/roles.yaml (role x resource x verbs) → ClusterRoles and docs/roles.md.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';

type Grant = string | { verbs: string; names: (string | string[])[] };
/** Several grants for one resource: rights on all objects, and rights on named ones. */
type Table = Record<string, Record<string, Grant | Grant[]>>;

interface RoleEntry {
  name: string;
  title: string;
  where: string;
  about: string;
  include?: string[];
  rules: Table;
}

interface OpenEntry {
  name: string;
  namespace: string;
  about: string;
  rules: Table;
}

/** One resource, separated from its row. */
interface Right {
  group: string;
  resource: string;
  verbs: string[];
  names: string[];
}

const rbac = 'rbac.authorization.k8s.io';
const verbOrder = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'bind'];

function rightsOf(rules: Table): Right[] {
  return Object.entries(rules).flatMap(([group, rows]) =>
    Object.entries(rows).flatMap(([resources, grants]) =>
      [grants].flat().flatMap((grant) => {
        const verbs = (typeof grant === 'string' ? grant : grant.verbs).split(' ');
        const names = typeof grant === 'string' ? [] : grant.names.flat();
        return resources.split(',').map((resource) => ({ group, resource: resource.trim(), verbs, names }));
      }),
    ),
  );
}

/** Merges rights for the same resource. Of named objects, each keeps exactly its own verbs; those with the same verbs share a right. */
function merged(rights: Right[]): Right[] {
  const single = rights.flatMap((right): Right[] =>
    right.names.length === 0 ? [right] : right.names.map((name) => ({ ...right, names: [name] })),
  );
  const byObject = Map.groupBy(single, ({ group, resource, names }) => JSON.stringify([group, resource, names]));
  const united = [...byObject.values()].map(([first, ...rest]): Right => {
    const { group = '', resource = '', names = [] } = first ?? {};
    const all = new Set([first, ...rest].flatMap((right) => right?.verbs ?? []));
    return { group, resource, names, verbs: verbOrder.filter((verb) => all.has(verb)) };
  });
  const named = (right: Right): string =>
    JSON.stringify([right.group, right.resource, right.names.length > 0, right.names.length > 0 && right.verbs]);
  return [...Map.groupBy(united, named).values()].flatMap(([first, ...rest]) =>
    first === undefined ? [] : [{ ...first, names: [first, ...rest].flatMap(({ names }) => names) }],
  );
}

function allRights(role: RoleEntry, roles: RoleEntry[]): Right[] {
  const included = (role.include ?? []).flatMap((name) => {
    const found = roles.find((other) => other.name === name);
    if (found === undefined) throw new Error(`roles.yaml: ${role.name} includes ${name}, which is not there`);
    return allRights(found, roles);
  });
  return merged([...included, ...rightsOf(role.rules)]);
}

/** Resources of one group with the same verbs and names share a rule. */
function policyRules(rights: Right[]): object[] {
  const rules = new Map<string, { apiGroups: string[]; resources: string[]; resourceNames?: string[]; verbs: string[] }>();
  for (const { group, resource, verbs, names } of rights) {
    const key = JSON.stringify([group, verbs, names]);
    const rule = rules.get(key) ?? { apiGroups: [group], resources: [], ...(names.length > 0 ? { resourceNames: names } : {}), verbs };
    rule.resources.push(resource);
    rules.set(key, rule);
  }
  return [...rules.values()];
}

function openObjects(entry: OpenEntry): object[] {
  const metadata = { name: entry.name, namespace: entry.namespace };
  return [
    { apiVersion: `${rbac}/v1`, kind: 'Role', metadata, rules: policyRules(merged(rightsOf(entry.rules))) },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: rbac, kind: 'Role', name: entry.name },
      subjects: [{ apiGroup: rbac, kind: 'Group', name: 'system:authenticated' }],
    },
  ];
}

const rowOf = ({ group, resource, verbs, names }: Right): string => {
  const limit = names.length > 0 ? `only ${names.map((name) => `\`${name}\``).join(', ')}` : '';
  return `| ${group === '' ? 'core' : group} | ${resource} | ${verbs.join(' ')} | ${limit} |`;
};

function section(title: string, lead: string, rights: Right[]): string {
  return [
    `## ${title}`,
    '',
    lead,
    '',
    '| API group | resource | verbs | limited to |',
    '| --- | --- | --- | --- |',
    ...rights.map(rowOf),
    '',
  ].join('\n');
}

const introduction = [
  'Managers of an org give and take roles with `kf set-org-role`, `kf set-space-role` and their counterparts; `kf org-users` and `kf space-users` list them. The controller makes every member of an org a user of the installation, and takes that away with the last role in an org.\n\nA role is a RoleBinding to its ClusterRole, so kubectl can give it as well. A user of a space needs two: as a user of the org and of the space. For a developer `alice`:',
  '',
  '```',
  'kubectl create rolebinding alice -n ORG --clusterrole korifi-controllers-organization-user --user alice',
  'kubectl create rolebinding alice -n SPACE --clusterrole korifi-controllers-space-developer --user alice',
  '```',
  '',
  '`ORG` and `SPACE` are the GUIDs that `kf orgs --json` and `kf spaces --json` print. `--user` is the name that `kubectl auth whoami` prints for that user; for groups, use `--group`, and bind `korifi-controllers-root-namespace-user` in the namespace `cf` too.',
  'The binding of an OrgManager also needs an annotation, so that the controller copies it into the spaces of the org: `kubectl annotate rolebinding alice -n ORG cloudfoundry.org/propagate-cf-role=true`.',
  '',
  'No role allows listing or watching Secrets; they can only be read one by one, by name.',
  '',
];

function document(roles: RoleEntry[], open: OpenEntry[]): string {
  return [
    '<!-- Generated by `node tools/generate.ts` from manifests/roles.yaml; edit there. -->',
    '# Roles and rights',
    '',
    ...introduction,
    ...roles.map((role) =>
      section(role.title, `ClusterRole \`${role.name}\`; bound in: ${role.where}. ${role.about}`, allRights(role, roles)),
    ),
    ...open.map((entry) =>
      section(
        `Everybody: ${entry.name}`,
        `Role in namespace \`${entry.namespace}\`, for all authenticated users. ${entry.about}`,
        merged(rightsOf(entry.rules)),
      ),
    ),
  ].join('\n');
}

/** The generated files, by name. */
export async function roleFiles(root: string): Promise<{ file: string; text: string }[]> {
  const { roles, open } = parse(await readFile(join(root, 'manifests/roles.yaml'), 'utf8')) as { roles: RoleEntry[]; open: OpenEntry[] };
  const objects = [
    ...roles.map((role) => ({
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: role.name },
      rules: policyRules(allRights(role, roles)),
    })),
    ...open.flatMap(openObjects),
  ];
  const header = '# Generated by `node tools/generate.ts` from manifests/roles.yaml; edit there.\n';
  const text = objects.map((object) => stringify(object, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false })).join('---\n');
  return [
    { file: 'manifests/roles.generated.yaml', text: header + text },
    { file: 'docs/roles.md', text: `${document(roles, open).trimEnd()}\n` },
  ];
}
