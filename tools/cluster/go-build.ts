// Runs Go for the parts of the cluster, with separate caches and with settings that make the compiler fast.
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { cacheFolder } from './cache.ts';
import type { Part, Replacement } from './part.ts';
import { run, tryRun } from './process.ts';

/** Runs `go` with the user's own settings. */
export async function goCommand(args: string[]): Promise<string> {
  const result = await tryRun('go', args).catch((cause: unknown) => {
    throw new Error(
      'Go is needed to build the parts of the cluster; `go` is not in the PATH. Any Go from 1.21 on will do: it fetches the version that the modules ask for.',
      { cause },
    );
  });
  if (result.code !== 0) throw new Error(`go ${args.join(' ')} failed: ${result.stderr.trim()}`);
  return result.stdout;
}

/** Go's caches for these builds: sources and compiled packages, which are larger than all results. */
function goCaches(): string {
  return join(cacheFolder(), 'go');
}

/** Removes Go's caches of these builds; the built parts stay. */
export function removeGoCaches(): void {
  rmSync(goCaches(), { recursive: true, force: true });
}

/** The sources of modules: first those that the user's own Go has already, then its proxies. */
export function moduleProxies(proxies: string, moduleCache: string): string {
  const downloaded = join(moduleCache, 'cache', 'download');
  return existsSync(downloaded) ? [`file://${downloaded}`, proxies].filter(Boolean).join(',') : proxies;
}

const MiB = 1024 * 1024;

/**
 * The memory that one process of the compiler may use before it collects garbage: an eighth of the machine's, within limits.
 * Most packages need less and are compiled without a garbage collection, which otherwise takes a quarter of the time.
 */
export function compilerMemory(total: number): string {
  return `${String(Math.round(Math.min(Math.max(total / 8, 256 * MiB), 2048 * MiB) / MiB))}MiB`;
}

async function goEnvironment(part: Part): Promise<NodeJS.ProcessEnv> {
  const own = JSON.parse(await goCommand(['env', '-json', 'GOPROXY', 'GOMODCACHE'])) as { GOPROXY: string; GOMODCACHE: string };
  return {
    ...process.env,
    GOWORK: 'off',
    CGO_ENABLED: part.cgo ? '1' : '0',
    GOCACHE: join(goCaches(), 'build'),
    GOMODCACHE: join(goCaches(), 'mod'),
    GOPROXY: moduleProxies(own.GOPROXY, own.GOMODCACHE),
    GOGC: 'off',
    GOMEMLIMIT: compilerMemory(totalmem()),
  };
}

/** Downloads the modules of a part and lists its packages, with the versions of their modules: two parts share equal ones. */
export async function listPackages(part: Part, source: string): Promise<string[]> {
  const env = await goEnvironment(part);
  return withPatches(part, source, env, async (flags) => {
    const args = ['list', '-deps', '-f', '{{.ImportPath}}{{with .Module}}@{{.Version}}{{end}}', ...flags, ...Object.values(part.binaries)];
    const packages = Object.keys(part.binaries).length > 0 ? await run('go', args, { cwd: source, env }) : '';
    return packages
      .split('\n')
      .filter(Boolean)
      .map((line) => (part.cgo ? `cgo ${line}` : line));
  });
}

/** Compiles the binaries of a part into a folder. `compiled` is called for each package that was not in the cache. */
export async function compilePart(part: Part, source: string, target: string, compiled: () => void): Promise<void> {
  const env = await goEnvironment(part);
  const set = Object.entries(part.variables ?? {}).map(([name, value]) => `-X ${name}=${value}`);
  // Neither the linker nor any other program needs the compiler's debugging information.
  const common = ['-trimpath', '-buildvcs=false', '-gcflags=all=-dwarf=false', `-ldflags=${['-s', '-w', ...set].join(' ')}`];
  await withPatches(part, source, env, async (flags) => {
    for (const [binary, from] of Object.entries(part.binaries)) {
      await runGo(['build', '-v', ...common, ...flags, '-o', join(target, binary), from], { cwd: source, env }, compiled);
    }
  });
}

/** `go build -v` prints the name of each package that it compiles, one per line; all other lines are errors. */
function runGo(args: string[], options: { cwd: string; env: NodeJS.ProcessEnv }, compiled: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('go', args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    const said: string[] = [];
    const lines = createInterface({ input: child.stderr }).on('line', (line) => {
      if (/^[\w./~-]+$/.test(line)) compiled();
      else said.push(line);
    });
    child.on('error', reject);
    child.on('close', (code) => {
      lines.close();
      if (code === 0) resolve();
      else reject(new Error(`go ${args.join(' ').slice(0, 300)} ended with ${String(code)}:\n${said.slice(-15).join('\n')}`));
    });
  });
}

/** Calls with the flags that build a part. With patches, the flags name a go.mod that replaces the patched modules with changed copies. */
async function withPatches<T>(part: Part, source: string, env: NodeJS.ProcessEnv, use: (flags: string[]) => Promise<T>): Promise<T> {
  const flags = [...(part.flags ?? []), '-modcacherw'];
  if (!part.patches) return use(flags);
  mkdirSync(goCaches(), { recursive: true });
  const folder = mkdtempSync(join(goCaches(), `${part.name}-`));
  try {
    for (const file of ['go.mod', 'go.sum']) writeFileSync(join(folder, file), readFileSync(join(source, file)));
    for (const [index, [module, files]] of Object.entries(part.patches).entries()) {
      const copy = join(folder, `module${String(index)}`);
      await copyModule(module, copy, { cwd: source, env });
      for (const [file, replacement] of Object.entries(files)) {
        if (replacement === null) rmSync(join(copy, file));
        else if (typeof replacement === 'string') writeFileSync(join(copy, file), readFileSync(join(source, replacement)));
        else writeFileSync(join(copy, file), replacement.reduce(replaceOnce, readFileSync(join(copy, file), 'utf8')));
      }
      await run('go', ['mod', 'edit', `-replace=${module}=${copy}`, join(folder, 'go.mod')], { env });
    }
    return await use([...flags, `-modfile=${join(folder, 'go.mod')}`]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @throws Error unless the text is there once: another version of the dependency needs another patch */
export function replaceOnce(source: string, { text, by }: Replacement): string {
  const pieces = source.split(text);
  if (pieces.length !== 2) throw new Error(`The text that a patch replaces is there ${String(pieces.length - 1)} times: ${text}`);
  return pieces.join(by);
}

async function copyModule(module: string, target: string, options: { cwd: string; env: NodeJS.ProcessEnv }): Promise<void> {
  cpSync(await moduleFolder(module, options), target, { recursive: true });
}

async function moduleFolder(module: string, options: { cwd: string; env: NodeJS.ProcessEnv }): Promise<string> {
  await run('go', ['mod', 'download', '-modcacherw', module], options);
  return (await run('go', ['list', '-m', '-f', '{{.Dir}}', module], options)).trim();
}

/** Copies the folders that a part uses from its dependencies. */
export async function copyFolders(part: Part, source: string, target: string): Promise<void> {
  const env = await goEnvironment(part);
  for (const [name, { module, folder }] of Object.entries(part.folders ?? {})) {
    const root = await moduleFolder(module, { cwd: source, env });
    const copy = join(target, name);
    mkdirSync(copy);
    for (const file of readdirSync(join(root, folder))) {
      if (file.endsWith('.yaml')) writeFileSync(join(copy, file), readFileSync(join(root, folder, file)));
    }
  }
}
