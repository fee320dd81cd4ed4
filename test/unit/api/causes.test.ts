// The codes of causes, by what kubelets, container runtimes, registries and schedulers say.

import { describe, expect, test } from 'vitest';
import {
  causeOfBuild, causeOfCreation, causeOfExit, causeOfMount, causeOfPodEnd, causeOfPull, causeOfReason, causeOfRefusal, causeOfScheduling, causeOfTask,
  causeWithLines, portIn, readCause, signalNote,
} from '../../../src/lib/api/causes.ts'; // prettier-ignore

describe('an image that cannot be pulled', () => {
  const failed = (image: string, rest: string): string => `ErrImagePull failed to pull and unpack image "${image}": ${rest}`;
  test.each([
    ['image-not-found', failed('registry.example/app:2', 'failed to resolve reference "registry.example/app:2": registry.example/app:2: not found')],
    ['image-not-found', 'InvalidImageName Failed to apply default image tag "Registry.Example/APP": couldn\'t parse image name: invalid reference format'],
    ['image-unauthorized', failed('registry.example/app:2', 'failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://auth.example/token: 401 Unauthorized')],
    ['image-unauthorized', failed('docker.io/library/none:1', 'pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed')],
    ['registry-unreachable', failed('localhost:1/kf/none:1', 'failed to do request: Head "https://localhost:1/v2/kf/none/manifests/1": dial tcp [::1]:1: connect: connection refused')],
    ['registry-unreachable', failed('nowhere.example/app:1', 'failed to do request: Head "https://nowhere.example/v2/": dial tcp: lookup nowhere.example on 10.0.0.2:53: no such host')],
    ['registry-unreachable', failed('registry.example/app:1', 'failed to do request: Head "https://registry.example/v2/": dial tcp 192.0.2.1:443: i/o timeout')],
    ['registry-unreachable', failed('registry.example/app:1', 'unexpected status from HEAD request to https://registry.example/v2/app/manifests/1: 503 Service Unavailable')],
    ['registry-certificate', failed('registry.example/app:1', 'failed to do request: Head "https://registry.example/v2/": tls: failed to verify certificate: x509: certificate signed by unknown authority')],
    ['registry-certificate', failed('127.0.0.1:5000/app:1', 'failed to do request: Head "https://127.0.0.1:5000/v2/": http: server gave HTTP response to HTTPS client')],
    ['wrong-architecture', failed('registry.example/app:1', 'no match for platform in manifest sha256:0: not found')],
    ['wrong-architecture', "The image 'app' 1 does not exist for linux/amd64; it exists for linux/s390x."],
    ['disk', failed('registry.example/app:1', 'failed to extract layer: write /var/lib/x: no space left on device')],
    ['unknown', failed('registry.example/app:1', 'the moon is in the wrong house')],
  ])('%s', (code, message) => {
    expect(causeOfPull(message)).toBe(code);
  }); // prettier-ignore

  test('is not judged by words in its own name', () => {
    const image = 'registry.example/forbidden/x509-denied:404';
    expect(causeOfPull(`ErrImagePull ${image}: the moon is in the wrong house`, image)).toBe('unknown');
    expect(causeOfPull(`failed to resolve reference "${image}": ${image}: not found`, image)).toBe('image-not-found');
  });
});

describe('a container that cannot be started', () => {
  const runc =
    'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: ';
  test.each([
    ['image-user', 'container has runAsNonRoot and image will run as root (pod: "a_b(c)", container: application)'],
    ['image-user', 'container has runAsNonRoot and image has non-numeric user (node), cannot verify user is non-root'],
    ['secret-missing', 'secret "app-env" not found'],
    ['command-not-found', `${runc}exec: "nope": executable file not found in $PATH`],
    ['command-not-found', `${runc}exec: "/app/start": stat /app/start: no such file or directory`],
    ['wrong-architecture', `${runc}exec /app: exec format error`],
    ['unknown', `${runc}the moon is in the wrong house`],
  ])('%s', (code, message) => {
    expect(causeOfCreation(message)).toBe(code);
  });
});

