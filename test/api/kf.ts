// The bundled kf, which `test/run.ts` has built, against the control plane of the api ring.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Answer } from './kubectl.ts';

const root = join(import.meta.dirname, '../..');

export function kf(...args: string[]): Promise<Answer> {
  return kfWith(process.env['KF_TEST_KUBECONFIG'] ?? '', args);
}

/** @param kubeconfig of the user */
export function kfWith(kubeconfig: string, args: readonly string[]): Promise<Answer> {
  const home = mkdtempSync(join(tmpdir(), 'kf-home-'));
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, KUBECONFIG: kubeconfig };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, 'bin/run.js'), ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const ran: Answer = { code: 0, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (ran.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (ran.stderr += text));
    child.on('error', reject);
    child.on('close', (code) => {
      rmSync(home, { recursive: true, force: true });
      resolve({ ...ran, code: code ?? 255 });
    });
  });
}
