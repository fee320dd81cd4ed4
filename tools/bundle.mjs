// Builds what is shipped: the CLI split by command, the programs that run in the cluster, and oclif's manifest. It reports sizes.
// `--cli DIR` builds only the CLI, with its start script, in a folder of its own, for tests.
// `--modules DIR FILE...` builds single modules as they are in the CLI, for tests of code that no command uses yet.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { deferred, deferredPackages, listFaults } from './oclif-deferred.ts';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const [option, folder, ...files] = process.argv.slice(2);
const cliFolder = option === '--cli' ? path.resolve(folder) : undefined;
const dist = path.join(cliFolder ?? root, 'dist');
const pkg = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const toolchain = ['typescript', 'ts-node', 'tsx'];

/** Bundled CommonJS asks for Node's own modules in this way, and oclif for a plugin's files; all else is in the bundle. One line, since every chunk runs it. */
const banner = {
  js: "const require = (name) => process.getBuiltinModule(name) ?? process.getBuiltinModule('node:module').createRequire(import.meta.url)(name);",
};

const core = path.join(root, 'node_modules/@oclif/core');

/** Parts of oclif that a command does not need to start are loaded when they are used (tools/oclif-deferred.ts). */
const leanOclif = {
  name: 'lean-oclif',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^kf:own$/ }, ({ importer }) => ({ path: importer, suffix: '?own' }));
    onLoad({ filter: /[\\/]@oclif[\\/]core[\\/]lib[\\/].*\.js$/ }, ({ path: file, suffix }) => {
      if (suffix !== '') return undefined;
      const found = deferred.find((part) => path.join(core, part.file) === file);
      return found && { contents: found.contents, loader: 'js', resolveDir: path.dirname(file) };
    });
    onLoad({ filter: /[\\/]node_modules[\\/](ejs|wrap-ansi|indent-string|clean-stack|debug)[\\/].*\.js$/ }, ({ path: file, suffix }) => {
      if (suffix !== '') return undefined;
      const found = deferredPackages.find((part) => path.join(root, 'node_modules', part.file) === file);
      return found && { contents: found.contents, loader: 'js', resolveDir: path.dirname(file) };
    });
  },
};

/** Distinguishes the modules of the whole oclif from the same files in the reduced one. */
const whole = '?whole';

/** `@oclif/core` itself, and `kf:oclif` in the replacements of its parts: oclif with nothing left out, and all its imports. */
const wholeOclif = {
  name: 'whole-oclif',
  setup({ onResolve, onLoad, resolve }) {
    onResolve({ filter: /.*/ }, async ({ path: asked, pluginData, kind, importer, resolveDir }) => {
      const begins = asked === '@oclif/core' || asked === 'kf:oclif';
      if (pluginData?.isFound === true || (!begins && pluginData?.isWhole !== true)) return undefined;
      const name = asked === 'kf:oclif' ? '@oclif/core' : asked;
      const found = await resolve(name, { kind, importer, resolveDir: begins ? root : resolveDir, pluginData: { isFound: true } });
      if (found.errors.length > 0 || found.external || found.namespace !== 'file') return found;
      return { path: found.path, suffix: whole };
    });
    onLoad({ filter: /\.(c?js|mjs|json)$/ }, ({ path: file, suffix }) => {
      if (suffix !== whole) return undefined;
      const loader = file.endsWith('.json') ? 'json' : 'js';
      return { contents: readFileSync(file, 'utf8'), loader, pluginData: { isWhole: true } };
    });
  },
};

/** kf's spinner is the standard one of ora, which has two forms; the list has some 90. Plugins of oclif still get all of them. */
const standardSpinner = {
  name: 'standard-spinner',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]cli-spinners[\\/]spinners\.json$/ }, ({ path: file }) => {
      const { dots, line } = JSON.parse(readFileSync(file, 'utf8'));
      return { contents: JSON.stringify({ dots, line }), loader: 'json' };
    });
  },
};

/**
 * client-node only reads logins of old kubeconfigs for kf (src/lib/kube/client-node.ts). The classes of its 700 kinds of objects serve its API
 * clients alone; with them it would have 360 KiB more.
 */
const noModels = {
  name: 'no-models',
  setup({ onLoad }) {
    const model = /client-node[\\/]dist[\\/]gen[\\/]models[\\/]\w+\.js$/;
    onLoad({ filter: model }, ({ path: file }) => {
      const text = readFileSync(file, 'utf8');
      const again = [...text.matchAll(/^export \* from .*$/gm)].map(([whole]) => whole);
      const names = [...text.matchAll(/^export class (\w+)/gm)].map(([, name]) => `export class ${name} {}`);
      return { contents: [...again, ...names].join('\n'), loader: 'js' };
    });
  },
};

