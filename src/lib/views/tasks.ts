// `tasks` and `task`, as cf prints them.

import type { TaskDetails } from '../api/results.ts';
import { line, pairs, table, type Block, type Cell } from './block.ts';
import { httpDate } from './dates.ts';

const idOf = ({ id }: TaskDetails): string => (id === undefined ? '' : String(id));
const commandOf = ({ command, process = '' }: TaskDetails): string => command ?? `[command of process ${process}]`;
const sizeOf = (megabytes: number | undefined): string => (megabytes === undefined ? '' : String(megabytes));

export function renderTasks(tasks: readonly TaskDetails[]): Block[] {
  if (tasks.length === 0) return [line('No tasks found for application.')];
  const rows = tasks.map((task): Cell[] => [idOf(task), task.name, task.state, httpDate(task.startTime), commandOf(task)]);
  return [table(['id', 'name', 'state', 'start time', 'command'], rows)];
}

export function renderTask(task: TaskDetails): Block[] {
  return [
    pairs(
      ['id:', idOf(task)],
      ['name:', task.name],
      ['state:', task.state],
      ['start time:', task.startTime],
      ['command:', commandOf(task)],
      ['memory in mb:', sizeOf(task.memoryMB)],
      ['disk in mb:', sizeOf(task.diskMB)],
      // cf's number for no limit.
      ['log rate limit:', '-1'],
      ['failure reason:', task.failureReason ?? ''],
    ),
  ];
}

/** What `run-task` prints of a new task. */
export const renderNewTask = (task: TaskDetails): Block[] => [pairs(['task name:', task.name], ['task id:', idOf(task)])];
