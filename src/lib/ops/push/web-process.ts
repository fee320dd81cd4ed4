// A build may find no web process, as from a Procfile with a worker only: then there is nothing to start, and that is said.

import { effectiveCommand, lacksWeb, webProcess } from '../../api/app.ts';
import type { CFBuild } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import type { AppFacts } from './app-snapshot.ts';

/** The web process has a command of its own or of the plan's. */
function hasCommand(plan: AppPlan, facts: AppFacts): boolean {
  const { command } = plan.processes.find(({ type }) => type === webProcess) ?? {};
  const present = facts.processes.find(({ spec }) => spec.processType === webProcess);
  return (command ?? '') !== '' || (present !== undefined && effectiveCommand(present) !== undefined);
}

interface Judged {
  build: CFBuild;
  /** Something is to be started now. */
  start: boolean;
}

/**
 * Whether a web process that is to be made gets instances. Says so when it gets none.
 * @throws KfError `build` when the build found no process at all, and one is to be started
 */
export function judgeWeb({ reporter, bin }: SpaceSession, plan: AppPlan, facts: AppFacts, { build, start }: Judged): boolean {
  const droplet = build.status?.droplet;
  const { processTypes = [], buildpacks = [] } = droplet ?? {};
  if (plan.lifecycle === 'docker' || hasCommand(plan, facts)) return true;
  const withCommand = `${bin} push ${plan.name} -c COMMAND`;
  // A droplet whose facts could not be read names no buildpacks either; it may well have a process.
  if (start && processTypes.length === 0 && buildpacks.length > 0) {
    throw new KfError('build', `The build of app '${plan.name}' found no process to start.`, {
      hints: [withCommand, "Or add a file named Procfile with the line 'web: COMMAND'."],
    });
  }
  if (droplet === undefined || !lacksWeb(droplet)) return true;
  const types = processTypes.map(({ type }) => type);
  reporter.warn(`The build found no process 'web', only: ${types.join(', ')}. No web instance is started; \`${withCommand}\` starts one.`);
  reporter.warn(`To start process '${types[0] ?? ''}': \`${bin} scale ${plan.name} --process ${types[0] ?? ''} -i 1\`.`);
  return false;
}
