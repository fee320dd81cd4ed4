// The commands about domains of one org, as an operator types them.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { sha224 } from '../../../src/lib/api/names.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const name = 'team.example.com';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
  await cluster.add(kinds.org, {
    metadata: { name: 'other-guid', namespace: 'cf', labels: { [labels.orgName]: sha224('other-org') } },
    spec: { displayName: 'other-org' },
  });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

const addDomain = (spec: object = {}) =>
  cluster.add(kinds.domain, { metadata: { name: 'd-guid', namespace: 'cf' }, spec: { name, org: 'org-guid', ...spec } });
const domain = () => cluster.memory.all(kinds.domain).find(({ spec }) => spec.name === name);
const domainsOf = async (org: string): Promise<string> => (await cli.run(['domains', '--org', org])).stdout;
const v3 = async (path: string): Promise<unknown> => JSON.parse((await cli.run(['curl', path])).stdout);

/** Acts as the controller: the new domain is ready. */
function answerDomains(): void {
  cluster.memory.intercept = (verb, seen) => {
    if (verb !== 'watch' || seen.plural !== kinds.domain.plural) return;
    setTimeout(() => {
      const { name: guid = '', generation: observedGeneration = 1 } = cluster.memory.all(kinds.domain).at(-1)?.metadata ?? {};
      const at = '2026-08-07T10:16:20Z';
      const ready = { type: 'Ready', status: 'True', reason: 'Ready', message: '', observedGeneration, lastTransitionTime: at };
      void cluster.memory.mergePatch(kinds.domain, 'cf', guid, { status: { conditions: [ready] } }, { subresource: 'status' });
    }, 20);
  };
}

describe('create-private-domain', () => {
  it('makes a domain that belongs to the org, which only the org sees', async () => {
    answerDomains();
    const run = await cli.run(['create-private-domain', 'example-org', 'Team.Example.com']);
    expect(run).toMatchObject({ code: 0 });
    expect(run.stdout).toBe(
      [
        'Creating private domain Team.Example.com for org example-org as alice...',
        'OK',
        '',
        "TIP: Domain 'team.example.com' is a private domain. Run 'kf share-private-domain' to share this domain with a different org.",
        '',
      ].join('\n'),
    );
    expect(domain()).toMatchObject({
      metadata: { namespace: 'cf', ownerReferences: [{ kind: 'CFOrg', name: 'org-guid' }] },
      spec: { org: 'org-guid' },
    });
    expect(await domainsOf('example-org')).toMatch(/^team\.example\.com +private +http$/m);
    expect(await domainsOf('other-org')).not.toContain(name);
  });

  it('refuses an unknown org, and a name that overlaps with another domain', async () => {
    expect((await cli.run(['create-private-domain', 'no-org', name])).stderr).toContain("Organization 'no-org' not found");
    const below = await cli.run(['create-private-domain', 'example-org', 'bank.apps.localhost']);
    expect(below.stderr).toContain("The domain 'bank.apps.localhost' overlaps with the domain 'apps.localhost', which was there first.");
    expect(domain()).toBeUndefined();
  });
});

describe('a private domain', () => {
  it('is not found by commands that target another org', async () => {
    await addDomain();
    const place = ['--org', 'other-org', '--space', 'example-space'];
    await cluster.add(kinds.space, {
      metadata: { name: 'theirs', namespace: 'other-guid', labels: { [labels.spaceName]: sha224('example-space') } },
      spec: { displayName: 'example-space' },
    });
    const run = await cli.run(['create-route', name, '-n', 'www', ...place]);
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining(`Domain '${name}' not found.`) as string });
  });

  it('has its orgs in /v3/domains', async () => {
    await addDomain({ sharedWith: ['other-guid'] });
    expect(await v3('/v3/domains/d-guid')).toMatchObject({
      relationships: { organization: { data: { guid: 'org-guid' } }, shared_organizations: { data: [{ guid: 'other-guid' }] } },
    });
    expect(await v3('/v3/domains?organization_guids=org-guid')).toMatchObject({ resources: [{ name }] });
    expect(await v3('/v3/organizations/other-guid/domains')).toMatchObject({ pagination: { total_results: 2 } });
    await cluster.memory.mergePatch(kinds.domain, 'cf', 'd-guid', { spec: { sharedWith: [] } });
    expect(await v3('/v3/organizations/other-guid/domains')).toMatchObject({ pagination: { total_results: 1 } });
  });
});

