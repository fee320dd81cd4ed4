import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
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
    expect(documents(run.stdout)).toEqual([entry(20, 'one'), entry(21, 'two \x1b[2J')]);
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
