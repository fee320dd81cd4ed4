// Makes the plan of a push from manifest, flags and working folder.

import { isAbsolute, resolve } from 'node:path';
import { KfError } from '../errors.ts';
import { nearest } from '../api/names.ts';
import { incorrectUsage } from '../cf/usage.ts';
import { assertAppName } from '../cf/values.ts';
import type { ManifestApp } from './application.ts';
import { checkAgainst, checkFlags, checkSeveral, processesWith, rolloutOf } from './flags.ts';
import { repeatPush } from './again.ts';
import type { AppPlan, ProcessPlan, PushFlags, PushPlan, SidecarPlan } from './plan.ts';
import type { Remark } from './fields.ts';
import { located } from './tree.ts';
import { defined } from '../defined.ts';

/** A manifest that was found and parsed. */
export interface ReadManifest {
  /** Absolute. */
  path: string;
  /** The name that the user gave, or the absolute path of the default one. */
  asGiven: string;
  apps: ManifestApp[];
  /** Remarks about its top-level keys. */
  remarks: Remark[];
}

export interface PlanInput {
  /** Absolute. */
  workingFolder: string;
  flags: PushFlags;
  manifest?: ReadManifest | undefined;
}

const nameNeeded = 'The push command requires an app name. The app name can be supplied as an argument or with a manifest.yml file.';

/**
 * The plan of one push.
 * @throws KfError `usage`, in cf's words where cf has them
 */
export function planPush({ workingFolder, flags, manifest }: PlanInput): PushPlan {
  checkFlags(flags);
  const chosen = chooseApps(manifest?.apps ?? [emptyApp()], flags, manifest);
  if (chosen.length > 1) checkSeveral(flags);
  for (const app of chosen) checkAgainst(flags, app);
  const place = ({ at, text }: Remark): string => located(manifest?.asGiven ?? '', at, text);
  const notYet = (refused: boolean): Remark[] => chosen.flatMap((app) => app.notYet.filter((found) => found.refused === refused));
  const refusals = notYet(true).map(place);
  if (refusals.length > 0) throw new KfError('usage', refusals.join('\n'));
  const base = manifest === undefined ? workingFolder : resolve(manifest.path, '..');
  const task = flags.task === true;
  return {
    ...defined({ manifest: manifest && { path: manifest.path, asGiven: manifest.asGiven } }),
    apps: chosen.map((app) => appPlan(app, flags, { workingFolder, base })),
    rollout: rolloutOf(flags),
    start: flags.noStart !== true && !task,
    wait: flags.noWait !== true,
    task,
    redactEnv: flags.redactEnv === true,
    flags,
    warnings: shortened([...(manifest?.remarks ?? []), ...notYet(false)].map(place)),
  };
}

const mostWarnings = 20;

/** As many warnings as a user reads, and the number of the others. */
function shortened(warnings: string[]): string[] {
  const rest = warnings.length - mostWarnings;
  return rest <= 0 ? warnings : [...warnings.slice(0, mostWarnings), `... and ${rest} more`];
}

/** An app that only flags describe. */
function emptyApp(): ManifestApp {
  const nowhere = { line: 1, column: 1 };
  return {
    nameAt: nowhere,
    pathAt: nowhere,
    notYet: [],
    env: {},
    services: [],
    routes: [],
    noRoute: false,
    randomRoute: false,
    processes: [],
    sidecars: [],
    features: {},
    labels: {},
    annotations: {},
  };
}

