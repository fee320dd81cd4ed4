// Runs before each file of the cluster ring: gives it the cluster of the worker that runs it.

import { laneOf } from './lanes.ts';

Object.assign(process.env, laneOf(Number(process.env['VITEST_POOL_ID'])));
