// The users and the target of the benchmarks: a space developer and an auditor with their own homes, who have targeted the space that setup
// created.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { tracked } from '../support/interruption.ts';
import { Kf, ringEnv, type Ran } from '../support/kf.ts';

export interface Scene {
  developer: Kf;
  auditor: Kf;
  space: string;
  /** For files of the measurements. */
  folder: string;
  /** An image that answers on its port; tags 1, 2 … */
  sample: (version: number) => string;
  remove(): Promise<void>;
}

/** A user with a home folder for target and source cache, as on a laptop. */
async function person(who: 'developer' | 'auditor', folder: string): Promise<Kf> {
  const home = path.join(folder, who);
  await mkdir(home, { recursive: true });
  const kf = await Kf.create(who, { CF_HOME: home, XDG_CACHE_HOME: path.join(home, 'cache') });
  await kf.ok('target', '-o', ringEnv('KF_TEST_ORG'), '-s', ringEnv('KF_TEST_SPACE'));
  return kf;
}

export async function openScene(): Promise<Scene> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kf-bench-'));
  const [developer, auditor] = await Promise.all([person('developer', folder), person('auditor', folder)]);
  const registry = ringEnv('KF_CLUSTER_NODE_REGISTRY');
  return {
    developer,
    auditor,
    space: ringEnv('KF_TEST_SPACE_GUID'),
    folder,
    sample: (version) => `${registry}/kf/sample:${version}`,
    remove: async () => {
      await Promise.all([developer.remove(), auditor.remove()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Runs a child process that must succeed, and measures its time. */
export function timed(program: string, args: string[], env: NodeJS.ProcessEnv = process.env): Promise<Ran> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { env, maxBuffer: 256 * 1024 * 1024 }, (error, stdout, stderr) => {
      const milliseconds = performance.now() - started;
      if (error === null) resolve({ code: 0, stdout, stderr, milliseconds });
      else reject(new Error(`${program} ${args.join(' ')}: ${stderr || error.message}`));
    });
    tracked(child);
  });
}
