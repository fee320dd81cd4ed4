// The programs of docs/backup.md with a kubectl that fails: what has not arrived is not taken as saved or restored. They need sh, tar and jq.

import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

/** kubectl for a cluster without objects, whose registry's volume is a folder. Its failures are in variables of the environment. */
const fakeKubectl = `#!/bin/sh
case "$*" in
*"$FAILS"*) echo 'The connection to the server was refused' >&2; exit 1;;
*"get deployment kf-registry"*) echo deployment.apps/kf-registry;;
*"get deployment kf-controller"*) ;;
*mkdir*) mkdir -p "$VOLUME/docker/registry/v2";;
exec*tar*)
  while [ "$1" != -C ]; do shift; done
  shift 2
  tar -C "$VOLUME" "$@" > "$VOLUME.tar" 2> /dev/null
  head -c "$ARRIVES" "$VOLUME.tar"
  exit "$STATUS";;
*) echo '{"items": []}';;
esac
`;

const page = readFileSync('docs/backup.md', 'utf8');
let folder: string;

const inFolder = (...names: string[]): string => path.join(folder, ...names);

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kf-backup-'));
  for (const program of ['backup.sh', 'restore.sh']) {
    const [, text = ''] = new RegExp(`^\`\`\`sh\n(#!/bin/sh\n# ${program} [^]*?)^\`\`\`$`, 'm').exec(page) ?? [];
    writeFileSync(inFolder(program), text);
  }
  for (const place of ['bin', 'volume']) mkdirSync(inFolder(place));
  writeFileSync(inFolder('bin', 'kubectl'), fakeKubectl);
  chmodSync(inFolder('bin', 'kubectl'), 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** One repository and one blob. */
function fillRegistry(): void {
  for (const place of ['repositories/app', 'blobs/sha256']) {
    mkdirSync(inFolder('volume/docker/registry/v2', place), { recursive: true });
    writeFileSync(inFolder('volume/docker/registry/v2', place, 'file'), place);
  }
}

interface Failure {
  /** Part of the command line of a request that fails. */
  fails?: string;
  /** As many bytes of the archive arrive. */
  arrives?: number;
  /** What kubectl ends with after the archive. */
  status?: number;
}

function run(program: 'backup.sh' | 'restore.sh', { fails = 'nothing fails', arrives = 1_000_000, status = 0 }: Failure = {}) {
  const env = {
    ...process.env,
    PATH: `${inFolder('bin')}:${process.env['PATH'] ?? ''}`,
    VOLUME: inFolder('volume'),
    ...{ FAILS: fails, ARRIVES: String(arrives), STATUS: String(status) },
  };
  return spawnSync('sh', [inFolder(program), inFolder('backup')], { env, encoding: 'utf8' });
}

describe('backup.sh', () => {
  test.each([0, 1])('has saved when the whole archive has arrived, also if kubectl ends with %i', (status) => {
    fillRegistry();
    expect(run('backup.sh', { status })).toMatchObject({ status: 0, stdout: 'saved: \n' });
    mkdirSync(inFolder('new'));
    spawnSync('tar', ['-C', inFolder('new'), '-xf', inFolder('backup/images.tar')]);
    expect(readFileSync(inFolder('new/docker/registry/v2/blobs/sha256/file'), 'utf8')).toBe('blobs/sha256');
  });

  // Two blocks of 512 bytes are the heads of the first two members, which are folders.
  test.each([0, 1])('has not saved when the archive was cut between two members, also if kubectl ends with %i', (status) => {
    fillRegistry();
    const ended = run('backup.sh', { arrives: 1_024, status });
    expect(ended).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('The end of images.tar has not arrived') as string,
    });
  });

  test('has not saved when tar fails', () => {
    fillRegistry();
    expect(run('backup.sh', { status: 2 })).toMatchObject({ status: 1, stdout: '' });
  });

  test('saves a registry that is empty', () => {
    expect(run('backup.sh')).toMatchObject({ status: 0, stdout: 'saved: \n' });
  });

  test.each(['get crds', 'horizontalpodautoscalers', 'get namespaces', 'get deployment kf-registry', 'get deployment/kf-registry'])(
    'has not saved when the request with "%s" fails',
    (fails) => {
      fillRegistry();
      expect(run('backup.sh', { fails })).toMatchObject({ status: 1, stdout: '' });
    },
  );
});

describe('restore.sh', () => {
  beforeEach(() => {
    run('backup.sh');
    rmSync(inFolder('backup/images.tar'));
  });

  test('has restored when no request fails', () => {
    expect(run('restore.sh')).toMatchObject({ status: 0, stdout: expect.stringContaining('restored: 0 objects') as string });
  });

  test.each(['get deployment kf-controller', 'get cfapps'])('has not restored when the request with "%s" fails', (fails) => {
    const ended = run('restore.sh', { fails });
    expect(ended.status).toBe(1);
    expect(ended.stdout).not.toContain('restored');
    expect(existsSync(inFolder('backup/objects.json'))).toBe(true);
  });
});
