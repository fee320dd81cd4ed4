// Program: the source container of a build pod.

import process from 'node:process';
import { runFetch, settingsFromEnv } from './fetch.ts';

const aborter = new AbortController();
process.on('SIGTERM', () => aborter.abort());
process.exitCode = await runFetch(settingsFromEnv(process.env), aborter.signal, (line) => void process.stdout.write(`${line}\n`));
