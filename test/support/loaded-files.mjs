// Preload: lists the files that a program loads, as one line on stderr when it ends; then makes it fail so that the line is read.
import { registerHooks } from 'node:module';

const files = new Set();
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) files.add(new URL(url).pathname);
    return next(url, context);
  },
});
process.on('exit', () => {
  process.stderr.write(`\nLOADED ${JSON.stringify([...files])}\n`);
  process.exitCode = 99;
});
