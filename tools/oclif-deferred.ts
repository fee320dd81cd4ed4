// The parts of oclif that the bundle leaves out of every command's start. Each part is loaded when it is first used.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The oclif that this list was made for. */
export const oclifVersion = '5.1.9';

/** Loads oclif as a whole, from a file of its own. */
const whole = "import('kf:oclif')";

/** Loads the file itself. */
const own = "require('kf:own')";

const again = 'Read tools/oclif-deferred.ts again.';

interface DeferredPart {
  /** Within the folder of `@oclif/core`. */
  file: string;
  /** Exports of the file that the rest of oclif may use. */
  exports: string[];
  reason: string;
  /** Its replacement in the bundle. */
  contents: string;
}

export const deferred: readonly DeferredPart[] = [
  {
    file: 'lib/config/index.js',
    exports: ['Config'],
    reason: 'finds plugins, reads their manifests and compiles TypeScript. Who runs a command gives it its configuration.',
    contents: `exports.Config = { load: (options) => options?._base ? Promise.resolve(options) : ${whole}.then(({ Config }) => Config.load(options)) };`,
  },
  {
    file: 'lib/errors/handle.js',
    exports: ['handle'],
    reason: 'ends a process of oclif with an error. kf has one place for that (lib/output/error.ts).',
    contents: `exports.handle = (error) => ${whole}.then(({ Errors }) => Errors.handle(error));`,
  },
  {
    file: 'lib/help/index.js',
    exports: ['loadHelpClass'],
    reason: 'help has the sections of cf (lib/output/help.ts). oclif’s is asked for by its flag `help` alone.',
    contents: `exports.loadHelpClass = (config) => ${whole}.then(({ loadHelpClass }) => loadHelpClass(config));`,
  },
  {
    file: 'lib/parser/index.js',
    exports: ['parse'],
    reason: 'commands read the syntax of cf (lib/cf/command-line.ts).',
    contents: `exports.parse = (...input) => ${whole}.then(({ Parser }) => Parser.parse(...input));`,
  },
  {
    file: 'lib/ux/theme.js',
    exports: ['colorize', 'parseTheme'],
    reason: 'loads ansis, which makes a style of every colour: 2 ms. kf colours its own output.',
    contents: `exports.colorize = (...input) => ${own}.colorize(...input); exports.parseTheme = (...input) => ${own}.parseTheme(...input);`,
  },
  {
    file: 'lib/ux/action/spinner.js',
    exports: ['default'],
    reason:
      'is made before anything is to be shown, with all it needs: 2 ms. kf shows its own progress; where a command asks for oclif’s, it is the form without a terminal.',
    contents: `module.exports = require('./simple.js');`,
  },
];

interface DeferredPackage {
  /** Its main file, within node_modules. */
  file: string;
  /** What oclif uses of it: '' stands for a call of the package itself. */
  uses: string[];
  reason: string;
  contents: string;
}

const calls = (file: string, reason: string): DeferredPackage => ({
  file,
  uses: [''],
  reason,
  contents: `module.exports = (...input) => ${own}(...input);`,
});

/** Packages that files of oclif import at their start, and use later or never. */
export const deferredPackages: readonly DeferredPackage[] = [
  {
    file: 'ejs/lib/cjs/ejs.js',
    uses: ['render'],
    reason: 'fills in the templates of oclif’s help.',
    contents: `exports.render = (...input) => ${own}.render(...input);`,
  },
  calls('wrap-ansi/index.js', 'wraps the text of errors of oclif, and makes a table of all colours for it.'),
  calls('indent-string/index.js', 'indents the text of errors of oclif.'),
  calls('clean-stack/index.js', 'shortens the stack of errors of oclif.'),
  calls('debug/src/index.js', 'prints what DEBUG asks for.'),
];

/** The files of oclif that the bundle has as they are. */
const keptOf = (bundled: readonly string[]): string[] =>
  bundled.filter((file) => file.endsWith('.js') && !deferred.some((part) => part.file === file));

/** Files of `lib` that import another one, with the names that they use of it. */
function usesOf(text: string, from: string, target: string): string[] {
  const found = [...text.matchAll(/(\w+) = (?:__importStar\()?require\("(\.[^"]*)"\)/g)];
  return found
    .filter(([, , asked = '']) => {
      const file = path.posix.join(path.posix.dirname(from), asked);
      return [file, `${file}.js`, `${file}/index.js`].includes(target);
    })
    .flatMap(([, name = '']) => [...text.matchAll(new RegExp(String.raw`\b${name}\.(\w+)`, 'g'))].map(([, used = '']) => used));
}

/** What a file of `lib` uses of a package: names, or '' for a call of the package. */
function packageUses(text: string, name: string): string[] {
  const found = [...text.matchAll(new RegExp(String.raw`(\w+) = (?:__importDefault\()?require\("${name}"\)`, 'g'))];
  return found.flatMap(([, local = '']) =>
    [...text.matchAll(new RegExp(String.raw`\b${local}\.default(?:\.(\w+))?`, 'g'))].map(([, used = '']) => used),
  );
}

/** The entries of the list of packages that are not true any more, as sentences. */
function packageFaults(core: string, bundled: readonly string[]): string[] {
  const texts = keptOf(bundled).map((file) => [file, readFileSync(path.join(core, file), 'utf8')] as const);
  return deferredPackages.flatMap(({ file, uses }) => {
    const [name = ''] = file.split('/');
    const found = texts.flatMap(([from, text]) => packageUses(text, name).map((used) => ({ from, used })));
    if (found.length === 0) return [`Nothing that every command loads asks for the package ${name} any more: the list need not name it.`];
    return found
      .filter(({ used }) => !uses.includes(used))
      .map(
        ({ from, used }) => `${from} of @oclif/core uses '${used}' of the package ${name}, which the bundle defers without it. ${again}`,
      );
  });
}

/**
 * The entries of the list that are not true any more, as sentences.
 * @param core the folder of `@oclif/core`
 * @param bundled its files that every command loads, relative to it
 */
export function listFaults(core: string, bundled: readonly string[]): string[] {
  const { version } = JSON.parse(readFileSync(path.join(core, 'package.json'), 'utf8')) as { version: string };
  const faults =
    version === oclifVersion
      ? []
      : [`@oclif/core is ${version}; the list of what the bundle defers was made for ${oclifVersion}. ${again}`];
  for (const { file, exports } of deferred) {
    if (!existsSync(path.join(core, file))) {
      faults.push(`@oclif/core has no ${file} any more, which the bundle defers. ${again}`);
      continue;
    }
    const text = readFileSync(path.join(core, file), 'utf8');
    for (const name of exports.filter((one) => !text.includes(`exports.${one} = `) && !text.includes(`exports, "${one}"`)))
      faults.push(`${file} of @oclif/core exports no '${name}' any more, which the bundle defers. ${again}`);
    if (!bundled.includes(file))
      faults.push(`Nothing that every command loads asks for ${file} of @oclif/core any more: the list need not name it.`);
    for (const from of keptOf(bundled)) {
      const used = usesOf(readFileSync(path.join(core, from), 'utf8'), from, file);
      for (const name of new Set(used.filter((one) => !exports.includes(one))))
        faults.push(`${from} of @oclif/core uses '${name}' of ${file}, which the bundle defers without it. ${again}`);
    }
  }
  return [...faults, ...packageFaults(core, bundled)];
}
