// Stores errors that belong to no test (an unhandled rejection), because vitest's JSON report does not contain them.

import { writeFileSync } from 'node:fs';
import type { Reporter } from 'vitest/node';

type TestRunEnd = NonNullable<Reporter['onTestRunEnd']>;

/** Writes the errors as a JSON list of texts to the file in KF_TEST_UNHANDLED. */
export default class UnhandledReporter implements Reporter {
  onTestRunEnd(_modules: Parameters<TestRunEnd>[0], errors: Parameters<TestRunEnd>[1]): void {
    const file = process.env['KF_TEST_UNHANDLED'];
    if (file === undefined || errors.length === 0) return;
    writeFileSync(file, JSON.stringify(errors.map((error) => error.stack ?? error.message)));
  }
}
