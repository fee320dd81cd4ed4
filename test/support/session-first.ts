// The order of the files: the session needs a cluster on which nothing else has run.

import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { sessionFile } from './lanes.ts';

const isSession = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith(`/${sessionFile}`);

/** The runner's own order, the longest first, after the session. */
export class SessionFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [...sorted.filter(isSession), ...sorted.filter((file) => !isSession(file))];
  }
}
