// Runs and never listens.
console.log('busy with something else');
setInterval(() => undefined, 60_000);
process.on('SIGTERM', () => process.exit(0));
