// Shell scripts for the containers of a build pod, and the marker files with which they coordinate.

/** Paths in the containers; the same in every container that mounts them. */
export const buildPaths = {
  workspace: '/workspace',
  layers: '/layers',
  platform: '/platform',
  /** Marker files, written once and never read for content. The build container cannot write here. */
  hand: '/kf/hand',
  /** Credential of the registry; mounted in the source and registry containers only. */
  registry: '/kf/registry',
  /** A pod annotation of the controller for the registry container; mounted there only. */
  release: '/kf/release',
  /** The fetch program; mounted in the source container only. */
  fetch: '/kf/fetch',
} as const;

/** Markers, in the order in which they appear. `failed` ends the other containers. */
export const markers = {
  /** The push port has answered the source container: NetworkPolicies know this pod. */
  reached: 'reached',
  fetched: 'fetched',
  analyzed: 'analyzed',
  failed: 'failed',
} as const;

/** File in `buildPaths.release`: empty until the kubelet has seen the end of the build container. */
export const releaseFile = 'build-ended';
/** Its content after that. */
export const released = { built: 'built', failed: 'failed' } as const;

/** Exit code of a container that ended because another one failed; it is never the cause. */
export const endedByOther = 99;

/** Version of the CNB platform API that the scripts use; lifecycle 0.20 and later support it. */
export const platformApi = '0.14';

/** Keys of the build's registry Secret. */
export const registryKeys = { username: 'username', password: 'password', auth: 'auth' } as const;

export interface LifecycleInput {
  /** The reference of the droplet, with a tag. */
  target: string;
  runImage?: string;
  /** An earlier droplet of the same app whose layers may be reused. */
  previousImage?: string;
  /** Registries that are reached over plain HTTP. */
  insecureRegistries: string[];
}

// Waits check often at first, so that they do not slow a fast build, and then less often, so that a long build costs no CPU.
const prelude = `set -u
H=${buildPaths.hand}
L=/cnb/lifecycle
await() {
  n=0
  while [ ! "$1" "$2" ]; do
    [ -e $H/${markers.failed} ] && exit ${endedByOther}
    n=$((n+1))
    if [ $n -lt 150 ]; then sleep 0.03; else sleep 0.2; fi
  done
}
`;

/** A larger metadata.toml is not included in the container's report. */
const mostMetadata = 256 * 1024;

/** Quotes a word for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

const line = (...words: string[]): string => words.map(shellWord).join(' ');

/** Files that only the registry container can write; the build can change everything in the layers folder. */
const own = { analyzed: '/tmp/kf-analyzed.toml', report: '/tmp/kf-report.toml' } as const;

/**
 * Analyze and export, the phases that need the credential. Between them, untrusted code runs in the build container. The export begins
 * when the controller reports the end of that container (decision 17). The last line writes digest and metadata where the controller reads them.
 */
export function registryScript(input: LifecycleInput): string {
  const insecure = input.insecureRegistries.map((host) => `-insecure-registry=${host}`);
  const layers = `-layers=${buildPaths.layers}`;
  const analyze = [
    ...(input.runImage === undefined ? [] : [`-run-image=${input.runImage}`]),
    ...(input.previousImage === undefined ? [] : [`-previous-image=${input.previousImage}`]),
  ];
  // The export uses the images of the analysis, and no layer from a folder that a build can write.
  const kept = [`-analyzed=${own.analyzed}`, `-report=${own.report}`, '-extended=/kf/none'];
  return `${prelude}fail() { touch $H/${markers.failed}; exit "$1"; }
export CNB_REGISTRY_AUTH="$(cat ${buildPaths.registry}/${registryKeys.auth})"
await -e $H/${markers.reached}
$L/analyzer ${line('-log-level=error', layers, ...insecure, ...analyze, input.target)} || fail $?
cp ${buildPaths.layers}/analyzed.toml ${own.analyzed} || fail $?
touch $H/${markers.analyzed}
await -s ${buildPaths.release}/${releaseFile}
[ "$(cat ${buildPaths.release}/${releaseFile})" = ${released.built} ] || exit ${endedByOther}
${linkGuard}echo 'Exporting the droplet...'
$L/exporter ${line('-log-level=error', `-app=${buildPaths.workspace}`, layers, ...kept, ...insecure, input.target)} || exit $?
${reportScript}`;
}

// The build has ended, so nothing can change its files after this check. If a file that the exporter reads by name (its .toml files, a buildpack's
// folder, a layer, the bills of materials) were a link, it could lead to the credential of this container.
const linkGuard = `F=$(find ${buildPaths.layers} -maxdepth 2 -type l; find ${buildPaths.layers}/sbom -type l 2>/dev/null)
if [ -n "$F" ]; then
  echo "ERROR: the build left a link where only files and folders may be: $(echo "$F" | head -n 1)"; exit 1
fi
`;

// The kubelet keeps 4096 bytes. If the metadata does not fit, the report has only the digest, and the controller reads the image's config instead.
const reportScript = `D=$(sed -n 's/^ *digest *= *"\\(sha256:[0-9a-f]*\\)".*/\\1/p' ${own.report} | head -n 1)
[ -n "$D" ] || { echo 'The exporter reported no digest.'; exit 1; }
M=
[ "$(wc -c < ${buildPaths.layers}/config/metadata.toml)" -gt ${mostMetadata} ] || M=$(gzip -9c ${buildPaths.layers}/config/metadata.toml | base64 | tr -d '\\n')
[ \${#M} -le 3900 ] || M=
printf 'digest=%s\\nmetadata=%s\\n' "$D" "$M" > /dev/termination-log
echo "Droplet $D"
`;

/**
 * Detect, restore and build. Only this container runs code of buildpacks and of the app, and it has no credential. The analyzer has already fetched
 * the metadata that the restorer needs. `order` is the text of an order.toml; undefined: the builder's own.
 */
export function buildScript(order: string | undefined): string {
  const orderFile = '/tmp/kf-order.toml';
  const common = [`-app=${buildPaths.workspace}`, `-layers=${buildPaths.layers}`, `-platform=${buildPaths.platform}`];
  const write = order === undefined ? '' : `printf '%s' ${shellWord(order)} > ${orderFile}\n`;
  return `${prelude}${write}await -e $H/${markers.fetched}
await -e $H/${markers.analyzed}
$L/detector ${line(...common, ...(order === undefined ? [] : [`-order=${orderFile}`]))} || exit $?
$L/restorer ${line('-log-level=error', `-layers=${buildPaths.layers}`, '-run=/kf/none')} || exit $?
$L/builder ${line(...common)} || exit $?
`;
}