/** The apps of this push, each with its name. */
function chooseApps(apps: ManifestApp[], flags: PushFlags, manifest: ReadManifest | undefined): (ManifestApp & { name: string })[] {
  const { name } = flags;
  if (name !== undefined) assertAppName(name);
  const [only] = apps;
  if (apps.length === 1 && only !== undefined) {
    const chosen = name ?? only.name;
    if (chosen === undefined || chosen === '') throw incorrectUsage(nameNeeded);
    return [{ ...only, name: chosen }];
  }
  const named = apps.flatMap((app) => (app.name === undefined ? [] : [{ ...app, name: app.name }]));
  const unnamed = apps.find((app) => app.name === undefined);
  if (unnamed !== undefined) {
    throw new KfError(
      'usage',
      `${manifest?.asGiven ?? 'manifest.yml'}:${unnamed.nameAt.line}:${unnamed.nameAt.column}: Found an application with no name specified.`,
    );
  }
  if (name === undefined) return named;
  const found = named.find((app) => app.name === name);
  if (found !== undefined) return [found];
  const near = nearest(
    name,
    named.map((app) => app.name),
  );
  throw new KfError('usage', `Could not find app named '${name}' in manifest`, {
    hints: near === undefined ? [] : [repeatPush(`kf push ${near}`, flags)],
  });
}

function appPlan(app: ManifestApp & { name: string }, flags: PushFlags, folders: { workingFolder: string; base: string }): AppPlan {
  const {
    nameAt: _nameAt,
    pathAt: _pathAt,
    imageAt: _imageAt,
    notYet: _notYet,
    path: _path,
    pathAsGiven: _pathAsGiven,
    docker: _docker,
    buildpacks: _buildpacks,
    stack: _stack,
    ...rest
  } = app;
  const docker =
    flags.dockerImage === undefined
      ? app.docker
      : { ...app.docker, image: flags.dockerImage, ...defined({ username: flags.dockerUsername }) };
  const noRoute = app.noRoute || flags.noRoute === true || flags.task === true;
  const randomRoute = !noRoute && (app.randomRoute || flags.randomRoute === true);
  const lifecycle = docker !== undefined ? 'docker' : 'buildpack';
  if (lifecycle === 'buildpack' && flags.lifecycle === 'docker')
    throw incorrectUsage("'--docker-image, -o' and '--lifecycle docker' must be used together.");
  return {
    ...rest,
    lifecycle,
    ...defined({ docker, buildpacks: buildpacksOf(app, flags), stack: flags.stack ?? app.stack }),
    ...sourceOf(app, flags, docker !== undefined, folders),
    noRoute,
    randomRoute,
    defaultRoute: !noRoute && !randomRoute,
    processes: withSidecars(processesWith(app.processes, flags), app.sidecars),
  };
}

/** Each process with its sidecars. A process that only a sidecar names is added: the droplet may have it. */
function withSidecars(processes: readonly ProcessPlan[], sidecars: readonly SidecarPlan[]): ProcessPlan[] {
  const known = new Set(processes.map(({ type }) => type));
  const more = new Set(sidecars.flatMap(({ processTypes }) => processTypes).filter((type) => !known.has(type)));
  return [...processes, ...[...more].map((type) => ({ type }))].map((process) => {
    const own = sidecars.filter(({ processTypes }) => processTypes.includes(process.type));
    if (own.length === 0) return process;
    return { ...process, sidecars: own.map(({ name, command, memoryMB }) => ({ name, command, ...defined({ memoryMB }) })) };
  });
}

function buildpacksOf(app: ManifestApp, { buildpacks }: PushFlags): string[] | undefined {
  if (buildpacks === undefined || buildpacks.length === 0) return app.buildpacks;
  return buildpacks[0] === 'default' || buildpacks[0] === 'null' ? [] : buildpacks;
}

type Source = Pick<AppPlan, 'path' | 'pathAsGiven' | 'droplet'>;

/** A path in the manifest is relative to the manifest's folder; `-p` and the default are relative to the working folder. */
function sourceOf(
  app: ManifestApp,
  flags: PushFlags,
  isDocker: boolean,
  { workingFolder, base }: { workingFolder: string; base: string },
): Source {
  if (isDocker) return {};
  if (flags.droplet !== undefined) return { droplet: absolute(workingFolder, flags.droplet) };
  if (flags.path !== undefined) return { path: absolute(workingFolder, flags.path), pathAsGiven: flags.path };
  if (app.path !== undefined) return { path: absolute(base, app.path), pathAsGiven: app.path };
  return { path: workingFolder, pathAsGiven: '.' };
}

const absolute = (folder: string, path: string): string => (isAbsolute(path) ? path : resolve(folder, path));
