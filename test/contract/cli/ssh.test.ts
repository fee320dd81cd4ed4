// kf ssh, against an API server with real WebSockets that acts as the kubelet.

import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { spawn } from 'node:child_process';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import type { CFProcess } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;
/** Acts as the node for a connection. */
let serve: (socket: WebSocket, url: URL) => void;
/** The paths and queries of all upgrades. */
let upgrades: URL[];

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  upgrades = [];
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] ?? false });
  cluster.server.onUpgrade((request, duplex, head) => {
    const url = new URL(request.url ?? '', 'http://x');
    upgrades.push(url);
    sockets.handleUpgrade(request, duplex, head, (socket) => serve(socket, url));
  });
  serve = (socket) => end(socket, 0);
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const send = (socket: WebSocket, channel: number, data: string | Buffer): void =>
  socket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(data)]), () => undefined);

function end(socket: WebSocket, code: number): void {
  const failure = { status: 'Failure', reason: 'NonZeroExitCode', details: { causes: [{ reason: 'ExitCode', message: String(code) }] } };
  send(socket, 3, JSON.stringify(code === 0 ? { status: 'Success' } : failure));
  socket.close(1000);
}

interface AppOptions {
  type?: 'buildpack' | 'docker';
  desiredState?: 'STARTED' | 'STOPPED';
}

async function addApp({ type = 'buildpack', desiredState = 'STARTED' }: AppOptions = {}): Promise<void> {
  const spec = { displayName: 'shop', desiredState, lifecycle: { type, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'shop-guid', namespace: ns }, spec });
  const process = { appRef: { name: 'shop-guid' }, processType: 'web', desiredInstances: 2, healthCheck: { type: 'port', data: {} } };
  const metadata = { name: 'web-guid', namespace: ns, labels: { [labels.appGuid]: 'shop-guid' } };
  await cluster.add(kinds.process, { metadata, spec: process } as unknown as CFProcess);
}

async function addPod(
  name: string,
  { index = 0, process = 'web', ready = true, created = '2026-08-07T10:16:20Z', ports = [] as number[] } = {},
): Promise<void> {
  const own = { [labels.appGuid]: 'shop-guid', [labels.processType]: process, [labels.podIndex]: String(index) };
  const state = { running: { startedAt: created } };
  const status = { phase: 'Running', containerStatuses: [{ name: 'application', ready, restartCount: 0, state }] };
  const metadata = { name, namespace: ns, labels: own, creationTimestamp: created };
  await cluster.add(podType, {
    metadata,
    spec: { containers: [{ name: 'application', ports: ports.map((containerPort) => ({ containerPort })) }] },
    status,
  } as unknown as Pod);
}

const commandOf = (url: URL | undefined): string[] => url?.searchParams.getAll('command') ?? [];
const podOf = (url: URL | undefined): string => url?.pathname.split('/')[6] ?? '';

