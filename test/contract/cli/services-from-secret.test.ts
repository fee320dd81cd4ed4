// User-provided services whose credentials are in a Secret that a database operator or a secret store maintains.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  await addSecret('db-app');
});
afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const addSecret = (name: string, type = 'Opaque', labels: Record<string, string> = {}) =>
  cluster.memory.create(secretType, { metadata: { name, namespace: ns, labels }, type, data: { password: base64('s3cret') } });
const db = () => cluster.memory.all(kinds.serviceInstance).find(({ spec }) => spec.displayName === 'db');
const follows = (): unknown => [db()?.spec.secretName, db()?.metadata.annotations?.[annotations.fromSecret]];
const place = 'in org example-org / space example-space as alice...';
const note = "kf follows changes of the Secret. As with 'kf uups', running apps get new credentials when they are restarted.\n";

describe('cups --from-secret', () => {
  it('makes an instance that names the Secret, and writes no Secret', async () => {
    const run = await cli.run(['cups', 'db', '--from-secret', 'db-app', '-t', 'sql']);
    expect(run).toMatchObject({ code: 0, stdout: `Creating user provided service db ${place}\nOK\n\n`, stderr: note });
    expect(follows()).toEqual(['db-app', 'true']);
    expect(db()?.spec.tags).toEqual(['sql']);
    expect(cluster.memory.all(secretType).filter(({ metadata }) => metadata.name !== 'db-app' && metadata.namespace === ns)).toEqual([]);
    expect((await cli.run(['service', 'db'])).stdout).toContain('type:                user-provided\ncredentials:         Secret db-app\n');
    expect(JSON.parse((await cli.run(['service', 'db', '--json'])).stdout)).toMatchObject({ result: { fromSecret: 'db-app' } });
  });

  it('accepts a Secret that an operator has yet to make, and says so', async () => {
    const run = await cli.run(['cups', 'db', '--from-secret', 'later']);
    expect([run.code, follows()]).toEqual([0, ['later', 'true']]);
    expect(run.stderr).toContain(
      "Secret 'later' does not exist in namespace space-guid yet: service instance 'db' gets its credentials when it does.",
    );
    const ready = {
      type: 'Ready',
      status: 'False' as const,
      reason: 'CredentialsSecretNotAvailable',
      message: 'Not there.',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    await cluster.memory.mergePatch(
      ...([kinds.serviceInstance, ns, db()?.metadata.name ?? '', { status: { conditions: [ready] } }, { subresource: 'status' }] as const),
    );
    expect((await cli.run(['service', 'db'])).stdout).toContain('status:    create in progress\n   message:   Not there.\n');
  });

  it.each([
    [['--from-secret', 'kfs'], "The Secret 'kfs' is one of kf's own, and no service can have it.", 'kubectl get secret kfs -n space-guid'],
    [['--from-secret', 'token'], "has the type 'kubernetes.io/service-account-token'", 'kubectl get secret token'],
    [['--from-secret', 'db-app', '-p', '{}'], 'cannot be used together: -p, --from-secret', 'kf help create-user-provided-service'],
    [['--from-secret', 'Other/name'], "'Other/name' is no name of a Secret", 'kf help create-user-provided-service'],
    [['--from-secret', ''], "'' is no name of a Secret", 'kf help create-user-provided-service'],
    [['--from-secret'], 'expected argument for flag', 'kf help create-user-provided-service'],
  ])('%j is refused with %s, and nothing is written', async (flags, message, hint) => {
    await addSecret('kfs', 'Opaque', { 'kf.cloudfoundry.org/managed-by': 'kf' });
    await addSecret('token', 'kubernetes.io/service-account-token');
    const run = await cli.run(['cups', 'db', ...flags]);
    expect([run.code, db()]).toEqual([1, undefined]);
    expect(run.stderr).toContain(message);
    expect(run.stderr).toContain(hint);
  });

  it('without the right to read the Secret says whose right lacks', async () => {
    const message = 'secrets "db-app" is forbidden: User "alice" cannot get resource "secrets"';
    cluster.server.on('GET .*/secrets/db-app', (call) => call.fail(403, 'Forbidden', message));
    const run = await cli.run(['cups', 'db', '--from-secret', 'db-app']);
    expect([run.code, run.stderr, db()]).toEqual([1, expect.stringContaining('alice'), undefined]);
  });
});

describe('uups', () => {
  const secretOf = (name = ''): Record<string, string> | undefined => cluster.memory.peek(secretType, ns, name)?.data;

  it('--from-secret replaces credentials, and empties the Secret that kf wrote', async () => {
    await cli.run(['cups', 'db', '-p', '{"a":"b"}', '-t', 'sql']);
    const before = db()?.spec.secretName;
    const run = await cli.run(['uups', 'db', '--from-secret', 'db-app']);
    expect([run.code, run.stderr, follows()]).toEqual([0, note, ['db-app', 'true']]);
    expect(run.stdout).toContain("TIP: Use 'kf restage'");
    expect([db()?.spec.tags, secretOf(before) ?? {}]).toEqual([['sql'], {}]);
    expect(secretOf('db-app')).toEqual({ password: base64('s3cret') });
  });

  it('-p replaces the Secret of others without a change to it, and back', async () => {
    await cli.run(['cups', 'db', '--from-secret', 'db-app']);
    expect((await cli.run(['uups', 'db', '-p', '{"a":"b"}'])).code).toBe(0);
    const own = `${db()?.metadata.name ?? ''}-credentials`;
    expect(follows()).toEqual([own, undefined]);
    expect([secretOf(own), secretOf('db-app')]).toEqual([{ credentials: base64('{"a":"b"}') }, { password: base64('s3cret') }]);
    expect((await cli.run(['uups', 'db', '--from-secret', 'db-app'])).code).toBe(0);
    expect((await cli.run(['uups', 'db', '-p', '{"c":"d"}'])).code).toBe(0);
    expect([follows(), secretOf(own)]).toEqual([[own, undefined], { credentials: base64('{"c":"d"}') }]);
  });

  it('leaves the instance as it is if the Secret is missing', async () => {
    await cli.run(['cups', 'db', '--from-secret', 'db-app']);
    const run = await cli.run(['uups', 'db', '--from-secret', 'other']);
    expect([run.code, follows()]).toEqual([1, ['db-app', 'true']]);
    expect(run.stderr).toContain("Secret 'other' does not exist in space 'example-space' (namespace space-guid).");
    expect(run.stderr).toContain('kubectl get secret other -n space-guid');
  });
});
