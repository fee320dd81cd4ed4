// What was asked for. It is written early: a setup after one that was cut off goes on with the same settings.

import { buildInstallationEnv } from '../../../../templates/setup/info.ts';
import { buildRecord } from '../../../../templates/setup/record.ts';
import type { Part } from '../part.ts';

export const part: Part = {
  name: 'settings',
  requires: ['namespaces'],
  step: 'namespaces',
  objects: ({ plan }) => [buildRecord(plan), buildInstallationEnv(plan)],
};
