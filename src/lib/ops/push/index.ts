// What the command `push` calls; it loads it in one piece.

export { readPushPlan } from '../../manifest/read.ts';
export { pushAll, type PushedDetails } from './all.ts';