describe('ssh -c', () => {
  it('runs the command through the launcher, keeps its outputs apart and passes its exit code on', async () => {
    await addApp();
    await addPod('web-0');
    serve = (socket) => {
      send(socket, 1, 'out\n');
      send(socket, 2, 'err\n');
      end(socket, 7);
    };
    const run = await cli.run(['ssh', 'shop', '-c', 'ls', '-c', '$HOME', '-k']);
    expect(run).toMatchObject({ code: 7, stdout: 'out\n', stderr: 'err\n' });
    expect(commandOf(upgrades[0])).toEqual(['/cnb/lifecycle/launcher', 'ls $HOME\n']);
    expect(Object.fromEntries(upgrades[0]?.searchParams ?? [])).toMatchObject({ container: 'application', tty: 'false', stdin: 'true' });
  });

  it('prints nothing itself when the command fails silently', async () => {
    await addApp();
    await addPod('web-0');
    serve = (socket) => end(socket, 4);
    expect(await cli.run(['ssh', 'shop', '-c', 'exit 4'])).toMatchObject({ code: 4, stdout: '', stderr: '' });
  });

  it('of an app from an image runs it in a shell of the image', async () => {
    await addApp({ type: 'docker' });
    await addPod('web-0');
    expect((await cli.run(['ssh', 'shop', '--command', 'env'])).code).toBe(0);
    expect(commandOf(upgrades[0])).toEqual(['/bin/sh', '-c', 'env']);
  });

  it('gives it every byte of a pipe, and the end', async () => {
    await addApp();
    await addPod('web-0');
    let read = 0;
    serve = (socket) =>
      void socket.on('message', (message: Buffer) => {
        if (message[0] === 0) read += message.length - 1;
        if (message.length !== 2 || message[0] !== 255) return;
        send(socket, 1, `read ${read}`);
        end(socket, 0);
      });
    const run = await cli.run(['ssh', 'shop', '-c', 'cat'], { stdin: 'x'.repeat(1_000_000) });
    expect(run).toMatchObject({ code: 0, stdout: 'read 1000000', stderr: '' });
  });

  it('--json has the exit code and both outputs in one document', async () => {
    await addApp();
    await addPod('web-0');
    serve = (socket) => {
      send(socket, 1, 'out\n');
      send(socket, 2, 'err\n');
      end(socket, 3);
    };
    const run = await cli.run(['ssh', 'shop', '-c', 'x', '--json']);
    expect(run.code).toBe(3);
    expect(JSON.parse(run.stdout)).toMatchObject({ status: 3, result: { exitCode: 3, stdout: 'out\n', stderr: 'err\n' } });
  });

  it('ends with 130 on Ctrl-C', async () => {
    await addApp();
    await addPod('web-0');
    serve = (socket) => send(socket, 1, 'runs\n');
    const run = await cli.run(['ssh', 'shop', '-c', 'sleep 100'], { kill: { after: 'runs', signal: 'SIGINT' } });
    expect([run.code, run.stderr]).toEqual([130, 'Interrupted.\n\nTIP:\n   The command may go on in the instance.\n']);
  });

  it('whose connection is cut is a failure, and never an exit code', async () => {
    await addApp();
    await addPod('web-0');
    serve = (socket) => socket.terminate();
    const run = await cli.run(['ssh', 'shop', '-c', 'x', '--json']);
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([1, { error: { code: 'unreachable' } }]);
  });

  it('in an image without a shell says that', async () => {
    await addApp({ type: 'docker' });
    await addPod('web-0');
    const message = 'exec: "/bin/sh": stat /bin/sh: no such file or directory';
    serve = (socket) => {
      send(socket, 3, JSON.stringify({ status: 'Failure', reason: 'InternalError', code: 500, message }));
      socket.close(1000);
    };
    const run = await cli.run(['ssh', 'shop', '-c', 'x']);
    expect([run.code, run.stderr]).toEqual([1, "The image of app 'shop' has no shell, so no command can be run in it.\n"]);
  });
});

describe('ssh without a command', () => {
  it('reads a script from a pipe; without a terminal the shell has none', async () => {
    await addApp();
    await addPod('web-0');
    const run = await cli.run(['ssh', 'shop'], { env: { TERM: 'xterm' }, stdin: 'ls\n' });
    expect(run.code).toBe(0);
    expect(upgrades[0]?.searchParams.get('tty')).toBe('false');
    expect(commandOf(upgrades[0])).toEqual(['/cnb/lifecycle/launcher', 'command -v bash >/dev/null && exec bash; exec sh\n']);
  });

  it('--force-pseudo-tty gives it a terminal of our kind, and -t only if stdin is one', async () => {
    await addApp();
    await addPod('web-0');
    await cli.run(['ssh', 'shop', '--force-pseudo-tty'], { env: { TERM: 'xterm-256color' } });
    await cli.run(['ssh', 'shop', '-t', '-c', 'x']);
    await cli.run(['ssh', 'shop', '-T']);
    expect(upgrades.map(({ searchParams }) => searchParams.get('tty'))).toEqual(['true', 'false', 'false']);
    expect(commandOf(upgrades[0])[1]).toContain('export TERM=xterm-256color; ');
  });

  it('sends the end of its input to a terminal as Ctrl-D', async () => {
    await addApp();
    await addPod('web-0');
    let typed = '';
    serve = (socket) =>
      void socket.on('message', (message: Buffer) => {
        if (message[0] === 0) typed += message.subarray(1).toString();
        if (typed.endsWith('\u0004')) end(socket, 0);
      });
    expect((await cli.run(['ssh', 'shop', '--force-pseudo-tty'], { stdin: 'ls\n' })).code).toBe(0);
    expect(typed).toBe('ls\n\u0004');
  });
});

