import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
const path = `GET /api/v1/namespaces/${ns}/pods/web-0/log`;
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  const spec = { displayName: 'shop', desiredState: 'STARTED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'shop-guid', namespace: ns }, spec });
  const state = { running: { startedAt: '2026-08-07T10:16:19Z' } };
  const pod = {
    metadata: {
      name: 'web-0',
      namespace: ns,
      labels: { [labels.appGuid]: 'shop-guid', [labels.processType]: 'web', [labels.podIndex]: '0' },
    },
    spec: { containers: [{ name: 'application' }] },
    status: { phase: 'Running', containerStatuses: [{ name: 'application', restartCount: 0, containerID: 'c://1', ready: true, state }] },
  };
  await cluster.add(podType, pod as unknown as Pod);
  await addProcess('web', 2);
});

const addProcess = (processType: string, desiredInstances: number): Promise<unknown> =>
  cluster.add(kinds.process, {
    metadata: { name: `${processType}-guid`, namespace: ns, labels: { [labels.appGuid]: 'shop-guid' } },
    spec: {
      appRef: { name: 'shop-guid' },
      processType,
      desiredInstances,
      memoryMB: 64,
      diskQuotaMB: 64,
      ports: [],
      healthCheck: { type: 'process', data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } },
    },
  });

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const stamp = (second: number): string => `2026-08-07T10:16:${second}.000000000Z`;
const entry = (second: number, text: string): object => ({
  time: stamp(second),
  source: 'APP/PROC/WEB/0',
  stream: 'OUT',
  pod: 'web-0',
  text,
});
const documents = (stdout: string): unknown[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line));

describe('logs --json', () => {
  it('prints a document per line while it follows', async () => {
    // The answer never ends, so everything that was printed was printed before its end.
    cluster.server.on(path, async (call) => {
      if (call.query.get('follow') !== 'true') return call.text(`${stamp(19)} before\n`);
      await call.write(`${stamp(19)} before\n${stamp(20)} one\n${stamp(21)} two \x1b[2J\n`);
      await call.closed;
    });
    const run = await cli.run(['logs', 'shop', '--json'], { kill: { after: '"two ', signal: 'SIGINT' } });
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).not.toContain('\x1b');
    // As in cf, it begins with the newest lines.
    expect(documents(run.stdout)).toEqual([entry(19, 'before'), entry(20, 'one'), entry(21, 'two \x1b[2J')]);
  });

  it('prints a document per line for recent lines too, and warnings after them', async () => {
    cluster.memory.logTexts.set(`${ns}/web-0`, `${stamp(20)} one\n${stamp(21)} two\n`);
    const run = await cli.run(['logs', 'shop', '--recent', '--json']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(documents(run.stdout)).toEqual([entry(20, 'one'), entry(21, 'two')]);
    cluster.server.on(path, (call) => call.fail(500, 'InternalError', 'the node is away'));
    const failed = await cli.run(['logs', 'shop', '--recent', '--json']);
    expect(documents(failed.stdout)).toEqual([{ warning: expect.stringContaining('web-0/application: ') as string }]);
  });

  it('ends with a document about the failure', async () => {
    for (const argv of [
      ['logs', 'nothing', '--json'],
      ['logs', '--json'],
    ]) {
      const run = await cli.run(argv);
      expect(run).toMatchObject({ code: 1, stderr: '' });
      expect(documents(run.stdout)).toMatchObject([{ status: 1, error: { message: expect.any(String) as string }, warnings: [] }]);
    }
  });
});

describe('logs', () => {
  it('keep every byte if there is no terminal', async () => {
    const text = 'a\x1b]0;title\x07b\x1b[2J\x9b\u202e\x1b[31mred\rover';
    cluster.memory.logTexts.set(`${ns}/web-0`, `${stamp(20)} ${text}\n`);
    const run = await cli.run(['logs', 'shop', '--recent']);
    expect(run.stdout).toContain(` OUT ${text}\n`);
  });
});

