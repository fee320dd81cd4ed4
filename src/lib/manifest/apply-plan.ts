// The plan of `apply-manifest`: the settings of a manifest, without the code of its apps.

import { KfError } from '../errors.ts';
import type { AppPlan, PushPlan } from './plan.ts';
import { planPush, type PlanInput, type ReadManifest } from './push-plan.ts';
import { located } from './tree.ts';

/** A plan that a manifest made. */
export type ManifestPlan = PushPlan & Required<Pick<PushPlan, 'manifest'>>;

/** As in cf, an app has a route only if the manifest asks for one: the default route is that of a push. */
function settingsOf(app: AppPlan, { apps }: ReadManifest): AppPlan {
  const { path: _path, pathAsGiven: _pathAsGiven, ...settings } = app;
  const isAsked = apps.find(({ name }) => name === app.name)?.defaultRoute === true;
  return { ...settings, defaultRoute: app.defaultRoute && isAsked };
}

/** @throws KfError `usage`, with file:line:column for what stands in the manifest */
export function planApply(input: PlanInput & { manifest: ReadManifest }): ManifestPlan {
  const { manifest } = input;
  const unnamed = manifest.apps.find(({ name = '' }) => name === '');
  if (unnamed !== undefined)
    throw new KfError('usage', located(manifest.asGiven, unnamed.nameAt, 'Found an application with no name specified.'));
  const plan = planPush({ ...input, flags: { ...input.flags, noStart: true } });
  return { ...plan, manifest: { path: manifest.path, asGiven: manifest.asGiven }, apps: plan.apps.map((app) => settingsOf(app, manifest)) };
}
