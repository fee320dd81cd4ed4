// `node tools/surface.ts`: compares kf's commands with cf's, and fails on what is neither there nor decided.

import { join } from 'node:path';
import { compareAt } from './surface/read.ts';

const { commands, problems } = await compareAt(join(import.meta.dirname, '..'));
for (const problem of problems) process.stdout.write(`${problem}\n`);
const there = commands.filter(({ status }) => status !== 'refused' && status !== 'open');
process.stdout.write(`${commands.length} commands of cf, ${there.length} of them in kf; ${problems.length} to decide\n`);
if (problems.length > 0) process.exitCode = 1;
