// With the Go that also builds the parts of the cluster. Programs here import nothing, so that only Go's runtime is compiled.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isPacked } from '../../../tools/cluster/images/go-layer.ts';
import type { PhaseResult } from './buildpack-run.ts';
import { Workspace } from './buildpack-run.ts';

const program = 'package main\n\nfunc main() { println("hello") }\n';
let workspace: Workspace;
let cache: string;

beforeAll(() => {
  cache = mkdtempSync(join(tmpdir(), 'kf-go-'));
});
beforeEach(() => {
  workspace = new Workspace();
  workspace.write('go.mod', 'module example.com/hello\n\ngo 1.21\n');
});
afterEach(() => rmSync(workspace.root, { recursive: true, force: true, maxRetries: 5 }));
afterAll(() => rmSync(cache, { recursive: true, force: true }));

const build = (env: NodeJS.ProcessEnv = {}): Promise<PhaseResult> => workspace.build('go', { GOCACHE: cache, GOPROXY: 'off', ...env });
const builtPrograms = (...names: string[]): boolean[] => names.map((name) => existsSync(join(workspace.layers, 'programs/bin', name)));

describe('a module', () => {
  test('with a program in its folder has this as its web process, and others are not built', async () => {
    workspace.write('main.go', program);
    workspace.write('cmd/other/main.go', program);
    const result = await build();
    expect([result.code, result.output]).toEqual([0, expect.stringContaining('kf/go: web process: hello\n')]);
    expect(workspace.layerFile('launch.toml')).toBe('[[processes]]\ntype = "web"\ncommand = ["hello"]\ndefault = true\n');
    expect(builtPrograms('hello', 'other')).toEqual([true, false]);
  });

  test('with programs below its folder gets all of them, and says how to name the one to start', async () => {
    for (const name of ['api', 'worker']) workspace.write(`cmd/${name}/main.go`, program);
    const result = await build();
    expect(result.output).toContain('the module has 2 programs (api worker) and no Procfile; name the one to start (kf push -c COMMAND)\n');
    expect([workspace.layerFile('launch.toml'), builtPrograms('api', 'worker')]).toEqual(['', [true, true]]);
  });

  test.each(['GO_INSTALL_PACKAGE_SPEC', 'BP_GO_TARGETS'])('gets the program that %s names', async (variable) => {
    for (const name of ['api', 'worker']) workspace.write(`cmd/${name}/main.go`, program);
    expect((await build({ [variable]: './cmd/worker' })).output).toContain('kf/go: web process: worker\n');
    expect(builtPrograms('api', 'worker')).toEqual([false, true]);
  });

  test('without a program is refused', async () => {
    workspace.write('lib.go', 'package lib\n');
    const result = await build();
    expect([result.code, result.output]).toEqual([1, expect.stringContaining("kf/go: the module has no program: no package 'main'")]);
  });
});

describe('a second build', () => {
  const metadata = (): string => workspace.layerFile('programs.toml');
  /** As the lifecycle does: it restores the metadata of a layer in its own form; the content stays in the previous image. */
  const restoreMetadata = (): void => {
    rmSync(join(workspace.layers, 'programs'), { recursive: true });
    writeFileSync(join(workspace.layers, 'programs.toml'), metadata().replace(/^.*\[metadata\]\n/s, '[metadata]\n  '));
  };
  const kept = 'kf/go: no source of the programs has changed: those of the previous build are used again\nkf/go: web process: hello\n';

  test('keeps the programs if only other files changed', async () => {
    workspace.write('main.go', program);
    await build();
    const before = metadata();
    restoreMetadata();
    workspace.write('README.md', 'new');
    expect((await build()).output).toBe(kept);
    expect(metadata()).toBe(before);
  });

  test.each([
    ['a source', 'main.go', program.replace('hello', 'changed')],
    ['an embedded file', 'text.txt', 'changed'],
    ['the module', 'go.mod', 'module example.com/hello\n\ngo 1.22\n'],
  ])('builds again if %s changed', async (_, file, content) => {
    workspace.write('main.go', program.replace('\n\n', '\n\nimport _ "embed"\n\n//go:embed text.txt\nvar text string\n\n'));
    workspace.write('text.txt', 'text');
    expect((await build()).output).toContain('kf/go: go build .,');
    workspace.write(file, content);
    expect((await build()).output).toContain('kf/go: go build .,');
  });

  test('builds again with flags, which could change anything', async () => {
    workspace.write('main.go', program);
    for (let time = 1; time <= 2; time++) expect((await build({ GOFLAGS: '-tags=x' })).output).toContain('kf/go: go build .,');
  });
});

describe('a build that fails ends with the cause', () => {
  test('a compile error with its file and line', async () => {
    workspace.write('main.go', 'package main\n\nfunc main() {\n\tprintln(missing)\n}\n');
    const result = await build();
    expect(result.code).toBe(1);
    expect(result.output).toMatch(/^\.\/main\.go:4:10: undefined: missing$/m);
    expect(result.output).toMatch(/kf\/go: go build failed: \.\/main\.go:4:10: undefined: missing\n$/);
  });

  test('modules that cannot be downloaded, with what to do', async () => {
    workspace.write('go.mod', 'module example.com/hello\n\ngo 1.21\n\nrequire example.com/lib v1.0.0\n');
    workspace.write('go.sum', 'example.com/lib v1.0.0 h1:x\nexample.com/lib v1.0.0/go.mod h1:x\n');
    workspace.write('main.go', program.replace('\n\n', '\n\nimport _ "example.com/lib"\n\n'));
    // Nothing listens on this port of the loopback address.
    const result = await build({ GOPROXY: 'http://127.0.0.1:9', GONOSUMDB: '*' });
    expect(result.code).toBe(1);
    expect(result.output).toMatch(/kf\/go: the modules cannot be downloaded: .*\(go mod vendor\).*\n$/);
  });

  test('a Go that is too old', async () => {
    workspace.write('go.mod', 'module example.com/hello\n\ngo 1.999\n');
    workspace.write('main.go', program);
    expect((await build()).output).toMatch(/^kf\/go: go: go\.mod requires go >= 1\.999 /);
  });
});

test.each([
  ['src/net/http/server.go', true],
  ['src/os/file_unix.go', true],
  ['src/net/http/server_test.go', false],
  ['src/os/file_windows.go', false],
  ['src/runtime/sys_darwin_arm64.s', false],
  ['src/cmd/go/main.go', false],
  ['src/go/build/testdata/a.go', false],
  ['pkg/tool/linux_amd64/compile', true],
  ['pkg/tool/linux_amd64/vet', false],
  ['doc/README.md', false],
])('of Go, %s is in the builder: %s', (path, packed) => {
  expect(isPacked(path, 'pkg/tool/linux_amd64')).toBe(packed);
});