describe('the instance', () => {
  it('is that of --process and -i; during a rollout the one that serves', async () => {
    await addApp();
    await addPod('web-0');
    await addPod('web-1', { index: 1 });
    await addPod('web-1-new', { index: 1, ready: false, created: '2026-08-07T10:20:00Z' });
    await addPod('worker-0', { process: 'worker' });
    await cli.run(['ssh', 'shop', '-i', '1', '-c', 'x']);
    await cli.run(['ssh', 'shop', '--process', 'worker', '-c', 'x']);
    expect(upgrades.map(podOf)).toEqual(['web-1', 'worker-0']);
  });

  it.each([
    [['-i', '1'], 'Instance 1 of process web not running\n'],
    [['-i', '2'], 'Instance 2 of process web not found\n'],
    [['--process', 'other'], 'Process other not found\n'],
  ])('%j that does not run is an error', async (flags, message) => {
    await addApp();
    await addPod('web-0');
    const run = await cli.run(['ssh', 'shop', ...flags, '-c', 'x']);
    expect([run.code, run.stdout, upgrades]).toEqual([1, 'FAILED\n', []]);
    expect(run.stderr).toContain(message);
  });

  it('of a stopped app, of an unknown one, and without a target does not exist', async () => {
    await addApp({ desiredState: 'STOPPED' });
    expect((await cli.run(['ssh', 'shop'])).stderr).toContain("Application 'shop' is not in the STARTED state\n\nTIP:\n   kf start shop\n");
    expect((await cli.run(['ssh', 'shopp'])).stderr).toContain("App 'shopp' not found.");
    expect((await cli.run(['ssh', 'shop'], { env: { KF_SPACE: '' } })).stderr).toContain('No space targeted');
  });

  it('of a user without the right names the right', async () => {
    await addApp();
    await addPod('web-0');
    const message = `pods "web-0" is forbidden: User "alice" cannot create resource "pods/exec" in API group "" in the namespace "${ns}"`;
    const body = JSON.stringify({ kind: 'Status', status: 'Failure', reason: 'Forbidden', code: 403, message });
    cluster.server.onUpgrade((_request, socket) => {
      const head = `HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
      socket.end(head + body);
    });
    const run = await cli.run(['ssh', 'shop', '-c', 'x']);
    expect([run.code, run.stdout]).toEqual([1, 'FAILED\n']);
    expect(run.stderr).toContain('pods/exec');
    expect(run.stderr).toContain('A manager of the org or space, or an administrator of the cluster, must grant it.');
  });
});

describe('flags of ssh that contradict each other, or are wrong,', () => {
  it.each([
    [['-t', '-T'], 'cannot be used together: -T, -t, --force-pseudo-tty'],
    [['-N', '-c', 'x', '-L', '0:localhost:1'], 'cannot be used together: -N, -c'],
    [['-N'], "'-N' and '-L' must be used together."],
    [['--json'], "'--json' and '-c' must be used together."],
    [['-i', '-1'], "invalid argument for flag '-i' (expected int >= 0)"],
    [['-L', '8080:localhost'], "Bad local forwarding specification '8080:localhost'"],
    [['-L', '8080:localhost:70000'], "Bad local forwarding specification '8080:localhost:70000'"],
  ])('are refused before anything is read: %j', async (flags, message) => {
    const run = await cli.run(['ssh', 'shop', ...flags]);
    expect([run.code, cluster.server.calls.length]).toEqual([1, 0]);
    expect(run.stderr + run.stdout).toContain(message);
  });
});

/** Runs kf until its port is open, and gives the port. */
async function forwarding(
  args: string[],
  command = ['ssh', 'shop', '-N'],
): Promise<{ port: number; stdout: () => string; stderr: () => string; end: () => Promise<number | null> }> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: cli.home, CF_HOME: cli.home, ...cli.env };
  const child = spawn(process.execPath, [bundle.program, ...command, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [seen, printed] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (part: string) => (printed += part));
  const port = await new Promise<number>((resolve) =>
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      seen += part;
      const found = /Forwarding \S+:(\d+) to/.exec(seen)?.[1];
      if (found !== undefined) resolve(Number(found));
    }),
  );
  const ended = once(child, 'close') as Promise<[number | null]>;
  return { port, stdout: () => printed, stderr: () => seen, end: async () => (child.kill('SIGINT'), (await ended)[0]) };
}

async function exchange(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(sent);
  return text(socket).catch(() => 'cut');
}

describe('ssh -L', () => {
  it('forwards a local port to a port of the instance, and -N ends with Ctrl-C', async () => {
    await addApp();
    await addPod('web-0');
    serve = (socket) => {
      for (const channel of [0, 1]) send(socket, channel, Buffer.from([0x1f, 0x90]));
      socket.on('message', (message: Buffer) => {
        send(socket, 0, `got ${message.subarray(1).toString()}`);
        socket.close(1000);
      });
    };
    const { port, stdout, stderr, end: stop } = await forwarding(['-L', '127.0.0.1:0:localhost:8080']);
    expect(await Promise.all([exchange(port, 'a'), exchange(port, 'b')])).toEqual(['got a', 'got b']);
    expect(upgrades.map((url) => [url.pathname.split('/').at(-1), url.searchParams.get('ports')])).toEqual([
      ['portforward', '8080'],
      ['portforward', '8080'],
    ]);
    expect(await stop()).toBe(130);
    expect([stdout(), stderr()]).toEqual(['', `Forwarding 127.0.0.1:${port} to localhost:8080.\n`]);
  });

  it('reaches another host through a program in the instance, and says why a connection fails', async () => {
    await addApp();
    await addPod('web-0');
    serve = (socket) =>
      void socket.on('message', (message: Buffer) => {
        if (message[0] !== 0) return;
        if (message.subarray(1).toString() === 'bad') {
          send(socket, 2, 'bash: connect: Connection refused\n');
          return end(socket, 1);
        }
        send(socket, 1, `db got ${message.subarray(1).toString()}`);
        end(socket, 0);
      });
    const { port, stderr, end: stop } = await forwarding(['-L', '127.0.0.1:0:db.example.com:5432']);
    expect(await exchange(port, 'q')).toBe('db got q');
    expect(commandOf(upgrades[0]).slice(3)).toEqual(['db.example.com', '5432']);
    await exchange(port, 'bad');
    await stop();
    expect(stderr()).toContain('The instance cannot connect to db.example.com:5432: bash: connect: Connection refused\n');
  });

  it('to a port of the instance where nothing listens says so, without the text of the node', async () => {
    await addApp();
    await addPod('web-0');
    serve = (socket) => {
      for (const channel of [0, 1]) send(socket, channel, Buffer.from([0x27, 0x0f]));
      send(
        socket,
        1,
        'failed to execute portforward in network namespace "/var/run/netns/cni-2b": dial tcp4 127.0.0.1:9999: connect: connection refused',
      );
    };
    const { port, stderr, end: stop } = await forwarding(['-L', '127.0.0.1:0:localhost:9999']);
    await exchange(port, 'q');
    await stop();
    expect(stderr()).toContain('The instance cannot connect to localhost:9999: nothing listens there (connection refused).\n');
    expect(stderr()).not.toContain('netns');
  });

  it('of a port that another program uses is refused before anything runs', async () => {
    await addApp();
    await addPod('web-0');
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const run = await cli.run(['ssh', 'shop', '-c', 'x', '-L', `127.0.0.1:${port}:localhost:8080`]);
    taken.close();
    expect([run.code, upgrades]).toEqual([1, []]);
    expect(run.stderr).toContain(`kf cannot listen on port ${port} of 127.0.0.1: another program uses it.`);
  });

  it('ends with the command', async () => {
    await addApp();
    await addPod('web-0');
    const run = await cli.run(['ssh', 'shop', '-c', 'x', '-L', '127.0.0.1:0:localhost:8080']);
    expect(run.code).toBe(0);
    expect(run.stderr).toMatch(/^Forwarding 127\.0\.0\.1:\d+ to localhost:8080\.\n$/);
  });
});

describe('open', () => {
  const route = async (host: string): Promise<void> => {
    const name = host === '*' ? 'any-guid' : `${host}-guid`;
    await cluster.add(kinds.route, {
      metadata: { name, namespace: ns },
      spec: { host, domainRef: { name: 'default-domain', namespace: 'cf' }, destinations: [{ appRef: { name: 'shop-guid' } }] },
    } as never);
    const status = { uri: `${host}.apps.localhost/api` };
    await cluster.memory.mergePatch(kinds.route, ns, name, { status }, { subresource: 'status' });
  };

  it('prints the URL of the oldest route that is no wildcard, and starts no browser without a terminal', async () => {
    await addApp();
    await route('*');
    await route('www');
    const run = await cli.run(['open', 'shop'], { env: { BROWSER: 'false' } });
    expect(run).toMatchObject({ code: 0, stdout: 'http://www.apps.localhost/api\n', stderr: '' });
    const json = JSON.parse((await cli.run(['open', 'shop', '--json'])).stdout) as { result: unknown };
    expect(json.result).toEqual({ app: 'shop', url: 'http://www.apps.localhost/api', opened: false });
  });

  it('--forward leads to the port of an instance, without a route, and ends with Ctrl-C', async () => {
    await addApp();
    await addPod('web-0');
    serve = (socket) => {
      for (const channel of [0, 1]) send(socket, channel, Buffer.from([0x1f, 0x90]));
      socket.on('message', (message: Buffer) => {
        send(socket, 0, `got ${message.subarray(1).toString()}`);
        socket.close(1000);
      });
    };
    const { port, stdout, end: stop } = await forwarding([], ['open', 'shop', '--forward']);
    expect(await exchange(port, 'a')).toBe('got a');
    expect(upgrades.map((url) => url.searchParams.get('ports'))).toEqual(['8080']);
    expect(await stop()).toBe(130);
    expect(stdout()).toBe(`http://127.0.0.1:${port}\n`);
  });

  it('--forward leads to the port of the version that runs, also when a newer droplet has another', async () => {
    await addApp();
    await addPod('web-0', { ports: [9000] });
    const { port, end: stop } = await forwarding([], ['open', 'shop', '--forward']);
    await exchange(port, 'a').catch(() => '');
    expect(upgrades.map((url) => url.searchParams.get('ports'))).toEqual(['9000']);
    await stop();
  });

  it.each([
    ['without a route', [], "App 'shop' has no route that can be opened.", 'kf open shop --forward'],
    ['with a port and no forward', ['--port', '80'], "'--port' and '--forward' must be used together.", 'kf help open'],
    ['with a document of something that does not end', ['--forward', '--json'], 'cannot be used together', 'kf help open'],
  ])('%s is refused', async (_, flags, message, hint) => {
    await addApp();
    const run = await cli.run(['open', 'shop', ...flags]);
    expect(run.code).toBe(1);
    expect(run.stdout + run.stderr).toContain(message);
    expect(run.stdout + run.stderr).toContain(hint);
  });

  it('of a stopped app names the command that starts it', async () => {
    await addApp({ desiredState: 'STOPPED' });
    await route('www');
    expect((await cli.run(['open', 'shop'])).stderr).toContain('kf start shop');
  });
});