/** undici carries only the requests of client-node's API clients, which kf does not use either; with it the CLI would have 715 KiB more. */
const noApiClients = {
  name: 'no-api-clients',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^undici$/ }, ({ importer }) =>
      /client-node[\\/]dist[\\/]/.test(importer) ? { path: 'undici', namespace: 'no-api-clients', sideEffects: false } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'no-api-clients' }, () => ({
      contents: 'export const [Agent, ProxyAgent, fetch] = [];',
      loader: 'js',
    }));
  },
};

/**
 * `import … from 'node:http'` makes Node fill in every export, and one of them loads all of undici: 28 ms of CPU.
 * A property of the module that is read in this way does not.
 */
const lazyHttp = {
  name: 'lazy-http',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?http$/ }, () => ({ path: 'node:http', namespace: 'lazy-http' }));
    onLoad({ filter: /.*/, namespace: 'lazy-http' }, () => ({
      contents: `module.exports = process.getBuiltinModule('node:http');`,
      loader: 'js',
    }));
  },
};

/** kf opens WebSockets and accepts none: the server of ws, and its streams, are 7 KiB. */
const onlyClientOfWs = {
  name: 'only-client-of-ws',
  setup({ onLoad }) {
    const unused = { contents: 'module.exports = undefined;', loader: 'js' };
    onLoad({ filter: /[\\/]ws[\\/]lib[\\/](websocket-server|stream)\.js$/ }, () => unused);
  },
};

/** `a, b as c, type D` of an import as a destructuring pattern. */
function patternOf(names) {
  const kept = names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !name.startsWith('type '));
  return `{ ${kept.map((name) => name.replace(' as ', ': ')).join(', ')} }`;
}

/** An import of one of Node's own modules, as the formatter leaves it. */
const builtinImport = /^import (?!type )(?:\* as )?(\w+)?(?:, )?(?:\{([^}]*)\})? from '(node:[\w/]+)';$/gm;

const sourceFiles = readdirSync(path.join(root, 'src'), { recursive: true }).filter((name) => name.endsWith('.ts'));

/** The commands, and modules that another one loads with `import()`; relative to src, without `.ts`. */
const loadedAlone = new Set(
  sourceFiles.flatMap((name) => {
    const here = name.replaceAll('\\', '/');
    const text = readFileSync(path.join(root, 'src', name), 'utf8');
    const targets = [...text.matchAll(/import\('(\.[^']*)\.ts'\)/g)].map(([, target]) => path.posix.join(path.posix.dirname(here), target));
    return here.startsWith('commands/') ? [here.slice(0, -3), ...targets] : targets;
  }),
);

/**
 * The same for all other modules of Node in kf's own code: filling in the exports of `node:fs` loads its streams, those of `node:crypto` much more.
 * Together that is a tenth of what a reading command takes.
 */
const lazyBuiltins = {
  name: 'lazy-builtins',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path: file }) => {
      const contents = readFileSync(file, 'utf8').replaceAll(builtinImport, (_, whole, names, name) => {
        const patterns = [...(whole === undefined ? [] : [whole]), ...(names === undefined ? [] : [patternOf(names)])];
        return `const ${patterns.map((pattern) => `${pattern} = process.getBuiltinModule('${name}')`).join(', ')};`;
      });
      const relative = path.relative(path.join(root, 'src'), file).replaceAll('\\', '/').replace(/\.ts$/, '');
      const joined = loadedAlone.has(relative) ? `${contents}\nimport 'kf:core';\n` : contents;
      return { contents: relative === 'main' ? `${contents}\nimport 'kf:start';\n` : joined, loader: 'ts' };
    });
  },
};

/** @throws Error when the list of what is deferred no longer fits the oclif that was bundled */
function checkDeferred({ inputs }) {
  const own = Object.keys(inputs).flatMap((name) => /^node_modules\/@oclif\/core\/(.*)$/.exec(name.replaceAll('\\', '/'))?.[1] ?? []);
  const faults = listFaults(
    core,
    own.filter((name) => !name.includes('?')),
  );
  if (faults.length > 0) throw new Error(faults.join('\n'));
}

