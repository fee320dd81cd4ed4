import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deferred, deferredPackages, listFaults, oclifVersion } from '../../../tools/oclif-deferred.ts';

const installed = path.resolve('node_modules/@oclif/core');
/** Files that every command loads, as the bundler reports them to the check. */
const bundled = [
  'lib/command.js',
  'lib/flags.js',
  'lib/logger.js',
  'lib/help/util.js',
  'lib/errors/index.js',
  'lib/errors/errors/cli.js',
  ...deferred.map(({ file }) => file),
];
let core: string;

beforeEach(() => {
  core = mkdtempSync(path.join(tmpdir(), 'kf-oclif-'));
  for (const part of ['lib', 'package.json']) cpSync(path.join(installed, part), path.join(core, part), { recursive: true });
});
afterEach(() => rmSync(core, { recursive: true, force: true }));

function change(file: string, edit: (text: string) => string): void {
  writeFileSync(path.join(core, file), edit(readFileSync(path.join(core, file), 'utf8')));
}

describe('the list of what the bundle leaves out of oclif', () => {
  it('fits the installed oclif, and gives a reason for each part', () => {
    expect(listFaults(installed, bundled)).toEqual([]);
    expect([...deferred, ...deferredPackages].filter(({ reason }) => !reason.endsWith('.'))).toEqual([]);
  });

  it('must be checked again for another version', () => {
    change('package.json', (text) => text.replace(`"${oclifVersion}"`, '"5.9.0"'));
    expect(listFaults(core, bundled)).toEqual([
      `@oclif/core is 5.9.0; the list of what the bundle defers was made for ${oclifVersion}. Read tools/oclif-deferred.ts again.`,
    ]);
  });

  it('is refused if a file does not exist any more, and names it', () => {
    rmSync(path.join(core, 'lib/parser/index.js'));
    expect(listFaults(core, bundled)).toEqual([
      '@oclif/core has no lib/parser/index.js any more, which the bundle defers. Read tools/oclif-deferred.ts again.',
    ]);
  });

  it('is refused if an export does not exist any more, and names it', () => {
    change('lib/config/index.js', (text) => text.replaceAll('Config', 'Settings'));
    expect(listFaults(core, bundled)).toEqual([
      "lib/config/index.js of @oclif/core exports no 'Config' any more, which the bundle defers. Read tools/oclif-deferred.ts again.",
    ]);
  });

  it('is refused if a feature has no alternative, and names it', () => {
    change('lib/command.js', (text) => `${text}\nParser.validate();\n`);
    expect(listFaults(core, bundled)).toEqual([
      "lib/command.js of @oclif/core uses 'validate' of lib/parser/index.js, which the bundle defers without it. Read tools/oclif-deferred.ts again.",
    ]);
  });

  it('is refused if nothing imports a part, and names it', () => {
    expect(
      listFaults(
        core,
        bundled.filter((file) => file !== 'lib/parser/index.js'),
      ),
    ).toEqual(['Nothing that every command loads asks for lib/parser/index.js of @oclif/core any more: the list need not name it.']);
  });

  it('is refused if oclif uses more of a package, and names it', () => {
    change('lib/help/util.js', (text) => `${text}\nejs_1.default.compile('');\n`);
    expect(listFaults(core, bundled)).toEqual([
      "lib/help/util.js of @oclif/core uses 'compile' of the package ejs, which the bundle defers without it. Read tools/oclif-deferred.ts again.",
    ]);
  });

  it('is refused if nothing imports a package, and names it', () => {
    const without = bundled.filter((file) => file !== 'lib/logger.js');
    expect(listFaults(installed, without)).toEqual([
      'Nothing that every command loads asks for the package debug any more: the list need not name it.',
    ]);
  });
});
