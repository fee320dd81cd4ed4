// Keys that cf knows and kf reads, but cannot fulfil: what an app needs to work is refused, what it can do without is left out and said, as is what
// has no effect in cf either.

import type { AppPlan } from './plan.ts';
import type { Position } from './tree.ts';

export interface NotYet {
  at: Position;
  text: string;
  /** The app would run without something that it was written for. */
  refused: boolean;
}

/** Features that kf has always, or has not: `service-binding-k8s` is how every binding comes. */
const missingFeatures = ['ssh', 'revisions', 'file-based-vcap-services'];

type Known = Pick<AppPlan, 'docker' | 'services' | 'routes' | 'sidecars' | 'features'>;

/** @param at position of a key of the app */
export function notYetOf(app: Known, hasCnbCredentials: boolean, at: (key: string) => Position): NotYet[] {
  const found: NotYet[] = [];
  const refuse = (key: string, text: string) => found.push({ at: at(key), text, refused: true });
  const leaveOut = (key: string, text: string) => found.push({ at: at(key), text: `${text} It was left out.`, refused: false });
  if (app.sidecars.length > 0)
    refuse('sidecars', 'Sidecars are not there yet in kf. For now, start the program from the command of its process.');
  if (app.docker?.username !== undefined)
    refuse('docker', 'A user for the registry is not there yet in kf. For now, take an image that the nodes may pull without one.');
  for (const { name, parameters } of app.services)
    if (parameters !== undefined)
      refuse('services', `Service '${name}' cannot take parameters: they are for service brokers, which are not there yet in kf.`);
  for (const feature of missingFeatures)
    if (app.features[feature] === true) leaveOut('features', `The feature '${feature}' is not there yet in kf.`);
  for (const { text, options, protocol } of app.routes) {
    if (options !== undefined) leaveOut('routes', `Options of a route (${text}) are not there yet in kf.`);
    if (protocol === 'http2')
      leaveOut('routes', `The protocol http2 of a route (${text}) is not there yet in kf; requests reach the app by HTTP/1.1.`);
  }
  if (hasCnbCredentials) leaveOut('cnb-credentials', 'Credentials for buildpack images are not there yet in kf.');
  return found;
}