/** Small modules that main.ts needs before it knows the command. Every entry imports them, which puts them into one file. */
const startModules = [
  'lib/defined',
  'lib/errors',
  'lib/output/safe-text',
  'lib/output/terminal',
  'lib/session/settings',
  'lib/session/state',
  'lib/version',
];

/**
 * Modules that nearly every command needs, most of them small. By default the bundler makes a file of each, and every file costs a third of a
 * millisecond.
 */
const coreModules = [
  'declared',
  'lib/api/app',
  'lib/api/core',
  'lib/api/group',
  'lib/api/kf-info',
  'lib/api/names',
  'lib/api/object',
  'lib/api/pod-kind',
  'lib/api/sizes',
  'lib/cf/usage',
  'lib/cf/values',
  'lib/kube/credential',
  'lib/kube/errors',
  'lib/kube/lines',
  'lib/ops/rows',
  'lib/output/error',
  'lib/session/places',
  'lib/session/session',
  'lib/views/block',
  'lib/views/dates',
  'lib/wait',
];

/** Makes every entry file depend on the whole core: the bundler puts modules that all entries need into one file. */
const oneCore = {
  name: 'one-core',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^kf:(core|start)$/ }, ({ path: name }) => ({ path: name, namespace: 'kf-core', sideEffects: true }));
    onLoad({ filter: /.*/, namespace: 'kf-core' }, ({ path: name }) => ({
      contents: (name === 'kf:start' ? startModules : [...startModules, ...coreModules])
        .map((module) => `import './${module}.ts';`)
        .join('\n'),
      resolveDir: path.join(root, 'src'),
    }));
  },
};

const shared = {
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  legalComments: 'none',
  metafile: true,
  external: toolchain,
  define: {
    __KF_VERSION__: JSON.stringify(pkg.version),
    __filename: 'import.meta.filename',
    __dirname: 'import.meta.dirname',
    // `ws` looks for native helpers, and takes the result of the banner's `require` for a missing module (nothing) for one.
    'process.env.WS_NO_BUFFER_UTIL': '"1"',
    'process.env.WS_NO_UTF_8_VALIDATE': '"1"',
  },
  banner,
  logLevel: 'warning',
};

function commandNames() {
  const files = readdirSync(path.join(root, 'src/commands'));
  return files.filter((file) => file.endsWith('.ts')).map((file) => file.slice(0, -3));
}

/** dist/main.js, dist/commands/*.js and the chunks they share. */
async function bundleCli() {
  const commands = Object.fromEntries(commandNames().map((name) => [`commands/${name}`, path.join(root, 'src/commands', `${name}.ts`)]));
  const cli = await build({
    ...shared,
    entryPoints: { main: path.join(root, 'src/main.ts'), api: path.join(root, 'src/api.ts'), ...commands },
    outdir: dist,
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    plugins: [wholeOclif, leanOclif, standardSpinner, noModels, noApiClients, onlyClientOfWs, lazyHttp, lazyBuiltins, oneCore],
  });
  checkDeferred(cli.metafile);
  copyFileSync(path.join(root, 'src/api-types.d.ts'), path.join(dist, 'api.d.ts'));
  return cli;
}

/**
 * In the cluster the only login is the token of a service account, so the kubeconfig's legacy logins are left out, with the client-node that they
 * need. So are WebSockets: no program there runs commands in pods.
 */
const onlyInTheCli = {
  name: 'only-in-the-cli',
  setup({ onLoad }) {
    const absent = (name) => ({ contents: `export const ${name} = () => { throw new Error('not in the cluster'); };`, loader: 'ts' });
    onLoad({ filter: /src\/lib\/kube\/auth-provider\.ts$/ }, () => absent('authProviderCredential'));
    onLoad({ filter: /src\/lib\/kube\/websocket\.ts$/ }, () => absent('openWebSocket'));
  },
};

/** kf measures with counters, gauges and histograms. What else prom-client can do needs OpenTelemetry and t-digests, 60 KiB of the ConfigMap. */
const onlyUsedMetrics = {
  name: 'only-used-metrics',
  setup({ onLoad }) {
    onLoad({ filter: /prom-client\/lib\/(defaultMetrics|summary|pushgateway|cluster)\.js$/ }, () => ({ contents: '', loader: 'js' }));
  },
};

/** The controller loads the library for certificates, 170 KiB, only when it makes one. */
const certificatesApart = {
  name: 'certificates-apart',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/x509\.ts$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: './certificates.mjs', external: true } : undefined,
    );
  },
};