describe('the flags of logs', () => {
  const recent = async (...flags: string[]): Promise<string[]> => {
    const run = await cli.run(['logs', 'shop', '--recent', ...flags]);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    return run.stdout
      .trimEnd()
      .split('\n')
      .slice(2)
      .map((text) => text.replace(/^ {3}\S+ /, ''));
  };

  beforeEach(async () => {
    const pod = (name: string, process: string, index: string) => ({
      metadata: { name, namespace: ns, labels: { [labels.appGuid]: 'shop-guid', [labels.processType]: process, [labels.podIndex]: index } },
      spec: { containers: [{ name: 'application' }] },
      status: {
        phase: 'Running',
        containerStatuses: [{ name: 'application', restartCount: 0, containerID: `c://${name}`, ready: true, state: {} }],
      },
    });
    await cluster.add(podType, pod('web-1', 'web', '1') as unknown as Pod);
    await cluster.add(podType, pod('worker-0', 'worker', '0') as unknown as Pod);
    await addProcess('worker', 1);
    cluster.memory.logTexts.set(`${ns}/web-0`, `${stamp(20)} one\n${stamp(23)} error four\n`);
    cluster.memory.logTexts.set(`${ns}/web-1`, `${stamp(21)} error two\n`);
    cluster.memory.logTexts.set(`${ns}/worker-0`, `${stamp(22)} three\n`);
  });

  it('choose instances, processes, a time and a pattern, and count', async () => {
    const [one, two, three, four] = [
      '[APP/PROC/WEB/0] OUT one',
      '[APP/PROC/WEB/1] OUT error two',
      '[APP/PROC/WORKER/0] OUT three',
      '[APP/PROC/WEB/0] OUT error four',
    ];
    expect(await recent()).toEqual([one, two, three, four]);
    expect(await recent('--instance', '0')).toEqual([one, three, four]);
    expect(await recent('--process', 'web')).toEqual([one, two, four]);
    expect(await recent('--process', 'web', '--instance', '1')).toEqual([two]);
    expect(await recent('--since', '2026-08-07T10:16:22Z')).toEqual([three, four]);
    expect(await recent('--grep', '^err.r', '--summary')).toEqual([two, four, '2 lines, 0 gaps']);
    const run = await cli.run(['logs', 'shop', '--recent', '--process', 'worker', '--summary', '--json']);
    expect(documents(run.stdout)).toEqual([expect.objectContaining({ text: 'three' }), { lines: 1, gaps: 0 }]);
  });

  it('show the notes around a version that failed only with a line of it', async () => {
    const app = await cluster.memory.get(kinds.app, ns, 'shop-guid');
    const deployment = {
      id: 'x',
      phase: 'Failed' as const,
      pod: 'web-7',
      since: '2026-08-07T10:16:30Z',
      logTail: ['ROOT CAUSE', 'at main'],
    };
    await cluster.memory.replace(kinds.app, { ...app, status: { deployment } } as NonNullable<typeof app>);
    expect(await recent('--grep', 'four|CAUSE')).toEqual([
      '[APP/PROC/WEB/0] OUT error four',
      '[KF/0] ERR The version that failed is gone; it said:',
      '[APP/PROC/WEB/7] OUT ROOT CAUSE',
      '[KF/0] ERR End of the version that failed.',
    ]);
    expect(await recent('--grep', 'four')).toEqual(['[APP/PROC/WEB/0] OUT error four']);
    // It is beyond the wanted instances, but known.
    expect(await recent('--instance', '7')).toHaveLength(4);
    // The notes are not counted.
    expect((await recent('--instance', '7', '--summary')).at(-1)).toBe('2 lines, 0 gaps');
  });

  it('show no version that failed as gone while its instance has lines, also when none of them match', async () => {
    const app = await cluster.memory.get(kinds.app, ns, 'shop-guid');
    const deployment = { id: 'x', phase: 'Failed' as const, pod: 'web-1', since: '2026-08-07T10:16:30Z', logTail: ['four pods crashed'] };
    await cluster.memory.replace(kinds.app, { ...app, status: { deployment } } as NonNullable<typeof app>);
    expect(await recent('--grep', 'four')).toEqual(['[APP/PROC/WEB/0] OUT error four']);
  });

  it('are refused with what they accept', async () => {
    for (const [flags, words] of [
      [['--since', 'soon'], "--since must be a duration (90s, 10m, 2h, 1d) or a time (2026-01-31T10:00:00Z); it is 'soon'"],
      [['--grep', '('], '--grep must be a regular expression'],
      [['--instance', '-1'], "invalid argument for flag '--instance' (expected int >= 0)"],
    ] as const) {
      const run = await cli.run(['logs', 'shop', ...flags]);
      expect(run.code).toBe(1);
      expect(run.stderr).toContain(words);
    }
  });

  it('refuse a process type and an instance that do not exist', async () => {
    for (const [flags, message] of [
      [['--process', 'nope'], 'Process nope not found'],
      [['--process', 'nope', '--recent'], 'Process nope not found'],
      [['--instance', '9', '--recent'], 'Instance 9 of process web or worker not found'],
      [['--instance', '1', '--process', 'worker', '--previous'], 'Instance 1 of process worker not found'],
    ] as const) {
      const run = await cli.run(['logs', 'shop', ...flags, '--json']);
      expect(run.code).toBe(1);
      expect(documents(run.stdout)).toMatchObject([{ error: { code: 'not-found', message } }]);
    }
    // The pod of an instance that is no longer wanted has lines.
    const web = await cluster.memory.get(kinds.process, ns, 'web-guid');
    await cluster.memory.replace(kinds.process, { ...web, spec: { ...web?.spec, desiredInstances: 1 } } as NonNullable<typeof web>);
    expect(await recent('--instance', '1')).toEqual(['[APP/PROC/WEB/1] OUT error two']);
  });

  it.each([
    ['on stderr', [], 'Instance 9 of process web not found\n', ''],
    ['as a document', ['--json'], '', '{"warning":"Instance 9 of process web not found"}\n'],
  ])('note an instance that does not exist yet %s, and follow', async (_, flags, stderr, stdout) => {
    const run = await cli.run(['logs', 'shop', '--process', 'web', '--instance', '9', ...flags], {
      kill: { after: 'not found', signal: 'SIGINT' },
    });
    expect(run).toMatchObject({ code: 0, stderr });
    expect(run.stdout).toContain(stdout);
  });

  it('show the run before the last restart, and runs before it as a gap, which --grep does not hide', async () => {
    const last = { terminated: { exitCode: 1, containerID: 'c://0', startedAt: stamp(10), finishedAt: stamp(12) } };
    const pod = await cluster.memory.get(podType, ns, 'web-1');
    const state = { running: { startedAt: stamp(13) } };
    const status = {
      phase: 'Running',
      containerStatuses: [{ name: 'application', restartCount: 2, containerID: 'c://1', ready: true, state, lastState: last }],
    };
    await cluster.memory.replace(podType, { ...pod, status } as unknown as Pod);
    cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/web-1/log`, (call) =>
      call.text(call.query.get('previous') === 'true' ? `${stamp(11)} before\n` : `${stamp(21)} now\n`),
    );
    const run = await cli.run(['logs', 'shop', '--previous', '--grep', 'bef', '--json', '--summary']);
    expect(documents(run.stdout)).toEqual([
      { gap: { to: stamp(10), reason: '1 earlier run is no longer kept' }, source: 'APP/PROC/WEB/1', pod: 'web-1' },
      { time: stamp(11), source: 'APP/PROC/WEB/1', stream: 'OUT', pod: 'web-1', text: 'before' },
      { lines: 1, gaps: 1 },
    ]);
    expect((await recent('--instance', '1', '--process', 'web', '--summary')).slice(1)).toEqual([
      '[APP/PROC/WEB/1] OUT before',
      '[APP/PROC/WEB/1] OUT now',
      '2 lines, 1 gap',
    ]);
  });

  it('say that there is no previous run', async () => {
    const run = await cli.run(['logs', 'shop', '--previous']);
    expect(run).toMatchObject({ code: 0, stderr: 'No instance has a previous run.\n' });
    const json = await cli.run(['logs', 'shop', '--previous', '--json']);
    expect(json.code).toBe(0);
    expect(documents(json.stdout)).toEqual([{ warning: 'No instance has a previous run.' }]);
  });

  it('count the logs that were not read to their end', async () => {
    cluster.server.on(path, (call) => call.fail(500, 'InternalError', 'dial tcp 10.0.0.7:10250: i/o timeout'));
    const run = await cli.run(['logs', 'shop', '--recent', '--instance', '0', '--process', 'web', '--summary']);
    expect(run).toMatchObject({ code: 0, stderr: 'web-0/application: dial tcp 10.0.0.7:10250: i/o timeout\n' });
    expect(run.stdout).toMatch(/^0 lines, 0 gaps, 1 log not read completely$/m);
    const json = await cli.run(['logs', 'shop', '--recent', '--instance', '0', '--process', 'web', '--summary', '--json']);
    expect(documents(json.stdout).at(-1)).toEqual({ lines: 0, gaps: 0, unread: 1 });
  });

  it('count when Ctrl-C ends following', async () => {
    cluster.server.on(path, async (call) => {
      if (call.query.get('follow') !== 'true') return call.text(`${stamp(19)} before\n`);
      await call.write(`${stamp(19)} before\n${stamp(20)} one\n`);
      await call.closed;
    });
    const run = await cli.run(['logs', 'shop', '--process', 'web', '--instance', '0', '--summary'], {
      kill: { after: ' one', signal: 'SIGINT' },
    });
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout.trimEnd().split('\n').at(-1)).toBe('2 lines, 0 gaps');
  });
});

describe('logs --recent --grep', () => {
  it('searches the whole log and prints the newest 1000 lines that match, without keeping the others', async () => {
    const padding = 'x'.repeat(1_000);
    let lines = 0;
    const time = (): string => new Date(Date.UTC(2026, 0, 1) + lines++ * 1_000).toISOString();
    // Together more than the program may have.
    const part = (text: string): string => Array.from({ length: 1_000 }, () => `${time()} ${text} ${padding}\n`).join('');
    cluster.server.on(path, async (call) => {
      lines = 0;
      // The kubelet counts from the end.
      const begin = call.query.get('tailLines') === '1000' ? [] : [`${time()} one needle\n`, ...Array.from({ length: 150 }, () => 'hay')];
      for (const text of begin) await call.write(text === 'hay' ? part('hay') : text);
      await call.write(part('hay'));
      call.end();
    });
    const search = (pattern: string): Promise<CliRun> =>
      cli.run(['logs', 'shop', '--recent', '--grep', pattern, '--json'], { env: { NODE_OPTIONS: '--max-old-space-size=64' } });
    const found = await search('needle');
    expect(found).toMatchObject({ code: 0, stderr: '' });
    expect(documents(found.stdout)).toMatchObject([{ text: 'one needle' }]);
    const many = documents((await search('hay')).stdout) as { time: string }[];
    expect(many).toHaveLength(1_000);
    expect(Date.parse(many.at(-1)?.time ?? '')).toBe(Date.UTC(2026, 0, 1) + (lines - 1) * 1_000);
  });
});

describe('logs of many instances', () => {
  it('are followed up to 500 at a time, and those that wait are named', async () => {
    // Finished tasks are kept for hours, and take no place.
    for (let index = 0; index < 560; index++) {
      const isTask = index >= 507;
      const kind = isTask ? { [labels.taskGuid]: `t-${index}` } : { [labels.processType]: 'web', [labels.podIndex]: `${index}` };
      const state = isTask ? { terminated: { exitCode: 0, containerID: `c://${index}` } } : { running: { startedAt: stamp(19) } };
      const pod = {
        metadata: { name: `many-${index}`, namespace: ns, labels: { [labels.appGuid]: 'many-guid', ...kind } },
        spec: { restartPolicy: isTask ? 'Never' : 'Always', containers: [{ name: 'application' }] },
        status: {
          phase: isTask ? 'Succeeded' : 'Running',
          containerStatuses: [{ name: 'application', restartCount: 0, containerID: `c://${index}`, ready: !isTask, state }],
        },
      };
      await cluster.add(podType, pod as unknown as Pod);
    }
    const spec = { displayName: 'many', desiredState: 'STARTED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
    await cluster.add(kinds.app, { metadata: { name: 'many-guid', namespace: ns }, spec });
    let followed = 0;
    cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/many-[0-9]+/log`, async (call) => {
      const text = `${stamp(20)} hello\n`;
      if (call.query.get('follow') !== 'true') return call.text(text);
      await call.write(++followed === 500 ? `${text}${stamp(21)} the last\n` : text);
      await call.closed;
    });
    const run = await cli.run(['logs', 'many'], { kill: { after: 'the last', signal: 'SIGINT' } });
    expect(run).toMatchObject({ code: 0 });
    const named = [500, 501, 502, 503, 504].map((index) => `APP/PROC/WEB/${index}`).join(', ');
    expect(run.stderr).toBe(
      `500 logs are followed at a time. These wait until another one ends: ${named} and 2 more. --process and --instance choose others.\n`,
    );
  });
});

it.each([0, 60])(
  'logs with a node that does not answer follows the others, from a minute ago at most, with a clock of %i min',
  async (minutes) => {
    cluster.server.aheadMs = minutes * 60_000;
    const pod = await cluster.memory.get(podType, ns, 'web-0');
    const away = {
      ...pod,
      metadata: { name: 'web-1', namespace: ns, labels: pod?.metadata.labels },
      spec: { ...pod?.spec, nodeName: 'away' },
    };
    await cluster.add(podType, away as unknown as Pod);
    const begun: number[] = [];
    let asked = 0;
    cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/web-1/log`, async (call) => {
      asked++;
      if (asked === 1) return call.closed;
      const line = `${new Date(Date.now() + cluster.server.aheadMs).toISOString()} now\n`;
      if (call.query.get('follow') !== 'true') return call.text(line);
      begun.push(Date.parse(call.query.get('sinceTime') ?? ''));
      await call.write(line);
      await call.closed;
    });
    cluster.server.on(path, async (call) => {
      if (call.query.get('follow') !== 'true') return call.text(`${stamp(40)} hours ago\n`);
      await call.closed;
    });
    const started = Date.now();
    const run = await cli.run(['logs', 'shop'], { kill: { after: 'now', signal: 'SIGINT' } });
    expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('OUT now')]);
    expect(begun[0]).toBeGreaterThan(started + cluster.server.aheadMs - 62_000);
  },
);

