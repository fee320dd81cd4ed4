// Keys of cf that kf reads but does not support. A key that the app needs to work is an error; other keys are ignored with a warning. Keys without
// an effect in cf also cause a warning.

import type { AppPlan } from './plan.ts';
import type { Position } from './tree.ts';

export interface NotYet {
  at: Position;
  text: string;
  /** The app would run without a feature that it needs. */
  refused: boolean;
}

/** Features that kf does not have. Others it always has: every binding works like `service-binding-k8s`. */
const missingFeatures = ['ssh', 'revisions', 'file-based-vcap-services'];

type Known = Pick<AppPlan, 'services' | 'routes' | 'features'>;

/** @param at position of a key of the app */
export function notYetOf(app: Known, hasCnbCredentials: boolean, at: (key: string) => Position): NotYet[] {
  const found: NotYet[] = [];
  const refuse = (key: string, text: string) => found.push({ at: at(key), text, refused: true });
  const leaveOut = (key: string, text: string) => found.push({ at: at(key), text: `${text} It was ignored.`, refused: false });
  for (const { name, parameters } of app.services)
    if (parameters !== undefined)
      refuse('services', `Service '${name}' cannot take parameters: they are for service brokers, which kf does not support yet.`);
  for (const feature of missingFeatures)
    if (app.features[feature] === true) leaveOut('features', `kf does not support the feature '${feature}' yet.`);
  for (const { text, options } of app.routes)
    if (options !== undefined) leaveOut('routes', `kf does not support options of a route (${text}) yet.`);
  if (hasCnbCredentials) leaveOut('cnb-credentials', 'kf does not support credentials for buildpack images yet.');
  return found;
}
