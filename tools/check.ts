// `npm run check [NAME…] [--fix]`: all checks of the code that need no run of it. All of them run, then the failures are named.

import { spawnSync } from 'node:child_process';
import { toolsEnv } from './environment.ts';

const checks: Record<string, string[]> = {
  types: ['tsc', '-p', '.'],
  lint: ['eslint', '.', '--max-warnings', '0'],
  format: ['prettier', '--check', '--log-level', 'warn', '.'],
  layers: ['depcruise', '--config', '.dependency-cruiser.mjs', 'src', 'test', 'tools', 'bin'],
  dead: ['knip'],
  lock: ['node', 'tools/lock.ts'],
  compatible: ['node', 'tools/compatible.ts'],
  surface: ['node', 'tools/surface.ts'],
  generated: ['node', 'tools/generate.ts', '--check'],
};

const args = process.argv.slice(2);
const fix = args.includes('--fix');
const named = args.filter((arg) => !arg.startsWith('-'));
const wanted = named.length > 0 ? named : Object.keys(checks);
const failed: string[] = [];

for (const name of wanted) {
  const command = checks[name];
  if (command === undefined) throw new Error(`There is no check '${name}'. Known: ${Object.keys(checks).join(', ')}.`);
  const fixed = fix ? command.map((word) => (word === '--check' && name === 'format' ? '--write' : word)) : command;
  const [program = '', ...rest] = fixed;
  const started = Date.now();
  const result = spawnSync(program, fix && name === 'lint' ? [...rest, '--fix'] : rest, { stdio: 'inherit', env: toolsEnv() });
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  console.log(`${result.status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  if (result.status !== 0) failed.push(name);
}
if (failed.length > 0) {
  console.log(`Failed: ${failed.join(', ')}. Run one alone with: npm run check -- ${failed[0]}`);
  process.exitCode = 1;
}