describe('an instance that is not made, or not placed', () => {
  test('quota, admission, no room, volume', () => {
    expect(causeOfRefusal('pods "a-0" is forbidden: exceeded quota: failures, requested: limits.memory=512Mi')).toBe('quota');
    expect(
      causeOfRefusal("Error from Kubernetes: this would exceed the quota 'kf-limits' of the space (count/services: 6 of 6 used)."),
    ).toBe('quota');
    expect(causeOfRefusal('pods "a-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true')).toBe('admission');
    expect(causeOfRefusal('admission webhook "policy.example" denied the request: no')).toBe('admission');
    expect(causeOfRefusal('Internal error occurred: the moon')).toBe('unknown');
    expect(causeOfScheduling('0/2 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint.')).toBe('no-room');
    expect(causeOfScheduling('0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.')).toBe('volume');
    expect(causeOfMount('MountVolume.SetUp failed for volume "env" : secret "app-env" not found')).toBe('secret-missing');
    expect(causeOfMount('MountVolume.SetUp failed for volume "data" : mount failed: exit status 32')).toBe('volume');
  });

  test('a pod that its kubelet ended', () => {
    expect(causeOfPodEnd('Evicted', 'Pod ephemeral local storage usage exceeds the total limit of containers 64Mi. ')).toBe('disk');
    expect(causeOfPodEnd('Evicted', 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi.')).toBe('evicted');
    expect(causeOfPodEnd('NodeShutdown', 'Pod was rejected as the node is shutting down.')).toBe('node-lost');
    expect(causeOfPodEnd('OutOfmemory', "Pod was rejected: Node didn't have enough resource: memory")).toBe('no-room');
    expect(causeOfPodEnd('Preempting')).toBe('unknown');
    expect(causeOfPodEnd(undefined)).toBe('unknown');
  });
});

describe('a program that ends', () => {
  test('by itself or by a signal, which is named', () => {
    expect([1, 126, 127, 128, 134, 137, 139, 143, 255].map(causeOfExit)).toEqual([
      'exit-code', 'exit-code', 'exit-code', 'exit-code', 'signal', 'signal', 'signal', 'signal', 'exit-code',
    ]); // prettier-ignore
    expect([3, 139, 162].map(signalNote)).toEqual(['', ' (signal 11, SIGSEGV)', ' (signal 34)']);
  });

  test('because its command is missing only if its shell says so', () => {
    expect(causeWithLines('exit-code', 127, ['sh: 1: nope: not found'])).toBe('command-not-found');
    expect(causeWithLines('exit-code', 126, ['/bin/sh: ./start: Permission denied'])).toBe('command-not-found');
    expect(causeWithLines('exit-code', 127, ['that is how I end'])).toBe('exit-code');
    expect(causeWithLines('exit-code', 1, ['Error: user not found'])).toBe('exit-code');
    expect(causeWithLines('exit-code', 1, ['exec /app: exec format error'])).toBe('wrong-architecture');
    expect(causeWithLines('oom', 137, ['sh: nope: not found'])).toBe('oom');
  });

  test.each([
    ['Listening on port 3000', 3000],
    ['Server running at http://127.0.0.1:4000/', 4000],
    ['Tomcat started on port(s): 8081 (http)', undefined],
    ['* Running on http://0.0.0.0:5000 (Press CTRL+C to quit)', 5000],
    ['connected to db:5432', undefined],
    ['2026-01-01 10:00:00 started', undefined],
  ])('the port in "%s" is %s', (line, port) => {
    expect(portIn(['first', line])?.port).toBe(port);
  });
});

describe('a build, a task, and what keeps an app from starting', () => {
  test.each([
    ['NoBuildpackMatched', 'No buildpack recognised the source; tried: kf/nodejs.', 'no-buildpack'],
    ['BuildFailed', 'The build failed with exit code 1: npm error.', 'build-failed'],
    ['OutOfMemory', 'The build ran out of memory in its build container (limit 1024 MB).', 'build-oom'],
    ['BuildTimeout', 'The build took longer than 15 minutes.', 'build-timeout'],
    [
      'BuildFailed',
      "The build's pod was ended (Evicted): Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.",
      'disk',
    ],
    ['Unknown', 'pods "b" is forbidden: exceeded quota: failures', 'quota'],
    ['StagingFailed', "The image 'example/root:1' runs as root, which is not allowed here.", 'image-user'],
    ['StagingFailed', "The image 'example/node:1' runs as the user 'node', and a name cannot be checked.", 'image-user'],
    ['StagingFailed', "The image 'example/denied:1' does not exist.", 'image-not-found'],
    [
      'StagingFailed',
      "The image reference 'Upper Case' is not valid: 'Upper Case' is not a repository name (lower case letters, digits, '.', '_', '-', '/').",
      'image-not-found',
    ],
    ['StagingFailed', "The image reference 'forbidden:a b' is not valid: 'a b' is not a tag.", 'image-not-found'],
    ['SomethingElse', 'The moon.', 'unknown'],
  ])('build: %s, %s', (reason, message, code) => {
    expect(causeOfBuild(reason, message)).toBe(code);
  });

  test.each([
    ['Error', 'Failed with exit code: 7', 'exit-code'],
    ['Error', 'Failed with exit code: 139', 'signal'],
    ['OOMKilled', 'Failed with exit code: 137', 'oom'],
    ['TaskCanceled', 'The task was cancelled.', 'cancelled'],
    ['ImagePull', 'The image localhost:1/a:1 cannot be pulled: dial tcp: connect: connection refused', 'registry-unreachable'],
    ['CreateContainer', 'The container cannot be created: container has runAsNonRoot and image will run as root', 'image-user'],
    ['JobDeleted', 'The Job of the task was deleted.', 'unknown'],
  ])('task: %s, %s', (reason, message, code) => {
    expect(causeOfTask(reason, message)).toBe(code);
  });

  test('reasons of a change that cannot begin', () => {
    expect(['BindingNotReady', 'EnvironmentLost', 'EnvironmentTooLarge', 'DuplicateName', 'Whatever'].map(causeOfReason)).toEqual([
      'binding-not-ready', 'secret-missing', 'environment-too-large', 'name-taken', 'unknown',
    ]); // prettier-ignore
    expect(['QuotaExceeded', 'GenerationRefused'].map(causeOfReason)).toEqual(['quota', 'admission']);
  });

  test('a code of another version, or none, is unknown', () => {
    expect([readCause('oom'), readCause('constructor'), readCause(undefined)]).toEqual(['oom', 'unknown', 'unknown']);
  });
});
