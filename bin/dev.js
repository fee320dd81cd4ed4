#!/usr/bin/env node
// Starts kf from source: the same as run.js without a bundle, with source maps.
process.setSourceMapsEnabled(true);
const { start } = await import('../src/main.ts');
process.exitCode = await start(process.argv, (code) => process.exit(code));
