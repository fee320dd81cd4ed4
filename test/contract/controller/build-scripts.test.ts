import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseExportReport } from '../../../src/controller/builds/report.ts';
import { until } from '../../support/until.ts';
import { buildScript, markers, registryScript, released, releaseFile } from '../../../src/templates/build-scripts.ts';

const digest = `sha256:${'d'.repeat(64)}`;
const lifecycle = { target: 'r/s/a-droplets:b', runImage: 'run', previousImage: 'r/s/a-droplets@sha256:a', insecureRegistries: ['r'] };

/**
 * The containers' own scripts in a real shell; the pod's folders are in a temporary one, and the lifecycle's phases are stubs that record their
 * calls.
 */
describe('the containers of a build', () => {
  let root: string;
  const children: ChildProcess[] = [];
  const at = (path: string): string => join(root, path);
  const phase = (name: string, script = ''): void => {
    writeFileSync(at(`cnb/lifecycle/${name}`), `#!/bin/sh\necho "${name} $*" >> ${at('calls')}\n${script}\n`);
    chmodSync(at(`cnb/lifecycle/${name}`), 0o755);
  };
  const local = (script: string): string =>
    script.replaceAll(/(?<![\w.])\/(kf|cnb|layers|platform|workspace|dev\/termination-log|tmp\/kf)/g, `${root}/$1`);
  const start = (script: string): Promise<number> => {
    const child = spawn('sh', ['-c', local(script)], { stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    return new Promise((resolve) => child.on('close', (code) => resolve(code ?? -1)));
  };
  const mark = (name: string): void => writeFileSync(at(`kf/hand/${name}`), '');
  const calls = (): string[] => (existsSync(at('calls')) ? readFileSync(at('calls'), 'utf8').trim().split('\n') : []);
  const order = (): string[] => calls().map((call) => call.split(' ')[0] ?? '');

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'kf-build-'));
    for (const folder of ['kf/hand', 'kf/registry', 'kf/release', 'cnb/lifecycle', 'layers/config', 'platform', 'workspace', 'dev', 'tmp'])
      mkdirSync(at(folder), { recursive: true });
    writeFileSync(at('kf/registry/auth'), '{"r":"Basic c2VjcmV0"}');
    writeFileSync(at(`kf/release/${releaseFile}`), '');
    phase('analyzer', `echo analyzed > ${at('layers/analyzed.toml')}`);
    for (const name of ['restorer', 'detector', 'builder']) phase(name);
    phase(
      'exporter',
      `printf '[image]\\n  digest = "${digest}"\\n' > ${at('tmp/kf-report.toml')}; printf '[[processes]]\\ntype = "web"\\ncommand = ["x"]\\ndirect = true\\n' > ${at('layers/config/metadata.toml')}`,
    );
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    rmSync(root, { recursive: true, force: true });
  });

  /** As the controller does when the kubelet has reported the end of the container. */
  const release = (code: number): void => writeFileSync(at(`kf/release/${releaseFile}`), code === 0 ? released.built : released.failed);
  const runBoth = async (order?: string): Promise<{ registry: number; build: number }> => {
    mark(markers.reached);
    mark(markers.fetched);
    const ended = start(buildScript(order)).then((code) => {
      release(code);
      return code;
    });
    const [registry, build] = await Promise.all([start(registryScript(lifecycle)), ended]);
    return { registry, build };
  };

  test('run the phases in the order of the specification and leave digest and metadata', async () => {
    expect(await runBoth()).toEqual({ registry: 0, build: 0 });
    expect(order()).toEqual(['analyzer', 'detector', 'restorer', 'builder', 'exporter']);
    const report = parseExportReport(readFileSync(at('dev/termination-log'), 'utf8'));
    expect(report).toEqual({ digest, facts: { processTypes: [{ type: 'web', command: 'x' }], buildpacks: [] } });
  });

  test('give run image, previous droplet and plain registries to the phases that need them', async () => {
    await runBoth();
    expect(calls().find((call) => call.startsWith('analyzer'))).toContain(
      '-insecure-registry=r -run-image=run -previous-image=r/s/a-droplets@sha256:a r/s/a-droplets:b',
    );
    expect(calls().find((call) => call.startsWith('exporter'))).toMatch(/-insecure-registry=r r\/s\/a-droplets:b$/);
  });

  test('send no request to the registry before it is reachable, and do not build before the source exists', async () => {
    const build = start(buildScript(undefined));
    const registry = start(registryScript(lifecycle));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(order()).toEqual([]);
    mark(markers.reached);
    await until('the analyzer', async () => order().includes('analyzer'));
    expect(order()).toEqual(['analyzer']);
    mark(markers.fetched);
    expect(await build).toBe(0);
    release(0);
    expect(await registry).toBe(0);
  });

  test('export nothing while the build container runs, whatever files it writes', async () => {
    phase('builder', `touch ${at('kf/hand/built')} ${at('kf/hand/build-ended')}; while [ ! -e ${at('end')} ]; do sleep 0.02; done`);
    mark(markers.reached);
    mark(markers.fetched);
    const containers = [start(registryScript(lifecycle)), start(buildScript(undefined))];
    await until('the builder', async () => order().includes('builder'));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(order()).not.toContain('exporter');
    writeFileSync(at('end'), '');
    expect(await containers[1]).toBe(0);
    release(0);
    expect(await containers[0]).toBe(0);
    expect(order().at(-1)).toBe('exporter');
  });

  test('use the images of the analysis, also if the build changed the files about them', async () => {
    phase('builder', `echo forged > ${at('layers/analyzed.toml')}`);
    phase('exporter', `for word in $*; do case $word in -analyzed=*) cat "\${word#-analyzed=}" > ${at('seen')};; esac; done; exit 1`);
    await runBoth();
    expect(readFileSync(at('seen'), 'utf8')).toBe('analyzed\n');
  });

  test.each([
    ['analyzer', 33, { registry: 33, build: 99 }],
    ['detector', 20, { registry: 99, build: 20 }],
    ['restorer', 42, { registry: 99, build: 42 }],
    ['builder', 51, { registry: 99, build: 51 }],
    ['exporter', 62, { registry: 62, build: 0 }],
  ])('end when the %s fails, and only its own container keeps the exit code', async (name, code, codes) => {
    phase(name, `exit ${String(code)}`);
    expect(await runBoth()).toEqual(codes);
    expect(existsSync(at('dev/termination-log'))).toBe(false);
  });

  test('end if the source could not be fetched', async () => {
    const containers = [start(registryScript(lifecycle)), start(buildScript(undefined))];
    await new Promise((resolve) => setTimeout(resolve, 100));
    mark(markers.failed);
    expect(await Promise.all(containers)).toEqual([99, 99]);
  });

  test('give the credential to the phases of the registry container and to nothing else', async () => {
    for (const name of ['analyzer', 'detector', 'restorer', 'builder', 'exporter'])
      phase(name, `env | grep -c c2VjcmV0 >> ${at(`seen-${name}`)}; touch ${at('layers/analyzed.toml')}`);
    await runBoth();
    const seen = (name: string): string => readFileSync(at(`seen-${name}`), 'utf8').trim();
    expect(['analyzer', 'exporter', 'detector', 'restorer', 'builder'].map(seen)).toEqual(['1', '1', '0', '0', '0']);
  });

  test.each([
    'layers/config/metadata.toml',
    'layers/kf_nodejs/launch.toml',
    'layers/kf_nodejs/layer',
    'layers/project-metadata.toml',
    'layers/sbom/launch/a/b',
  ])('refuse a link that a buildpack left as %s', async (path) => {
    mkdirSync(at('layers/kf_nodejs'));
    mkdirSync(at('layers/sbom/launch/a'), { recursive: true });
    symlinkSync(at('kf/registry/auth'), at(path));
    expect((await runBoth()).registry).toBe(1);
    expect(order()).not.toContain('exporter');
  });

  test('drop metadata that does not fit into the message, and keep the digest', async () => {
    const noise = `head -c 9000 /dev/urandom | od -An -tx1 | tr -d ' \\n'`;
    phase(
      'exporter',
      `printf '[image]\\n  digest = "${digest}"\\n' > ${at('tmp/kf-report.toml')}; ${noise} > ${at('layers/config/metadata.toml')}`,
    );
    await runBoth();
    expect(parseExportReport(readFileSync(at('dev/termination-log'), 'utf8'))).toEqual({ digest });
  });

  test('write an explicit order and use it for detection', async () => {
    const text = `[[order]]\n[[order.group]]\nid = "it's $X"\n`;
    await runBoth(text);
    expect(readFileSync(at('tmp/kf-order.toml'), 'utf8')).toBe(text);
    expect(calls().find((call) => call.startsWith('detector'))).toContain(`-order=${at('tmp/kf-order.toml')}`);
  });
});
