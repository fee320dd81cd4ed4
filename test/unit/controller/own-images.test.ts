import { describe, expect, test } from 'vitest';
import { foreignImageProblem } from '../../../src/controller/registry/own-images.ts';

const gate = {
  namespace: 'kf-system',
  service: 'kf-registry',
  port: 5000,
  pushHost: 'kf-registry.kf-system.svc:5000',
  pullPrefix: 'localhost:32500/',
};
const outside = { ...gate, pushHost: 'registry.example', pullPrefix: 'registry.example/team/kf/' };
const hub = { ...gate, pushHost: 'docker.io', pullPrefix: 'docker.io/team/' };
const digest = `@sha256:${'a'.repeat(64)}`;

describe('images of the in-cluster registry', () => {
  test.each([
    'localhost:32500',
    'LOCALHOST:32500',
    'LocalHost:32500',
    '127.0.0.1:32500',
    '127.1:32500',
    '0x7f.0.0.1:32500',
    '2130706433:32500',
    '127.0.0.2:32500',
    '0.0.0.0:32500',
    '[::1]:32500',
    '10.99.1.2:32500',
    'registry.localhost:32500',
    'kf-registry.kf-system.svc:5000',
    'KF-Registry.KF-System.svc:5000',
    'kf-registry.kf-system.svc.cluster.local:5000',
    'kf-registry.kf-system:5000',
    'kf-registry:5000',
    'kf-registry-pull.kf-system.svc:5001',
  ])('%s is this registry: another space is refused, the own one is not', (host) => {
    for (const rest of [
      `foreign/app-droplets${digest}`,
      'foreign/app-droplets:1',
      'foreign/app-droplets',
      `foreign/a:1${digest}`,
      'mine-too/app',
    ])
      expect(foreignImageProblem(gate, 'mine', `${host}/${rest}`)).toContain(`'${host}/${rest}' lies in the registry of this installation`);
    expect(foreignImageProblem(gate, 'mine', `${host}/mine/app-droplets${digest}`)).toBeUndefined();
  });

  test.each([
    'nginx',
    'localhost:5000/foreign/app',
    'ghcr.io/foreign/app',
    'registry.example:32500/foreign/app',
    'kf-registry.elsewhere.svc:5000/foreign/app',
    'kf-registry.kf-system.example.com/foreign/app',
    '10.244.0.1:5000/kf/sample:1',
  ])('%s is another registry', (image) => {
    expect(foreignImageProblem(gate, 'mine', image)).toBeUndefined();
  });

  test.each([
    `sha256:${'a'.repeat(64)}`,
    `SHA256:${'A'.repeat(64)}`,
    ` sha512:${'a'.repeat(128)}`,
    'sha256:0ab',
    'sha256:0',
    'sha384:0ab',
    `sha256:0ab@sha256:${'a'.repeat(64)}`,
    `sha256@sha256:${'a'.repeat(64)}`,
  ])('an ID, or its beginning (%s), is refused, because a runtime would use a cached image', (image) => {
    expect(foreignImageProblem(gate, 'mine', image)).toContain('names an image by its ID');
  });
});

describe('images of an outside registry', () => {
  test.each(['registry.example', 'REGISTRY.example', 'registry.example:443'])(
    '%s: below the prefix only those of the space itself are allowed',
    (host) => {
      expect(foreignImageProblem(outside, 'mine', `${host}/team/kf/foreign/app-droplets${digest}`)).toBeDefined();
      expect(foreignImageProblem(outside, 'mine', `${host}/team/kf/mine/app-droplets${digest}`)).toBeUndefined();
      expect(foreignImageProblem(outside, 'mine', `${host}/team/other`)).toBeUndefined();
    },
  );

  test('another port is another registry', () => {
    expect(foreignImageProblem(outside, 'mine', 'registry.example:5000/team/kf/foreign/app')).toBeUndefined();
  });

  test.each([
    'team/foreign/app',
    'docker.io/team/foreign/app',
    'index.docker.io/team/foreign/app',
    'registry-1.docker.io/team/foreign/app',
  ])('Docker Hub has several names: %s', (image) => {
    expect(foreignImageProblem(hub, 'mine', image)).toBeDefined();
  });
});
