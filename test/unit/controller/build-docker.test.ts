import { describe, expect, test } from 'vitest';
import {
  classifyDropletError,
  classifyReadError,
  pinned,
  unreadReference,
  userProblem,
} from '../../../src/controller/builds/docker-image.ts';
import { causeOfBuild } from '../../../src/lib/api/causes.ts';
import { KfError } from '../../../src/lib/errors.ts';
import { RegistryError } from '../../../src/lib/oci/errors.ts';

test.each(['', 'root', '0', '0:0', '000', 'root:root'])('an image of user %j is refused as root', (user) => {
  expect(userProblem('img', user)).toMatch(/^The image 'img' runs as root/);
});

test.each(['1000', '101:0', '65532:65532'])('an image of user %j may run', (user) => expect(userProblem('img', user)).toBeUndefined());

test('an image whose user is a name is refused with the reason', () => {
  expect(userProblem('img', 'node')).toBe(
    "The image 'img' runs as the user 'node', and a name cannot be checked to be other than root. Give the user as a number, e.g. 'USER 1000'.",
  );
});

test.each(['60901', '60901:1000', '060901'])("an image of user %j is refused, because it is the user of kf's own pods", (user) => {
  const problem = userProblem('img', user);
  expect(problem).toBe(
    "The image 'img' runs as the user 60901, which only kf's own pods use. Build it with another user, e.g. a line 'USER 1000' in its Dockerfile.",
  );
  expect(causeOfBuild('StagingFailed', problem ?? '')).toBe('image-user');
});

test.each([
  ['nginx', 'nginx@sha256:aa'],
  ['nginx:1.2', 'nginx@sha256:aa'],
  ['localhost:5000/a/b', 'localhost:5000/a/b@sha256:aa'],
  ['localhost:5000/a/b:1', 'localhost:5000/a/b@sha256:aa'],
  ['a/b:1@sha256:bb', 'a/b@sha256:aa'],
])('%s is pinned as %s', (image, expected) => expect(pinned(image, 'sha256:aa')).toBe(expected));

describe('an image that could not be read', () => {
  test.each([
    ['cafe', 'docker.io/library/cafe:latest'],
    ['0ab:1', 'docker.io/library/0ab:1'],
    ['team/cafe', 'team/cafe'],
    ['localhost:5000/a:1', 'localhost:5000/a:1'],
  ])('(%s) is reported as %s, which is not the beginning of an ID', (image, expected) => expect(unreadReference(image)).toBe(expected));

  const answer = (status: number) => new RegistryError('reading x', { status, entries: [], fromRegistry: true }, 'status');
  test.each([
    [answer(401), 'refused'],
    [answer(403), 'refused'],
    [answer(503), 'unreachable'],
    [new KfError('not-found', "The image 'x' does not exist."), 'refused'],
    [new KfError('upload', 'The image does not exist for linux/arm64; it exists for linux/amd64.'), 'refused'],
    [new KfError('upload', 'The registry cannot be reached: x.', { cause: new Error('ECONNREFUSED') }), 'unreachable'],
    [new Error('The operation was aborted due to timeout'), 'unreachable'],
  ])('%s is %s', (error, kind) => expect(classifyReadError('x', error).kind).toBe(kind));

  test.each([
    [401, true, ' Check the user (--docker-username) and the password (CF_DOCKER_PASSWORD).'],
    [403, true, ' Check the user (--docker-username) and the password (CF_DOCKER_PASSWORD).'],
    [401, false, ' If the registry asks for a user, push with --docker-username USER and set CF_DOCKER_PASSWORD.'],
    [404, true, ''],
  ])('with status %i, and with a credential: %s, the message ends with %j', (status, hasCredential, advice) => {
    const error = answer(status);
    const message = `The image 'x' cannot be read: ${error.message}${advice}`;
    expect(classifyReadError('x', error, hasCredential)).toEqual({ kind: 'refused', message });
  });

  test.each([
    [
      401,
      { sent: "user and password of Secret 'web-image-pull'" },
      " The registry does not know the credential that was sent: user and password of Secret 'web-image-pull'. Check the user (--docker-username) and the password (CF_DOCKER_PASSWORD).",
    ],
    [
      403,
      { sent: "user 'bob'" },
      " The credential that was sent may not do this in this repository: user 'bob'. Check the user (--docker-username) and the password (CF_DOCKER_PASSWORD).",
    ],
    [
      401,
      { none: "No credential is configured for 'r:5000'." },
      " No credential is configured for 'r:5000'. If the registry asks for a user, push with --docker-username USER and set CF_DOCKER_PASSWORD.",
    ],
    [
      401,
      { sent: "user 'bob'", hasToken: true as const },
      " The credential that was sent may not do this in this repository, or the repository does not exist: user 'bob'. Check the name of the image and the user (--docker-username).",
    ],
    [404, { sent: "user 'bob'" }, ''],
  ])('with status %i, the message says of the credential %j: %s', (status, credential, said) => {
    const error = new RegistryError('reading x', { status, entries: [], fromRegistry: true, credential }, `status ${status}`);
    // A Secret that has none for this registry is no credential.
    const { message } = classifyReadError('x', error, true);
    expect(message).toBe(`The image 'x' cannot be read: ${error.message}${said}`);
    if (status !== 404) expect(causeOfBuild('StagingFailed', message)).toBe('image-unauthorized');
  });

  test.each([401, 403])('with status %i, nobody is told to give a credential for an image that kf has built', (status) => {
    const error = answer(status);
    expect(classifyDropletError('x', error)).toEqual({ kind: 'refused', message: `The image 'x' cannot be read: ${error.message}` });
  });

  test('is reported in one line', () => {
    const error = new KfError('upload', 'The registry cannot be reached: write EPROTO wrong version number:\n  file.c:77:\n.', {
      cause: new Error('x'),
    });
    expect(classifyReadError('x', error).message).toBe('The registry cannot be reached: write EPROTO wrong version number: file.c:77:.');
  });
});
