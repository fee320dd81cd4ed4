// What a message says of a credential that a registry has refused: never a token, and only what is known.

import { expect, test } from 'vitest';
import { describeCredential } from '../../../src/lib/oci/credentials.ts';

const hex = '0123456789abcdef'.repeat(2);

const dummies = ['', 'x', 'X', 'x-oauth-basic', '_', 'unused', 'nologin', 'anything'];
const prefixes = ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_', 'glpat-', 'dckr_pat_', 'dop_v1_', 'eyJhbGciOi.eyJ.'];
const tokens = [...prefixes.map((prefix) => `${prefix}a`), hex, ` ${Buffer.from(hex).toString('base64')}`];

test.each([
  ...dummies.map((password): [string, string] => ['anything', password]),
  ...tokens.map((token): [string, string] => [token, 'other']),
])('a user that may be a token, %j with the password %j, is not named', (username, password) => {
  expect(describeCredential({ username, password })).toBe('user and password');
});

test.each(['bob', "bo'b", 'oauth2accesstoken', '_json_key', 'AWS', '00000000-0000-0000-0000-000000000000', '<token>', 'push.space'])(
  'the user %j is named, without its password and its quotes',
  (username) => {
    expect(describeCredential({ username, password: 'falsch' })).toBe(`user '${username.replace("'", '?')}'`);
  },
);

test('a credential of a Secret is told by its Secret alone', () => {
  const from = "Secret 'own'";
  expect(describeCredential({ username: 'bob', password: 'falsch', from })).toBe("user and password of Secret 'own'");
  expect(describeCredential({ identityToken: 'geheim', from })).toBe("an identity token of Secret 'own'");
});