describe.each([-60, 60])('logs with a cluster whose clock is %i min ahead of that of the user', (minutes) => {
  const ago = (seconds: number): string => new Date(Date.now() + minutes * 60_000 - seconds * 1_000).toISOString();
  const asked: number[] = [];

  beforeEach(() => {
    asked.length = 0;
    cluster.server.aheadMs = minutes * 60_000;
    cluster.server.on(path, async (call) => {
      const since = call.query.get('sinceTime');
      // The first line of the file is asked for without a time.
      if (since === null) return call.text(`${ago(90)} before\n`);
      asked.push((Date.now() + minutes * 60_000 - Date.parse(since)) / 1_000);
      await call.write(`${ago(90)} before\n${ago(5)} within\n`);
      if (call.query.get('follow') === 'true') await call.closed;
      call.end();
    });
  });

  it('shows the lines of the last minute by the clock of the cluster, followed or not', async () => {
    expect((await cli.run(['logs', 'shop', '--recent', '--since', '1m'])).stdout).toMatch(/^(?!.*before)[^]* OUT within\n$/);
    const run = await cli.run(['logs', 'shop', '--since', '1m'], { kill: { after: 'within', signal: 'SIGINT' } });
    expect(run.stdout).toContain(' OUT within\n');
    expect(run.stdout).not.toContain('before');
    for (const seconds of asked) expect(seconds).toBeCloseTo(60, -1);
    expect(asked).toHaveLength(2);
  });

  it('shows those since a time as they are', async () => {
    const run = await cli.run(['logs', 'shop', '--recent', '--since', ago(100)]);
    expect(run.stdout).toMatch(/ OUT before\n.* OUT within\n$/);
  });
});

describe('logs that is interrupted', () => {
  it.each([
    ['ends with 0 before it follows', [], 0],
    ['ends with 130 when it reads recent lines', ['--recent'], 130],
  ])('%s', async (_, flags, code) => {
    cluster.server.on('GET .*/cfapps', (call) => call.closed);
    const run = await cli.run(['logs', 'shop', ...flags], { kill: { after: 'Retrieving logs', signal: 'SIGINT' } });
    expect(run.code).toBe(code);
  });
});
