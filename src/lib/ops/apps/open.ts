// open: the URL of an app, or a local one that leads to one of its instances.

import { webProcess } from '../../api/app.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { openTunnels, type TunnelOptions } from '../instances/tunnels.ts';
import { urlOf } from '../routes/http-probe.ts';
import { describeApp, readDroplet } from './details.ts';
import { findInstance } from './ssh.ts';

/** The port of an app that names no other one. */
const usualPort = 8080;

/** `http://host[:port]/path` of the app's oldest route without `*`. @throws KfError `not-found`, `conflict` */
export async function appUrl(session: SpaceSession, app: Stored<CFApp>): Promise<string> {
  const { displayName } = app.spec;
  const [{ routes, state }, { gateway }] = await Promise.all([describeApp(session, app, { withoutUsage: true }), session.info()]);
  const route = routes.find((one) => !one.startsWith('*'));
  const { bin } = session;
  if (route === undefined) {
    throw new KfError('not-found', `App '${displayName}' has no route that can be opened.`, {
      hints: [`${bin} map-route ${displayName} DOMAIN --hostname HOST`, `${bin} open ${displayName} --forward`],
    });
  }
  if (state === 'stopped') throw new KfError('conflict', `App '${displayName}' is stopped.`, { hints: [`${bin} start ${displayName}`] });
  if (gateway.externalUrl === undefined) return `http://${route}`;
  const slash = route.indexOf('/');
  const [host, path] = slash === -1 ? [route, ''] : [route.slice(0, slash), route.slice(slash)];
  return urlOf(gateway.externalUrl, host) + path;
}

/** A local URL whose connections go to the first instance of web, until the signal aborts. @throws KfError `conflict` */
export async function forwardedUrl(session: SpaceSession, app: Stored<CFApp>, port: number, options: TunnelOptions): Promise<string> {
  const [instance, { build }] = await Promise.all([
    findInstance(session, app, { process: webProcess, index: 0 }),
    readDroplet(session, app, {}),
  ]);
  const latest = build?.status?.droplet?.ports?.[0] ?? usualPort;
  const own = instance.ports.includes(latest) ? latest : instance.ports[0];
  const remote = { host: '127.0.0.1', port: own ?? latest };
  const [tunnel] = await openTunnels(session, instance, [{ local: { host: '127.0.0.1', port }, remote }], options);
  return `http://127.0.0.1:${tunnel?.local.port ?? port}`;
}
