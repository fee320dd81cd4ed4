// A build may find no web process, as from a Procfile with a worker only: then there is nothing to start, and that is said.

import { desiredInstances, effectiveCommand, lacksWeb, webProcess } from '../../api/app.ts';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFBuild } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { repeatPush } from '../../manifest/again.ts';
import type { PushFlags } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { scaleProcess } from './changes.ts';

interface Judged {
  /** Of the app. */
  name: string;
  build: CFBuild;
  /** The web process has a command, whatever the build found. */
  hasCommand: boolean;
  /** Something is to be started now. */
  start: boolean;
  /** The flags of the push that this is part of: commands that push again repeat them. Left out elsewhere. */
  flags?: PushFlags;
}

/** Where a push of somebody who has not just pushed is to be typed. */
const atSource = "in the folder of the app's source";

/**
 * Whether a web process that has not run yet gets instances. Reports when it gets none.
 * @throws KfError `build` when the build found no process at all, and one is to be started
 */
export function judgeWeb(
  { report, bin }: Pick<SpaceSession, 'report' | 'bin'>,
  { name, build, hasCommand, start, flags }: Judged,
): boolean {
  const droplet = build.status?.droplet;
  const { processTypes = [], buildpacks = [] } = droplet ?? {};
  if (build.spec.lifecycle.type === 'docker' || hasCommand) return true;
  const typed = repeatPush(`${bin} push ${name} -c COMMAND`, flags ?? {});
  // A droplet whose facts could not be read names no buildpacks either; it may well have a process.
  if (start && processTypes.length === 0 && buildpacks.length > 0) {
    throw new KfError('build', `The build of app '${name}' found no process to start.`, {
      hints: [flags === undefined ? `${typed}, ${atSource}` : typed, "Or add a file named Procfile with the line 'web: COMMAND'."],
    });
  }
  if (droplet === undefined || !lacksWeb(droplet)) return true;
  const found = processTypes.map(({ type }) => type);
  report({ type: 'no-web-process', app: name, found, push: typed, isPushed: flags !== undefined });
  return false;
}

/** {@link judgeWeb} of an app whose processes are there already: a web process that has nothing to start loses its instances. */
export async function settleWeb(session: SpaceSession, app: Stored<CFApp>, build: Stored<CFBuild>): Promise<void> {
  const { cluster, space, signal } = session;
  const hasWeb = build.status?.droplet?.processTypes?.some(({ type }) => type === webProcess) === true;
  if (hasWeb || build.spec.lifecycle.type === 'docker') return;
  const { items } = await cluster.list(kinds.process, { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal });
  const web = items.find(({ spec }) => spec.processType === webProcess);
  const hasCommand = web !== undefined && effectiveCommand(web) !== undefined;
  const starts = judgeWeb(session, { name: app.spec.displayName, build, hasCommand, start: true });
  if (!starts && web !== undefined && desiredInstances(web) > 0) await scaleProcess(session, web, 0);
}
