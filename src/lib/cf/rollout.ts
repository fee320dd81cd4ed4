// The flags of cf that say how instances are replaced: --strategy, --max-in-flight, --instance-steps.

import type { RolloutOptions, Strategy } from '../api/rollout.ts';
import { defined } from '../defined.ts';
import { incorrectUsage } from './usage.ts';

/** As typed. */
interface RolloutFlags {
  strategy?: Strategy | undefined;
  'max-in-flight'?: number | undefined;
  'instance-steps'?: string | undefined;
}

const bothNeeded = (one: string, other: string) => incorrectUsage(`'${one}' and '${other}' must be used together.`);

/** @throws KfError `usage` for flags that have no effect with each other, and for percentages that are none */
export function rolloutOptions(flags: RolloutFlags): RolloutOptions {
  const { strategy, 'max-in-flight': maxInFlight, 'instance-steps': steps } = flags;
  if (maxInFlight !== undefined && strategy === undefined) throw bothNeeded('--max-in-flight', '--strategy');
  if (steps !== undefined && strategy !== 'canary') throw bothNeeded('--instance-steps', '--strategy=canary');
  if (maxInFlight !== undefined && strategy === 'recreate')
    throw incorrectUsage("--strategy recreate replaces all instances at once: it takes no '--max-in-flight'.");
  return defined({ strategy, maxInFlight, instanceSteps: parseInstanceSteps(steps) });
}

/** `20,60` → [20, 60]. */
function parseInstanceSteps(text: string | undefined): number[] | undefined {
  if (text === undefined) return undefined;
  const steps = text.split(',').map((part) => (/^\d+$/.test(part) ? Number(part) : Number.NaN));
  const ascending = steps.every((step, index) => step >= 1 && step <= 100 && step > (steps[index - 1] ?? 0));
  if (!ascending)
    throw incorrectUsage(
      '--instance-steps must be percentages from 1 to 100, ascending, with commas and without blanks between them, for example 20,60',
    );
  return steps;
}
