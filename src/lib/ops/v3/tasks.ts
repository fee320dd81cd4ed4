// Tasks: lists, single ones, and their cancellation.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFTask } from '../../api/types.generated.ts';
import { pageOf } from '../../v3/pages.ts';
import type { V3Resource } from '../../v3/resource.ts';
import { presentTask } from '../../v3/tasks.ts';
import { taskDetails, terminateTask } from '../tasks/tasks.ts';
import { appOf } from './apps.ts';
import { get, post, V3Answer, type Asked, type V3Route } from './request.ts';

const filters = ['guids', 'names', 'states', 'sequence_ids', 'label_selector'];

const present = ({ link }: Asked, task: Stored<CFTask>): V3Resource => presentTask(task, taskDetails(task), link);

function page(asked: Asked, tasks: readonly Stored<CFTask>[]): unknown {
  const { query, link } = asked;
  const found = tasks.filter((task) => {
    const { id, guid, name, state } = taskDetails(task);
    return (
      query.matches('guids', guid) &&
      query.matches('names', name) &&
      query.matches('states', state) &&
      query.matches('sequence_ids', id?.toString()) &&
      query.matches('app_guids', task.spec.appRef?.name) &&
      query.matchesLabels(task)
    );
  });
  return pageOf(
    found.map((task) => present(asked, task)),
    query,
    link,
  );
}

async function listTasks(asked: Asked): Promise<unknown> {
  asked.query.allow([...filters, 'app_guids', 'space_guids', 'organization_guids']);
  return page(asked, await asked.reader.list(kinds.task, asked.query));
}

async function tasksOfApp(asked: Asked): Promise<unknown> {
  asked.query.allow(filters);
  const app = await appOf(asked);
  const { cluster, signal } = asked.reader.session;
  const { items } = await cluster.list(kinds.task, { ns: app.metadata.namespace, signal });
  return page(
    asked,
    items.filter(({ spec }) => spec.appRef?.name === app.metadata.name),
  );
}

const taskOf = ({ reader, part }: Asked): Promise<Stored<CFTask>> => reader.find(kinds.task, 'Task', part('guid'));

async function oneTask(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  return present(asked, await taskOf(asked));
}

async function cancel(asked: Asked): Promise<unknown> {
  const task = await taskOf(asked);
  await terminateTask(await asked.reader.at(task), task);
  return new V3Answer(202, present(asked, await taskOf(asked)));
}

export const taskRoutes: readonly V3Route[] = [
  get('/v3/tasks', listTasks),
  get('/v3/tasks/:guid', oneTask),
  post('/v3/tasks/:guid/actions/cancel', cancel),
  get('/v3/apps/:guid/tasks', tasksOfApp),
];
