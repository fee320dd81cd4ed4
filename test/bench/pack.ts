// Packing and uploading 10,000 files (300 MB), compared with `tar | zstd` and with `crane append`: wall time and peak memory, the best of three
// runs. `node test/bench/pack.ts`; crane from $KF_BENCH_CRANE, a registry from $KF_BENCH_REGISTRY (host:port, plain HTTP).

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { ScriptedRegistry } from '../support/registry.ts';
import { makeTree } from './pack-tree.ts';

export interface PackFigure {
  name: string;
  wallMs: number;
  peakMiB: number;
  /** Size after compression. */
  bytes: number;
}

const RUNS = 3;
const POLL_MS = 10;

/** All figures; needs about 1 GB of temporary disk. */
export async function benchPack(env: NodeJS.ProcessEnv = process.env): Promise<PackFigure[]> {
  const dir = mkdtempSync(join(tmpdir(), 'kf-bench-'));
  const own = env['KF_BENCH_REGISTRY'] === undefined ? await ScriptedRegistry.start() : undefined;
  const registry = env['KF_BENCH_REGISTRY'] ?? own?.host ?? '';
  try {
    makeTree(join(dir, 'tree'));
    const program = await bundlePackRun(dir);
    const figures = [
      await best('kf, first push', (run) => kf({ dir, program, registry, run, cold: true })),
      await best('kf, next push', (run) => kf({ dir, program, registry, run, cold: false })),
      await best('tar | zstd -3 (no upload)', () => archive(dir)),
    ];
    const crane = env['KF_BENCH_CRANE'];
    if (crane !== undefined) figures.push(await best('tar, then crane append', (run) => append({ dir, crane, registry, run })));
    return figures;
  } finally {
    await own?.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** pack-run.ts bundled as kf is: stripping types at run time alone would cost 40 MiB. */
export async function bundlePackRun(dir: string): Promise<string> {
  const outfile = join(dir, 'pack-run.mjs');
  const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };
  const entry = fileURLToPath(new URL('pack-run.ts', import.meta.url));
  await build({ entryPoints: [entry], bundle: true, platform: 'node', format: 'esm', outfile, banner, logLevel: 'error' });
  return outfile;
}

interface KfRun {
  dir: string;
  program: string;
  registry: string;
  run: number;
  cold: boolean;
}

async function kf({ dir, program, registry, run, cold }: KfRun): Promise<Omit<PackFigure, 'name'>> {
  const cache = join(dir, 'cache');
  if (cold) rmSync(cache, { recursive: true, force: true });
  const repository = `bench/kf-${cold ? 'cold' : 'warm'}-${run}-${Date.now()}`;
  const { wallMs, peakMiB, stdout } = await measure(process.execPath, [program, join(dir, 'tree'), cache, registry, repository, 'zstd']);
  return { wallMs, peakMiB, bytes: (JSON.parse(stdout) as { layerBytes: number }).layerBytes };
}

async function archive(dir: string): Promise<Omit<PackFigure, 'name'>> {
  const output = join(dir, 'out.tar.zst');
  const { wallMs, peakMiB } = await measure('sh', ['-c', `tar -C "${dir}" -cf - tree | zstd -q -3 -f -o "${output}"`]);
  return { wallMs, peakMiB, bytes: statSync(output).size };
}

async function append({
  dir,
  crane,
  registry,
  run,
}: {
  dir: string;
  crane: string;
  registry: string;
  run: number;
}): Promise<Omit<PackFigure, 'name'>> {
  const output = join(dir, 'out.tar');
  const image = `${registry}/bench/crane-${run}-${Date.now()}:t`;
  const { wallMs, peakMiB } = await measure('sh', [
    '-c',
    `tar -C "${dir}" -cf "${output}" tree && "${crane}" append --insecure --oci-empty-base -f "${output}" -t "${image}" 2>/dev/null`,
  ]);
  const manifest = await fetch(`http://${registry}/v2/${image.slice(registry.length + 1, -2)}/manifests/t`, {
    headers: { Accept: 'application/vnd.oci.image.manifest.v1+json' },
  });
  const { layers } = (await manifest.json()) as { layers: { size: number }[] };
  return { wallMs, peakMiB, bytes: layers.reduce((sum, { size }) => sum + size, 0) };
}

async function best(name: string, once: (run: number) => Promise<Omit<PackFigure, 'name'>>): Promise<PackFigure> {
  const figures: PackFigure[] = [];
  for (let run = 0; run < RUNS; run++) figures.push({ name, ...(await once(run)) });
  const wallMs = Math.min(...figures.map((figure) => figure.wallMs));
  const peakMiB = Math.max(...figures.map((figure) => figure.peakMiB));
  return { name, wallMs, peakMiB, bytes: figures[0]?.bytes ?? 0 };
}

/** Wall time and the sum of the peaks of all processes of the command (the kernel's VmHWM, read until each has ended). */
function measure(command: string, args: string[]): Promise<{ wallMs: number; peakMiB: number; stdout: string }> {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn(command, args, { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    const peaks = new Map<number, number>();
    const timer = setInterval(() => lookAt(child.pid ?? 0, peaks), POLL_MS);
    child.on('error', reject);
    child.on('close', (code) => {
      clearInterval(timer);
      const wallMs = Math.round(performance.now() - start);
      const peakMiB = Math.round([...peaks.values()].reduce((sum, kib) => sum + kib, 0) / 1024);
      if (code === 0) resolve({ wallMs, peakMiB, stdout });
      else reject(new Error(`${command} ended with ${code}`));
    });
  });
}

function lookAt(group: number, peaks: Map<number, number>): void {
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || processGroup(pid) !== group) continue;
    const peak = /VmHWM:\s+(\d+)/.exec(readIfThere(`/proc/${pid}/status`))?.[1];
    if (peak !== undefined) peaks.set(pid, Math.max(peaks.get(pid) ?? 0, Number(peak)));
  }
}

function processGroup(pid: number): number {
  // The name in parentheses may contain anything; the group is the third field after it.
  return Number(readIfThere(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ')[2]);
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { name, wallMs, peakMiB, bytes } of await benchPack()) {
    console.log(
      `${name.padEnd(28)} ${String(wallMs).padStart(6)} ms ${String(peakMiB).padStart(5)} MiB ${(bytes / 1e6).toFixed(1).padStart(7)} MB`,
    );
  }
}
