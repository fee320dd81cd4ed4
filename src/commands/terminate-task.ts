import { KfCommand } from '../base-command.ts';
import { appArg, requiredArg } from '../flags.ts';
import { parseTaskId } from '../lib/cf/values.ts';
import type { TaskDetails } from '../lib/api/results.ts';

export default class TerminateTask extends KfCommand<TaskDetails> {
  static override summary = 'end a task that waits or runs';
  static override changes = true;
  static override examples = ['kf terminate-task example-app 3'];
  static override seeAlso = ['task', 'tasks'];
  static override args = { APP_NAME: appArg(), TASK_ID: requiredArg('number of the task') };

  async run(): Promise<TaskDetails> {
    const { args } = await this.parse(TerminateTask);
    const id = parseTaskId(args.TASK_ID, 'Value for TASK_ID must be integer');
    const [session, { findTask, terminateTask }] = await this.inSpace(import('../lib/ops/tasks/tasks.ts'));
    const app = await this.findApp(session, args.APP_NAME);
    const task = await findTask(session, app, id);
    this.announce`Terminating task ${args.TASK_ID} of app ${args.APP_NAME}`;
    const ended = await terminateTask(session, task, app);
    this.ok();
    return ended;
  }
}
