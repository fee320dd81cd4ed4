// The settings of this setup. They are written early, so that a setup after an interrupted one continues with the same settings.

import { buildInstallationEnv } from '../../../../templates/setup/info.ts';
import { buildRecord } from '../../../../templates/setup/record.ts';
import type { Part } from '../part.ts';

export const part: Part = {
  name: 'settings',
  requires: ['namespaces'],
  step: 'namespaces',
  objects: ({ plan }) => [buildRecord(plan), buildInstallationEnv(plan)],
};
