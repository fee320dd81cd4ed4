// The three lanes of a build pod as shell text: who does what, and how they hand over by marker files.

/** Where a lane works; the same in every lane that mounts it. */
export const buildPaths = {
  workspace: '/workspace',
  layers: '/layers',
  platform: '/platform',
  /** Marker files, written once and never read for content. */
  hand: '/kf/hand',
  /** Credential of the registry; mounted in the source and registry lanes only. */
  registry: '/kf/registry',
  /** The fetch program; mounted in the source lane only. */
  fetch: '/kf/fetch',
} as const;

/** Markers, in the order in which they appear. `failed` ends the other lanes. */
export const markers = {
  fetched: 'fetched',
  analyzed: 'analyzed',
  detected: 'detected',
  restored: 'restored',
  built: 'built',
  failed: 'failed',
} as const;

/** Exit code of a lane that ended because another one failed: never the cause. */
export const endedByOtherLane = 99;

/** The CNB platform API that the lanes speak; lifecycle 0.20 and later do too. */
export const platformApi = '0.14';

/** Keys of the build's registry Secret. */
export const registryKeys = { username: 'username', password: 'password', auth: 'auth' } as const;

export interface LifecycleInput {
  /** Where the droplet goes, with a tag. */
  target: string;
  runImage?: string;
  /** A droplet of the same app whose layers may be used again. */
  previousImage?: string;
  /** Registries to be asked over plain HTTP. */
  insecureRegistries: string[];
}

// A wait is short at first, so that a fast build is not slowed, and then seldom, so that a long one costs no CPU.
const prelude = `set -u
H=${buildPaths.hand}
L=/cnb/lifecycle
fail() { touch $H/${markers.failed}; exit "$1"; }
run() { "$@" || fail $?; }
await() {
  n=0
  while [ ! -e $H/$1 ]; do
    [ -e $H/${markers.failed} ] && exit ${endedByOtherLane}
    n=$((n+1))
    if [ $n -lt 150 ]; then sleep 0.03; else sleep 0.2; fi
  done
}
`;

/** Quotes a word for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

const line = (...words: string[]): string => words.map(shellWord).join(' ');

/** Analyze, restore and export. The last line leaves digest and metadata where the controller reads them. */
export function registryScript(input: LifecycleInput): string {
  const insecure = input.insecureRegistries.map((host) => `-insecure-registry=${host}`);
  const layers = `-layers=${buildPaths.layers}`;
  const analyze = [
    ...(input.runImage === undefined ? [] : [`-run-image=${input.runImage}`]),
    ...(input.previousImage === undefined ? [] : [`-previous-image=${input.previousImage}`]),
  ];
  return `${prelude}export CNB_REGISTRY_AUTH="$(cat ${buildPaths.registry}/${registryKeys.auth})"
run $L/analyzer ${line('-log-level=error', layers, ...insecure, ...analyze, input.target)}
touch $H/${markers.analyzed}
await ${markers.detected}
run $L/restorer ${line('-log-level=error', layers, ...insecure)}
touch $H/${markers.restored}
await ${markers.built}
${linkGuard}echo 'Exporting the droplet...'
run $L/exporter ${line('-log-level=error', `-app=${buildPaths.workspace}`, layers, ...insecure, input.target)}
${reportScript}`;
}

// What buildpacks left is data to this lane; a link in place of a file that is read here could lead to this lane's own credential.
const linkGuard = `if [ -L ${buildPaths.layers}/config ] || [ -n "$(find ${buildPaths.layers} -maxdepth 2 -type l -name '*.toml' | head -n 1)" ]; then
  echo 'ERROR: a buildpack left a link in place of a .toml file.'; fail 1
fi
`;

// The kubelet keeps 4096 bytes. Without room for the metadata the digest alone goes, and the controller reads the image's config instead.
const reportScript = `D=$(sed -n 's/^ *digest *= *"\\(sha256:[0-9a-f]*\\)".*/\\1/p' ${buildPaths.layers}/report.toml | head -n 1)
[ -n "$D" ] || { echo 'The exporter reported no digest.'; fail 1; }
M=$(gzip -9c ${buildPaths.layers}/config/metadata.toml 2>/dev/null | base64 2>/dev/null | tr -d '\\n')
[ \${#M} -le 3900 ] || M=
printf 'digest=%s\\nmetadata=%s\\n' "$D" "$M" > /dev/termination-log
echo "Droplet $D"
`;

/** Detect and build: the only lane that runs code of buildpacks and of the app. `order` is the text of an order.toml; undefined: the builder's own. */
export function buildScript(order: string | undefined): string {
  const orderFile = '/tmp/kf-order.toml';
  const common = [`-app=${buildPaths.workspace}`, `-layers=${buildPaths.layers}`, `-platform=${buildPaths.platform}`];
  const write = order === undefined ? '' : `printf '%s' ${shellWord(order)} > ${orderFile}\n`;
  return `${prelude}${write}await ${markers.fetched}
await ${markers.analyzed}
run $L/detector ${line(...common, ...(order === undefined ? [] : [`-order=${orderFile}`]))}
touch $H/${markers.detected}
await ${markers.restored}
run $L/builder ${line(...common)}
touch $H/${markers.built}
`;
}
