// What the command `push` calls; it loads it in one piece.

export { readPushPlan } from '../../manifest/read.ts';
export { askRoute } from '../answer.ts';
export { describeApp } from '../apps.ts';
export { pushApp } from './push.ts';
