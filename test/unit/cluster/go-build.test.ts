import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { hasParts, removeUnfinishedParts } from '../../../tools/cluster/parts.ts';
import { compilerMemory, moduleProxies, removeGoCaches, replaceOnce } from '../../../tools/cluster/go-build.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kf-go-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

test('modules that the user has downloaded are not downloaded again', () => {
  mkdirSync(path.join(folder, 'cache', 'download'), { recursive: true });
  expect(moduleProxies('https://proxy.example.com,direct', folder)).toBe(
    `file://${folder}/cache/download,https://proxy.example.com,direct`,
  );
});

test("without a folder of modules the user's proxies are used", () => {
  expect(moduleProxies('https://proxy.example.com,direct', folder)).toBe('https://proxy.example.com,direct');
});

test('a compiler may use an eighth of the memory, at least 256 MiB and at most 2 GiB', () => {
  const GiB = 1024 ** 3;
  expect([1, 4, 8, 64].map((size) => compilerMemory(size * GiB))).toEqual(['256MiB', '512MiB', '1024MiB', '2048MiB']);
});

test('a patch replaces a text that is there once, and no other', () => {
  expect(replaceOnce('a b c', { text: 'b', by: '$&' })).toBe('a $& c');
  expect(() => replaceOnce('a c', { text: 'b', by: 'd' })).toThrow('The text that a patch replaces is there 0 times: b');
  expect(() => replaceOnce('b b', { text: 'b', by: 'd' })).toThrow('is there 2 times');
});

test('the caches of Go are removed and the built parts stay', () => {
  vi.stubEnv('KF_CACHE', folder);
  for (const file of ['go/build/x', 'go/mod/y', 'parts/pause/pause']) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), '');
  }
  removeGoCaches();
  expect([existsSync(path.join(folder, 'go')), existsSync(path.join(folder, 'parts/pause/pause'))]).toEqual([false, true]);
});

test('the remains of an interrupted build do not count as built, and are removed', () => {
  vi.stubEnv('KF_CACHE', folder);
  expect(hasParts()).toBe(false);
  mkdirSync(path.join(folder, 'parts', 'kubernetes-0123456789ab.4711.tmp'), { recursive: true });
  expect(hasParts()).toBe(false);
  mkdirSync(path.join(folder, 'parts', 'pause-0123456789ab'));
  removeUnfinishedParts();
  expect([hasParts(), readdirSync(path.join(folder, 'parts'))]).toEqual([true, ['pause-0123456789ab']]);
});

const parts = path.join(import.meta.dirname, '../../../tools/cluster/parts');

function versions(part: string): Map<string, string> {
  const requirements = readFileSync(path.join(parts, part, 'go.mod'), 'utf8')
    .replaceAll(/^exclude \([^)]*\)/gm, '')
    .matchAll(/^\s+(\S+) (v\S+)(?: \/\/ indirect)?$/gm);
  return new Map([...requirements].map((match): [string, string] => [match[1] ?? '', match[2] ?? '']));
}

/** Two programs share a compiled package if they have equal versions of its module and of all modules that it needs. */
const shared = [
  /^k8s\.io\/(api|apimachinery|apiserver|client-go|component-base|klog\/v2|kube-openapi|utils)$/,
  /^golang\.org\/x\/(net|oauth2|sync|sys|term|text|time)$/,
  /^google\.golang\.org\/(grpc|protobuf)$/,
  /^go\.opentelemetry\.io\/otel(\/trace|\/metric|\/sdk)?$/,
];

test.each(['coredns', 'kwok', 'local-path-provisioner', 'metrics-server', 'netpol', 'traefik'])(
  'Kubernetes and %s use the same versions of modules, so that their packages are compiled once',
  (part) => {
    const kubernetes = versions('kubernetes');
    const others = [...versions(part)].filter(([module]) => shared.some((pattern) => pattern.test(module)) && kubernetes.has(module));
    expect(others.length).toBeGreaterThan(5);
    expect(others.filter(([module, version]) => kubernetes.get(module) !== version)).toEqual([]);
  },
);
