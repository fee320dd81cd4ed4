// The server of the page for hosts without an app.

import { bundleName } from '../../../../templates/setup/controller.ts';
import { systemNamespace } from '../../../../templates/setup/options.ts';
import { buildPages, pagesName } from '../../../../templates/setup/pages.ts';
import type { Part } from '../part.ts';
import { startMs, waitForDeployment } from '../waits.ts';

export const part: Part = {
  name: 'pages',
  requires: ['policies', 'programs', 'roles'],
  step: 'gateway',
  objects: ({ plan, programs }) => buildPages(plan, bundleName(programs)),
  after: (run) => waitForDeployment(run, { namespace: systemNamespace, name: pagesName, timeoutMs: startMs }),
};
