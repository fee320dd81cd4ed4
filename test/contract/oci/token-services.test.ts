// Token services are plain HTTP APIs, so nock simulates them. Connections that break are in registry.test.ts, on real sockets.

import nock from 'nock';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { challengeAuthenticator, type Authenticator } from '../../../src/lib/oci/auth.ts';
import type { RegistryCredential } from '../../../src/lib/oci/credentials.ts';
import { directConnection } from '../../../src/lib/oci/http.ts';

const scope = { repository: 'team/app', actions: 'pull,push' } as const;
const challenge = 'Bearer realm="https://auth.example.com/token",service="registry.example.com",scope="repository:team/app:pull"';
const asked = { service: 'registry.example.com', scope: 'repository:team/app:pull,push' };
const password = { username: 'alice', password: 'pa:ss' };
const service = 'https://auth.example.com';

beforeAll(() => nock.disableNetConnect());
afterEach(() => {
  expect(nock.pendingMocks()).toEqual([]);
  nock.cleanAll();
});
afterAll(() => {
  nock.enableNetConnect();
  nock.restore();
});

function authenticator(credential: RegistryCredential | undefined): Authenticator {
  const { sendUrl } = directConnection('registry.example.com');
  return challengeAuthenticator({ registry: 'registry.example.com', credentials: async () => credential, sendUrl });
}

const headersAfter = async (credential: RegistryCredential | undefined): Promise<Record<string, string>> => {
  const auth = authenticator(credential);
  expect(await auth.answer(challenge, scope)).toBe(true);
  return auth.headers(scope);
};

test('user and password get one token for the whole push', async () => {
  nock(service).get('/token').query(asked).basicAuth({ user: 'alice', pass: 'pa:ss' }).reply(200, { token: 'T1' });
  expect(await headersAfter(password)).toEqual({ Authorization: 'Bearer T1' });
});

test('no credential is requested without need', async () => {
  nock(service, { badheaders: ['authorization'] })
    .get('/token')
    .query(asked)
    .reply(200, { access_token: 'T2' });
  expect(await headersAfter(undefined)).toEqual({ Authorization: 'Bearer T2' });
});

test('an identity token is exchanged as in OAuth2', async () => {
  const form = { ...asked, grant_type: 'refresh_token', client_id: 'kf', refresh_token: 'R' };
  nock(service, { badheaders: ['authorization'] })
    .post('/token', form)
    .reply(200, { access_token: 'T3', expires_in: 60 });
  expect(await headersAfter({ identityToken: 'R' })).toEqual({ Authorization: 'Bearer T3' });
});

test('a token is used for its own scope only', async () => {
  nock(service).get('/token').query(asked).reply(200, { token: 'T4' });
  const auth = authenticator(password);
  await auth.answer(challenge, scope);
  expect(auth.headers({ repository: 'team/other', actions: 'pull' })).toEqual({});
});

test.each([
  [401, { errors: [{ code: 'UNAUTHORIZED', message: 'wrong password' }] }, 'wrong password'],
  [403, { errors: [{ code: 'DENIED', message: 'no access to team/app' }] }, 'no access to team/app'],
  [503, 'busy', '503'],
  [200, {}, "The token server 'auth.example.com' answered without a token."],
  [200, { token: '' }, 'without a token'],
  [200, '<html>Sign in</html>', 'without a token'],
])('an answer %i %j is reported', async (status, body, message) => {
  nock(service).get('/token').query(asked).reply(status, body);
  await expect(authenticator(password).answer(challenge, scope)).rejects.toThrow(message);
});