describe('share-private-domain', () => {
  it('lets another org see and use the domain, and unshare-private-domain ends that', async () => {
    await addDomain();
    const shared = await cli.run(['share-private-domain', 'other-org', name]);
    expect(shared).toMatchObject({ code: 0, stdout: `Sharing domain ${name} with org other-org as alice...\nOK\n\n` });
    expect(domain()?.spec.sharedWith).toEqual(['other-guid']);
    expect(await domainsOf('other-org')).toMatch(/^team\.example\.com +private +http$/m);
    expect((await cli.run(['share-private-domain', 'other-org', name])).code).toBe(0);
    const kept = await cli.run(['unshare-private-domain', 'other-org', name], { stdin: 'n\n' });
    expect(kept.stdout).toContain(`Domain ${name} has not been unshared from organization other-org`);
    expect(domain()?.spec.sharedWith).toEqual(['other-guid']);
    const ended = await cli.run(['unshare-private-domain', 'other-org', name], { stdin: 'y\n' });
    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`Unsharing domain ${name} from org other-org as alice...\nOK`) as string,
    });
    expect(domain()?.spec.sharedWith).toEqual([]);
  });

  it('refuses a domain that all orgs share, one that does not exist, and the org of the domain', async () => {
    const all = await cli.run(['share-private-domain', 'other-org', 'apps.localhost']);
    expect(all.stderr).toContain("Domain 'apps.localhost' is a shared domain, not a private domain.");
    expect((await cli.run(['share-private-domain', 'other-org', name])).stderr).toContain(`Domain '${name}' not found.`);
    await addDomain();
    expect((await cli.run(['unshare-private-domain', 'example-org', name, '-f'])).stderr).toContain(
      `Domain '${name}' belongs to org 'example-org'.`,
    );
  });
});

describe('delete-private-domain', () => {
  it('asks, and deletes the domain with its routes', async () => {
    await addDomain();
    await cluster.add(kinds.route, {
      metadata: { name: 'www', namespace: 'space-guid', labels: { [labels.domainGuid]: 'd-guid' } },
      spec: { host: 'www', domainRef: { name: 'd-guid', namespace: 'cf' }, destinations: [] },
    });
    expect((await cli.run(['delete-private-domain', name], { stdin: 'n\n' })).stdout).toContain(`Domain '${name}' has not been deleted.`);
    expect(domain()).toBeDefined();
    const run = await cli.run(['delete-private-domain', name, '-f']);
    expect(run.stdout).toBe(
      [
        'Deleting the private domain will remove associated routes which will make apps with this domain unreachable.',
        `Deleting private domain ${name} as alice...`,
        'OK',
        '',
        "TIP: Run 'kf domains' to view available domains.",
        '',
      ].join('\n'),
    );
    expect([domain(), cluster.memory.all(kinds.route)]).toEqual([undefined, []]);
    expect(await cli.run(['delete-private-domain', name, '-f'])).toMatchObject({ code: 0, stderr: `Domain '${name}' does not exist.\n` });
  });

  it('takes no domain that all orgs share, and delete-shared-domain no private one', async () => {
    await addDomain();
    expect((await cli.run(['delete-private-domain', 'apps.localhost', '-f'])).stderr).toContain(
      'is a shared domain, not a private domain.',
    );
    expect((await cli.run(['delete-shared-domain', name, '-f'])).stderr).toContain('is a private domain, not a shared domain.');
    expect(cluster.memory.all(kinds.domain)).toHaveLength(2);
  });
});
