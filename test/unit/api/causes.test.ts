// The codes of causes, by what kubelets, container runtimes, registries and schedulers say.

import { describe, expect, test } from 'vitest';
import {
  causeOfBuild, causeOfCreation, causeOfExit, causeOfMount, causeOfPodEnd, causeOfPull, causeOfReason, causeOfRefusal, causeOfScheduling, causeOfTask,
  causeWithLines, isNamed, portIn, readCause, signalNote,
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
    expect(causeOfRefusal('Internal error occurred: failed calling webhook "p.example": failed to call webhook: EOF')).toBe('admission');
    expect(causeOfRefusal('Internal error occurred: the moon')).toBe('unknown');
    expect(causeOfScheduling('0/2 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint.')).toBe('no-room');
    expect(causeOfScheduling('0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.')).toBe('volume');
    expect(causeOfScheduling('Scheduling is blocked due to non-empty scheduling gates', 'SchedulingGated')).toBe('unknown');
    expect(causeOfScheduling('running PreFilter plugin "NodeResourcesFit": timeout', 'SchedulerError')).toBe('unknown');
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
    ['Tomcat started on port(s): 8081 (http)', 8081],
    [
      "2026-01-01T10:15:00.123Z  INFO 1 --- [main] o.s.b.w.e.tomcat.TomcatWebServer : Tomcat started on port 8081 (http) with context path '/'",
      8081,
    ],
    ['Netty started on port 8080', 8080],
    ['Example app listening on port 3000!', 3000],
    ['Server is running on port 3000.', 3000],
    ['Listening on 3000', 3000],
    ['{"level":30,"time":1767261600000,"pid":7,"hostname":"shop-0","msg":"Server listening at http://0.0.0.0:3000"}', 3000],
    ['[2026-01-01 10:15:00 +0000] [7] [INFO] Listening at: http://0.0.0.0:8000 (7)', 8000],
    ['INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)', 8000],
    ['* Listening on http://0.0.0.0:3000', 3000],
    ['* Listening on http://[::]:3000', 3000],
    ['2026/01/01 10:15:00 listening on :9090', 9090],
    ['{"time":"2026-01-01T10:15:00Z","level":"INFO","msg":"listening","addr":":9090"}', 9090],
    ['time=2026-01-01T10:15:00Z level=INFO msg="server started" port=9090', 9090],
    ['[GIN-debug] Listening and serving HTTP on :8081', 8081],
    ['⇨ http server started on [::]:1323', 1323],
    [' * Running on http://127.0.0.1:5000', 5000],
    [' * Running on http://10.42.0.7:5000', 5000],
    ['Starting development server at http://127.0.0.1:8000/', 8000],
    ['Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...', 8000],
    ['Serving HTTP on :: port 8000 (http://[::]:8000/) ...', 8000],
    ['      Now listening on: http://[::]:5000', 5000],
    ['Server listening on :::3000', 3000],
    ['Started ServerConnector@1b2c3d{HTTP/1.1, (http/1.1)}{0.0.0.0:8082}', 8082],
    ['[Thu Jan  1 10:15:00 2026] PHP 8.3.0 Development Server (http://0.0.0.0:8000) started', 8000],
    ['Server waiting for database at db:5432', undefined],
    ['Server waiting for localhost:5432', undefined],
    ['Server started at 10:15:00', undefined],
    ['Server started at 10:15', undefined],
    ['Server started on 2026-01-01 at 10:15:00', undefined],
    ['Server running, connected to redis at 10.0.0.7:6379', undefined],
    ['Server started, peers: 10.0.0.7:7946', undefined],
    ['Connecting to server running on localhost:5432', undefined],
    ['The search is running at search.internal:9200', undefined],
    ['Listening to http://events.example.com:8080/feed', undefined],
    ['running on 16 cores', undefined],
    ['Debugger listening on ws://127.0.0.1:9229/0f2c936f', undefined],
    ['Listening for transport dt_socket at address: 5005', undefined],
    ['metrics server listening on :9100', undefined],
    ['failed: port 3000 is not listening on 0.0.0.0:3000', undefined],
    ['Error: listen EADDRINUSE: address already in use :::3000', undefined],
    ['2026/01/01 10:15:00 [notice] 1#1: nginx/1.27.0 start worker processes', undefined],
    ['* Running on http://0.0.0.0:5000 (Press CTRL+C to quit)', 5000],
    ['admin server started on port 9000', undefined],
    ['Started worker up :1234', undefined],
    ['connected to db:5432', undefined],
    ['2026-01-01 10:00:00 started', undefined],
  ])('the port in "%s" is %s', (line, port) => {
    expect(portIn(['first', line])?.port).toBe(port);
  });

  test('is withdrawn by any line that names the expected one', () => {
    const lines = ['Listening on http://[::]:8080, using config x', 'web server started on port 9000'];
    expect(portIn(lines)?.port).toBe(9000);
    expect([isNamed(8080, lines), isNamed(7070, lines)]).toEqual([true, false]);
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
    ['Unschedulable', 'No node can run the build: 0/1 nodes are available: 1 Insufficient memory.', 'no-room'],
    ['Unschedulable', 'The build gets no node: Scheduling is blocked due to non-empty scheduling gates.', 'unknown'],
    ['StagingFailed', "The image 'example/root:1' runs as root, which is not allowed here.", 'image-user'],
    ['StagingFailed', "The image 'example/node:1' runs as the user 'node', and a name cannot be checked.", 'image-user'],
    ['StagingFailed', "The image 'example/own:1' runs as the user 60901, which only kf's own pods use.", 'image-user'],
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
    [
      'ImagePull',
      "The image x/a:1 cannot be pulled: 401 Unauthorized. The pod names Secret 'registry-certificate' for its pulls.",
      'image-unauthorized',
    ],
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
