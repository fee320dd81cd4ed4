import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { TaskDetails } from '../lib/api/results.ts';
import { renderTasks } from '../lib/views/tasks.ts';

export default class Tasks extends KfCommand<TaskDetails[]> {
  static override summary = 'list the tasks of an app';
  static override examples = ['kf tasks example-app'];
  static override seeAlso = ['apps', 'logs', 'run-task', 'task', 'terminate-task'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<TaskDetails[]> {
    const { args } = await this.parse(Tasks);
    const [session, { listTasks }] = await this.inSpace(import('../lib/ops/tasks/tasks.ts'));
    const app = await this.findApp(session, args.APP_NAME);
    this.announceList`Getting tasks for app ${args.APP_NAME}`;
    const tasks = await listTasks(session, app);
    this.print(renderTasks(tasks));
    return tasks;
  }
}
