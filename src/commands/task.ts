import { KfCommand } from '../base-command.ts';
import { appArg, taskIdArg } from '../flags.ts';
import type { TaskDetails } from '../lib/api/results.ts';
import { renderTask } from '../lib/views/tasks.ts';

export default class Task extends KfCommand<TaskDetails> {
  static override summary = 'show one task of an app';
  static override examples = ['kf task example-app 3'];
  static override seeAlso = ['apps', 'logs', 'run-task', 'tasks', 'terminate-task'];
  static override args = { APP_NAME: appArg(), TASK_ID: taskIdArg() };

  async run(): Promise<TaskDetails> {
    const { args } = await this.parse(Task);
    const [session, { findTask, taskDetails }] = await this.inSpace(import('../lib/ops/tasks/tasks.ts'));
    const app = await this.findApp(session, args.APP_NAME);
    this.announceList`Getting task ${String(args.TASK_ID)} for app ${args.APP_NAME}`;
    const details = taskDetails(await findTask(session, app, args.TASK_ID));
    this.print(renderTask(details));
    return details;
  }
}
