#!/usr/bin/env node
// Starts kf. Nothing is imported before Node's version is known to do: older ones could not even read what comes next.
var parts = process.versions.node.split('.');
var major = Number(parts[0]);
var minor = Number(parts[1]);
var patch = Number(parts[2]);
var fits = (major === 22 && (minor > 22 || (minor === 22 && patch >= 2))) || (major === 24 && minor >= 15) || major >= 26;
if (!fits) {
  process.stderr.write(
    'kf needs Node.js 22.22.2 or newer of line 22, 24.15 or newer of line 24, or 26 and up, and this is ' + process.versions.node + '.\n',
  );
  process.exitCode = 1;
} else {
  import('node:module')
    .then(function (module) {
      if (module.enableCompileCache) module.enableCompileCache();
      return import('../dist/main.js');
    })
    .then(function (kf) {
      return kf.start(process.argv, function (code) {
        process.exit(code);
      });
    })
    .then(function (code) {
      process.exitCode = code;
    });
}
