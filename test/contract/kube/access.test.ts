import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAccess, assertAccess } from '../../../src/lib/kube/access.ts';
import { connect } from '../../../src/lib/kube/client.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { ScriptedApiServer } from '../../support/apiserver.ts';

let server: ScriptedApiServer;
let cluster: Cluster;
const group = 'korifi.cloudfoundry.org';

beforeEach(async () => {
  server = await ScriptedApiServer.start();
  cluster = await connect({ kubeconfig: server.kubeconfig(), env: {} });
  server.on('POST .*/selfsubjectreviews', (call) => call.json({ status: { userInfo: { username: 'jane' } } }, 201));
  server.on('POST .*/selfsubjectaccessreviews', (call) => call.json({ status: { allowed: false } }, 201));
});

afterEach(async () => {
  cluster.close();
  await server.stop();
});

function rules(...resourceRules: object[]): void {
  server.on('POST .*/selfsubjectrulesreviews', (call) =>
    call.json({ metadata: {}, spec: {}, status: { resourceRules, incomplete: false } }, 201),
  );
}

describe('the preflight of rights', () => {
  test('one rules review answers all questions of a namespace', async () => {
    rules(
      { verbs: ['get', 'list'], apiGroups: [group], resources: ['cfapps'] },
      { verbs: ['*'], apiGroups: [''], resources: ['pods', 'pods/log'] },
    );
    const questions = [
      { verb: 'list', group, resource: 'cfapps', ns: 's' },
      { verb: 'get', resource: 'pods', subresource: 'log', ns: 's' },
    ];
    await assertAccess(cluster, questions);
    expect(server.calls.map(({ path }) => path.split('/').at(-1))).toEqual(['selfsubjectrulesreviews']);
  });

  test('rights that the rules do not list are checked one by one, because the rules can be incomplete', async () => {
    rules({ verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['mine'] });
    server.on('POST .*/selfsubjectaccessreviews', (call) => call.json({ status: { allowed: call.body.includes('"create"') } }, 201));
    const answers = await askAccess(cluster, [
      { verb: 'create', group, resource: 'cfapps', ns: 's' },
      { verb: 'get', resource: 'secrets', name: 'mine', ns: 's' },
      { verb: 'get', resource: 'secrets', name: 'other', ns: 's' },
    ]);
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false]);
    expect(server.callsOf('POST .*/selfsubjectaccessreviews')).toHaveLength(2);
  });

  test('names every missing right, the user and who can grant it', async () => {
    rules();
    const questions = [
      { verb: 'create', group, resource: 'cfapps', ns: 's' },
      { verb: 'get', resource: 'services', subresource: 'proxy', ns: 'kf-system' },
    ];
    await expect(assertAccess(cluster, questions)).rejects.toMatchObject({
      code: 'forbidden',
      message: `The user "jane" may not create "cfapps.${group}" in the namespace "s", may not get "services/proxy" in the namespace "kf-system".`,
      hints: [
        'A manager of the org or space, or an administrator of the cluster, must grant it.',
        `kubectl auth can-i create cfapps.${group} --namespace s --context test`,
      ],
    });
  });

  test('without a rules review each right is checked alone', async () => {
    server.on('POST .*/selfsubjectrulesreviews', (call) => call.fail(403, 'Forbidden', 'no'));
    server.on('POST .*/selfsubjectaccessreviews', (call) => call.json({ status: { allowed: true } }, 201));
    const questions = [
      { verb: 'get', resource: 'pods', ns: 's' },
      { verb: 'list', resource: 'pods', ns: 's' },
    ];
    await assertAccess(cluster, questions);
    expect(server.callsOf('POST .*/selfsubjectaccessreviews')).toHaveLength(2);
  });
});