/** dist/controller/{controller,certificates,gate,fetch,pages}.mjs: one file each, for a stock Node image. */
async function bundlePrograms() {
  const programs = {
    controller: 'src/controller/main.ts',
    certificates: 'src/controller/certificates/x509.ts',
    gate: 'src/controller/gate/main.ts',
    fetch: 'src/controller/fetch/main.ts',
    pages: 'src/controller/pages/main.ts',
  };
  const results = [];
  for (const [name, entry] of Object.entries(programs)) {
    results.push(
      await build({
        ...shared,
        target: 'node24',
        entryPoints: [path.join(root, entry)],
        outfile: path.join(dist, 'controller', `${name}.mjs`),
        plugins: [onlyInTheCli, onlyUsedMetrics, certificatesApart],
      }),
    );
  }
  return results;
}

/** oclif's own reader makes the manifest of the bundled commands, so that its tools work on the package. */
async function writeManifest() {
  const { Plugin } = createRequire(import.meta.url)('@oclif/core');
  rmSync(path.join(root, 'oclif.manifest.json'), { force: true });
  const plugin = new Plugin({ root, type: 'core', errorOnManifestCreate: true, ignoreManifest: true, respectNoCacheDefault: true });
  await plugin.load();
  const commands = Object.fromEntries(Object.entries(plugin.manifest.commands).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(path.join(root, 'oclif.manifest.json'), `${JSON.stringify({ commands, version: pkg.version }, null, 2)}\n`);
}

const kib = (bytes) => `${(bytes / 1024).toFixed(0).padStart(6)} KiB`;

/** Bytes of every file that is loaded when `file` starts, before it does anything. */
function startBytes(outputs, file) {
  const seen = new Set();
  const visit = (name) => {
    if (seen.has(name)) return;
    seen.add(name);
    for (const { path: imported, kind } of outputs[name].imports) if (kind === 'import-statement' && outputs[imported]) visit(imported);
  };
  visit(file);
  return [...seen].reduce((sum, name) => sum + outputs[name].bytes, 0);
}

/** Prints sizes; a set of programs that does not fit into a ConfigMap ends the build. */
function report(cli, programs) {
  const { outputs } = cli.metafile;
  const total = Object.values(outputs).reduce((sum, { bytes }) => sum + bytes, 0);
  const main = Object.keys(outputs).find((name) => name.endsWith('dist/main.js'));
  const largest = Object.entries(outputs).toSorted(([, a], [, b]) => b.bytes - a.bytes)[0];
  process.stdout.write(
    `CLI        ${kib(total)} in ${Object.keys(outputs).length} files; kf --version loads${kib(startBytes(outputs, main))}; `,
  );
  process.stdout.write(`largest: ${path.basename(largest[0])}${kib(largest[1].bytes)}\n`);
  const sizes = programs
    .map(({ metafile }) => Object.entries(metafile.outputs)[0])
    .map(([name, { bytes }]) => [path.basename(name), bytes]);
  for (const [name, bytes] of sizes) process.stdout.write(`${name.padEnd(15)}${kib(bytes)}\n`);
  const sum = sizes.reduce((all, [, bytes]) => all + bytes, 0);
  if (sum > 0.9 * 1024 * 1024)
    throw new Error(`The programs for the cluster have ${sum} bytes together: more than a ConfigMap should hold.`);
}

async function bundleAll() {
  rmSync(dist, { recursive: true, force: true });
  const [cli, programs] = await Promise.all([bundleCli(), bundlePrograms()]);
  mkdirSync(path.join(root, '.kf'), { recursive: true });
  writeFileSync(path.join(root, '.kf', 'bundle-meta.json'), JSON.stringify(cli.metafile));
  await writeManifest();
  report(cli, programs);
}

function bundleModules() {
  const entryPoints = files.map((file) => path.resolve(root, file));
  const plugins = [leanOclif, lazyHttp, lazyBuiltins, oneCore];
  return build({ ...shared, entryPoints, outdir: path.resolve(folder), outExtension: { '.js': '.mjs' }, splitting: true, plugins });
}

async function bundleForTests() {
  rmSync(dist, { recursive: true, force: true });
  const { metafile } = await bundleCli();
  mkdirSync(path.join(cliFolder, 'bin'), { recursive: true });
  for (const file of ['package.json', 'bin/run.js']) copyFileSync(path.join(root, file), path.join(cliFolder, file));
  writeFileSync(path.join(cliFolder, 'meta.json'), JSON.stringify(metafile));
}

await (option === '--modules' ? bundleModules() : cliFolder === undefined ? bundleAll() : bundleForTests());
