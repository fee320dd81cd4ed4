// A CFTask: a command that runs once with the code of an app.

import { kinds } from '../lib/api/group.ts';
import type { Stored } from '../lib/api/object.ts';
import type { CFApp, CFTask } from '../lib/api/types.generated.ts';
import { defined } from '../lib/defined.ts';
import { assemble, type Authorship } from './metadata.ts';

export interface NewTask {
  guid: string;
  app: Stored<CFApp>;
  name: string;
  command: string;
  processType?: string | undefined;
  memoryMB?: number | undefined;
  diskMB?: number | undefined;
}

/** The controller makes the app its owner. */
export function buildTask({ guid, app, name, command, processType, memoryMB, diskMB }: NewTask, author: Authorship): CFTask {
  return assemble(kinds.task, {
    metadata: { name: guid, ...defined({ namespace: app.metadata.namespace }) },
    body: {
      spec: { appRef: { name: app.metadata.name }, displayName: name, command, ...defined({ processType, memoryMB, diskMB }) },
    },
    author,
  });
}
