// The functions for the command `push`, which loads them all with this file.

export { readPushPlan } from '../../manifest/read.ts';
export { pushAll, type PushedDetails } from './all.ts';
