// Runs the npm mirror until it is ended: node serve-npm-mirror.ts HOST PORT TARBALL_FOLDER
import { startNpmMirror } from './npm-mirror.ts';

const [host, port, tarballDir] = process.argv.slice(2);
if (host === undefined || port === undefined || tarballDir === undefined) {
  console.error('usage: serve-npm-mirror.ts HOST PORT TARBALL_FOLDER');
  process.exitCode = 1;
} else {
  const mirror = await startNpmMirror({ host, port: Number(port), tarballDir });
  console.log(`npm mirror at ${mirror.url}`);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void mirror.close());
}
