// Middlewares of kf for Traefik. It runs them in its interpreter for Go (local plugins, which need no download).

import { createHash } from 'node:crypto';
import type { KubeObject } from '../../lib/api/object.ts';
import type { GatewayPlugin } from './gateway-plugin.ts';
import { guardPlugin } from './guard-plugin.ts';
import { requestIdPlugin } from './request-id.ts';

/** Traefik looks for `plugins-local` in its working directory. */
const folder = '/kf';
const configMapName = 'kf-gateway-request-id';
/** In the order in which they see a request: what the guard refuses costs nothing more. */
const plugins: readonly GatewayPlugin[] = [guardPlugin, requestIdPlugin];

const moduleOf = ({ name }: GatewayPlugin): string => `kf.cloudfoundry.org/${name}`;

const manifestOf = (plugin: GatewayPlugin): string => `displayName: kf ${plugin.name}
type: middleware
import: ${moduleOf(plugin)}
summary: ${plugin.summary}
testData: {}
`;

/** Has all plugins, whether they are used or not: a gateway of an earlier kf, which still runs while setup changes it, reads this file again at once. */
const dynamic = ['http:', '  middlewares:', ...plugins.map(({ name }) => `    ${name}: { plugin: { ${name}: {} } }`), ''].join('\n');

interface PlacedFile {
  key: string;
  /** Below the working directory. */
  path: string;
  text: string;
}

function filesOf(plugin: GatewayPlugin): PlacedFile[] {
  const source = `plugins-local/src/${moduleOf(plugin)}`;
  return [
    ...Object.entries(plugin.sources).map(([name, text]) => ({ key: name, path: `${source}/${name}`, text })),
    { key: `${plugin.name}.yml`, path: `${source}/.traefik.yml`, text: manifestOf(plugin) },
  ];
}

const files: PlacedFile[] = [...plugins.flatMap(filesOf), { key: 'dynamic.yml', path: 'dynamic.yml', text: dynamic }];

const volume = { name: 'plugins', configMap: { name: configMapName, items: files.map(({ key, path }) => ({ key, path })) } };

/** What the middlewares add to Traefik's Deployment. */
export const gatewayPlugins = {
  arguments: (entryPoints: readonly string[], { isGuarded }: { isGuarded: boolean }): string[] => {
    const used = isGuarded ? plugins : plugins.filter((plugin) => plugin !== guardPlugin);
    return [
      ...used.map((plugin) => `--experimental.localplugins.${plugin.name}.modulename=${moduleOf(plugin)}`),
      // Without it Traefik goes on without its plugins, and answers 404 to everything.
      '--experimental.abortonpluginfailure=true',
      `--providers.file.filename=${folder}/dynamic.yml`,
      // The annotation below starts the pod anew when the files change. A watch needs an inotify instance, of which a user ID has often 128 per
      // node. Without a free one Traefik would not read the file at all, and answer 404 to everything.
      '--providers.file.watch=false',
      ...entryPoints.map((point) => `--entrypoints.${point}.http.middlewares=${used.map(({ name }) => `${name}@file`).join(',')}`),
    ];
  },
  workingDir: folder,
  volume,
  volumeMount: { name: volume.name, mountPath: folder, readOnly: true },
  /** Starts Traefik again when the files change. */
  annotations: { 'kf.cloudfoundry.org/request-id': createHash('sha256').update(JSON.stringify(files)).digest('hex').slice(0, 10) },
};

/** The sources of the plugins. */
export function buildGatewayPlugins(namespace: string): KubeObject {
  const data = Object.fromEntries(files.map(({ key, text }) => [key, text]));
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: configMapName, namespace }, ...{ data } };
}
