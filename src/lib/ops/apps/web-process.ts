// Handles builds without a web process, for example from a Procfile with only a worker: nothing can be started then, and the user gets a message.

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
  /** Name of the app. */
  name: string;
  build: CFBuild;
  /** The web process has its own command, whatever the build found. */
  hasCommand: boolean;
  /** The command starts the app now. */
  start: boolean;
  /** The flags of the push that this is part of, which hints with push commands repeat. Left out in other commands. */
  flags?: PushFlags;
}

/** Where to run the push that a hint recommends to a user who has not just pushed. */
const atSource = "in the folder of the app's source";

/**
 * Whether a web process that has not run yet gets instances. Reports when it gets none.
 * @throws KfError `build` when the build found no process at all, and the command starts the app
 */
export function judgeWeb(
  { report, bin }: Pick<SpaceSession, 'report' | 'bin'>,
  { name, build, hasCommand, start, flags }: Judged,
): boolean {
  const droplet = build.status?.droplet;
  const { processTypes = [], buildpacks = [] } = droplet ?? {};
  if (build.spec.lifecycle.type === 'docker' || hasCommand) return true;
  const typed = repeatPush(`${bin} push ${name} -c COMMAND`, flags ?? {});
  // A droplet whose facts could not be read names no buildpacks either; it may still have a process.
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

/** {@link judgeWeb} for an app whose processes exist already: a web process that has nothing to start is scaled to 0. */
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
