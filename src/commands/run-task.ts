import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, sizeFlag } from '../flags.ts';
import type { TaskDetails } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderNewTask } from '../lib/views/tasks.ts';

export default class RunTask extends KfCommand<TaskDetails> {
  static override summary = "run a command once with an app's code and env";
  static override changes = true;
  static override examples = [
    'kf run-task example-app --command "bundle exec rake db:migrate" --name migrate --wait',
    'kf run-task example-app --process batch -m 512M',
    'kf run-task example-app',
  ];
  static override aliases = ['rt'];
  static override seeAlso = ['logs', 'tasks', 'terminate-task'];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    command: Flags.string({ char: 'c', summary: 'the command', helpValue: 'COMMAND' }),
    disk: sizeFlag({ char: 'k', summary: 'disk limit, e.g. 256M, 1G', helpValue: 'DISK' }),
    memory: sizeFlag({ char: 'm', summary: 'memory limit, e.g. 256M, 1G', helpValue: 'MEMORY' }),
    name: Flags.string({ summary: 'name of the task, default a random one', helpValue: 'TASK_NAME' }),
    process: Flags.string({
      summary: "process type whose command and sizes are taken; 'task' if there is no command either",
      helpValue: 'PROCESS_TYPE',
    }),
    wait: Flags.boolean({ char: 'w', summary: 'wait until the task has ended, and fail if it failed' }),
  };

  async run(): Promise<TaskDetails> {
    const { args, flags } = await this.parse(RunTask);
    const name = args.APP_NAME;
    const [session, { createTask, waitForTask }, { taskDetails }] = await this.inSpace(
      import('../lib/ops/tasks/run.ts'),
      import('../lib/ops/tasks/tasks.ts'),
    );
    const app = await this.findApp(session, name);
    this.announce`Creating task for app ${name}`;
    const { command, process, memory: memoryMB, disk: diskMB } = flags;
    const task = await createTask(session, app, { command, process, name: flags.name, memoryMB, diskMB });
    this.print([line('Task has been submitted successfully for execution.')]);
    this.ok();
    const details = taskDetails(task);
    this.print(renderNewTask(details));
    if (!flags.wait) {
      this.ok();
      return details;
    }
    this.print([line(), line('Waiting for task to complete execution...')]);
    const ended = await waitForTask(session, app, task);
    this.print([line(), line('Task has completed successfully.')]);
    this.ok();
    return ended;
  }
}
