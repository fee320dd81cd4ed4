// The command to try, by the cause of a failure. What a failed command prints and what `kf why` prints come from here. Pure.

import { webProcess } from './app.ts';
import type { CauseCode } from './causes.ts';
import { places } from './group.ts';
import { sidecarOf } from './names.ts';

/** What the commands are about. */
export interface Advised {
  /** The name of the program. */
  bin: string;
  app: string;
  /** Namespace of the space. */
  ns: string;
  process?: string | undefined;
  /** The container that failed: the app's own or a sidecar's. */
  container?: string | undefined;
  /** The app runs a droplet that was built from source; left out: an image that the user named. */
  isBuilt?: boolean | undefined;
  /** What the process has now. */
  memoryMB?: number | undefined;
  /** The failure is of a change, and instances of the version before serve: they take the room that the new ones lack. */
  isBesideServing?: boolean | undefined;
  /** The quota has less of this in all than one instance asks for. */
  exceedsQuota?: 'memory' | 'disk' | undefined;
  /** The check that fails is that of the readiness, with settings of its own in the manifest. */
  hasOwnReadiness?: boolean | undefined;
}

type Advice = (about: Advised) => string;

const otherImage: Advice = ({ bin, app }) => `${bin} push ${app} -o IMAGE`;
const again: Advice = ({ bin, app }) => `${bin} restage ${app}`;
const push: Advice = ({ bin, app }) => `${bin} push ${app}`;
const nodes: Advice = () => 'kubectl describe nodes';
const gateways: Advice = () => 'kubectl get gateways,httproutes -A';
const variables: Advice = ({ bin, app }) => `${bin} env ${app}`;
/** The flag that names a process other than web. */
const ofProcess = ({ process = webProcess }: Advised): string => (process === webProcess ? '' : ` --process ${process}`);
const scale = (about: Advised, size: string): string => `${about.bin} scale ${about.app}${ofProcess(about)} ${size}`;
/** Flags of push are for web only; for the other processes there is the manifest. */
const pushWith = ({ bin, app, process = webProcess }: Advised, flag: string, attribute: string): string =>
  process === webProcess
    ? `${bin} push ${app} ${flag}`
    : `Set ${attribute} of process '${process}' under processes: of the manifest, then: ${bin} push ${app}`;

/** Sidecars have their settings in the manifest only. */
function ofSidecar(code: CauseCode, { bin, app, container = '' }: Advised): string | undefined {
  const sidecar = sidecarOf(container);
  const attribute = code === 'command-not-found' ? 'command' : code === 'oom' ? 'memory' : undefined;
  if (sidecar === undefined || attribute === undefined) return undefined;
  return `Set ${attribute} of sidecar '${sidecar}' under sidecars: of the manifest, then: ${bin} push ${app}`;
}

/** The command that goes against the cause itself. */
const against: Partial<Record<CauseCode, Advice>> = {
  'image-not-found': (about) => (about.isBuilt === true ? again(about) : otherImage(about)),
  'image-user': otherImage,
  'wrong-architecture': otherImage,
  'image-unauthorized': ({ bin, app, ns, isBuilt }) =>
    isBuilt === true
      ? `kubectl get secret ${places.pullSecret} -n ${ns}`
      : `CF_DOCKER_PASSWORD=PASSWORD ${bin} push ${app} -o IMAGE --docker-username USERNAME`,
  'no-buildpack': ({ bin }) => `${bin} buildpacks`,
  'build-oom': again,
  'build-timeout': again,
  'source-fetch': again,
  'build-registry': again,
  'no-builder': push,
  'droplet-missing': push,
  oom: (about) => scale(about, about.memoryMB === undefined ? '-m MEMORY' : `-m ${about.memoryMB * 2}M`),
  disk: (about) => scale(about, '-k DISK'),
  'health-http': (about) =>
    about.hasOwnReadiness === true
      ? `${about.bin} get-readiness-health-check ${about.app}`
      : `${about.bin} set-health-check ${about.app} http --endpoint PATH${ofProcess(about)}`,
  'start-timeout': (about) => pushWith(about, '-t SECONDS', 'timeout'),
  'command-not-found': (about) => pushWith(about, '-c COMMAND', 'command'),
  quota: (about) =>
    about.exceedsQuota === undefined
      ? `kubectl describe quota -n ${about.ns}`
      : scale(about, about.exceedsQuota === 'memory' ? '-m MEMORY' : '-k DISK'),
  'no-room': nodes,
  'node-lost': nodes,
  evicted: nodes,
  'binding-not-ready': ({ bin }) => `${bin} services`,
  'secret-missing': variables,
  'environment-too-large': variables,
  'route-taken': ({ bin, app }) => `${bin} map-route ${app} DOMAIN -n HOST`,
  'gateway-down': gateways,
  'route-not-programmed': gateways,
  'controller-absent': () => 'kubectl get pods -n kf-system',
  'name-taken': ({ bin }) => `${bin} apps`,
};

/** The causes of which the logs say nothing. */
const withoutLogs: ReadonlySet<CauseCode> = new Set([
  'image-not-found', 'image-unauthorized', 'registry-unreachable', 'registry-certificate', 'quota', 'no-room', 'admission', 'route-taken', 'name-taken',
  'controller-absent', 'binding-not-ready',
]); // prettier-ignore

/** An update without a gap needs room for an instance beside the old ones. */
const lackingRoom: ReadonlySet<CauseCode> = new Set(['quota', 'no-room']);

/** The commands for an app, the most useful first. */
export function adviceOn(code: CauseCode, about: Advised): string[] {
  const { bin, app } = about;
  const logs = `${bin} logs ${app} --recent`;
  const own = ofSidecar(code, about) ?? against[code]?.(about);
  const isHelped = about.isBesideServing === true && lackingRoom.has(code) && about.exceedsQuota === undefined;
  const stopFirst = isHelped ? [`${bin} restart ${app} --strategy recreate`] : [];
  return [...stopFirst, ...(own === undefined ? [] : [own]), withoutLogs.has(code) ? `${bin} events ${app}` : logs];
}
