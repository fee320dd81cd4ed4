// The policy file of cf's app-autoscaler, as far as Kubernetes' autoscaler can follow it.
// Source: https://github.com/cloudfoundry/app-autoscaler-release/blob/main/docs/policy.md

import { metricUnits, type AutoscalerSettings, type MetricName, type ScalingBehavior } from '../api/autoscaler.ts';
import { defined } from '../defined.ts';
import { KfError } from '../errors.ts';

interface Rule {
  metric: MetricName;
  direction: 'up' | 'down';
  threshold: number;
  step: { type: 'Pods' | 'Percent'; value: number };
  breachSeconds: number | undefined;
  pauseSeconds: number | undefined;
}

export interface ReadPolicy {
  settings: AutoscalerSettings;
  /** What kf follows in another way, in sentences. */
  notes: string[];
}

const longestPauseSeconds = 1_800;
const longestWindowSeconds = 3_600;
const refusedMetrics: Readonly<Record<string, string>> = {
  throughput: 'Kubernetes has no metric of requests',
  responsetime: 'Kubernetes has no metric of response times',
  disk: 'Kubernetes does not scale by disk',
  diskutil: 'Kubernetes does not scale by disk',
};

type Json = Partial<Record<string, unknown>>;
const isRecord = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
const isMetric = (name: unknown): name is MetricName => typeof name === 'string' && Object.hasOwn(metricUnits, name);
const isCount = (value: unknown, least: number): value is number => typeof value === 'number' && Number.isInteger(value) && value >= least;

/** Collects what is wrong, so that all of it is said at once. */
class Reader {
  readonly faults: string[] = [];

  seconds(at: string, rule: Json, key: string, most: number): number | undefined {
    const value = rule[key];
    if (value === undefined) return undefined;
    if (isCount(value, 0) && value <= most) return value;
    this.faults.push(`${at}.${key} must be a whole number from 0 to ${String(most)}.`);
    return undefined;
  }

  metric(at: string, { metric_type: name }: Json): MetricName | undefined {
    if (isMetric(name)) return name;
    const why = Object.hasOwn(refusedMetrics, String(name)) ? refusedMetrics[String(name)] : undefined;
    this.faults.push(`${at}.metric_type '${String(name)}' is not possible: ${why ?? `kf knows ${Object.keys(metricUnits).join(', ')}`}.`);
    return undefined;
  }

  rule(at: string, value: unknown): Rule | undefined {
    if (!isRecord(value)) return void this.faults.push(`${at} must be an object.`);
    const metric = this.metric(at, value);
    const { operator, adjustment, threshold } = value;
    const direction = operator === '>' || operator === '>=' ? 'up' : operator === '<' || operator === '<=' ? 'down' : undefined;
    if (direction === undefined) this.faults.push(`${at}.operator must be one of <, >, <=, >=.`);
    if (!isCount(threshold, 1)) this.faults.push(`${at}.threshold must be a whole number of at least 1.`);
    const [, sign, amount, percent] = /^([+-])(\d{1,4})(%?)$/.exec(String(adjustment)) ?? [];
    if (sign === undefined || Number(amount) === 0) this.faults.push(`${at}.adjustment must be like +1, -2 or +50%.`);
    else if (direction !== undefined && (sign === '+') !== (direction === 'up'))
      this.faults.push(`${at}.adjustment ${String(adjustment)} does not fit its operator ${String(operator)}.`);
    const breachSeconds = this.seconds(at, value, 'breach_duration_secs', longestWindowSeconds);
    const pauseSeconds = this.seconds(at, value, 'cool_down_secs', longestWindowSeconds);
    if (metric === undefined || direction === undefined || !isCount(threshold, 1)) return undefined;
    const step = { type: percent === '%' ? 'Percent' : 'Pods', value: Number(amount) } as const;
    return { metric, direction, threshold, step, breachSeconds, pauseSeconds };
  }
}

function behaviorOf(rules: readonly Rule[], direction: Rule['direction']): ScalingBehavior | undefined {
  const own = rules.filter((rule) => rule.direction === direction);
  if (own.length === 0) return undefined;
  const windows = own.flatMap(({ breachSeconds }) => (breachSeconds === undefined ? [] : [breachSeconds]));
  const policies = own.map(({ step, pauseSeconds = 60 }) => ({
    ...step,
    periodSeconds: Math.min(Math.max(pauseSeconds, 1), longestPauseSeconds),
  }));
  return { ...(windows.length === 0 ? {} : { stabilizationWindowSeconds: Math.max(...windows) }), policies };
}

/** One target for each metric: that of its rule that adds instances. */
function targetsOf(rules: readonly Rule[], reader: Reader, notes: string[]): AutoscalerSettings['targets'] {
  const targets: AutoscalerSettings['targets'] = {};
  for (const { metric, threshold } of rules.filter(({ direction }) => direction === 'up')) {
    if (targets[metric] !== undefined)
      reader.faults.push(`Two rules add instances by ${metric}; Kubernetes has one target for each metric.`);
    targets[metric] = threshold;
  }
  for (const { metric, threshold } of rules.filter(({ direction }) => direction === 'down')) {
    const target = targets[metric];
    if (target === undefined)
      reader.faults.push(`A rule takes instances away by ${metric}, and none adds them: Kubernetes needs a target above which it adds.`);
    else notes.push(`Instances are taken away when fewer would stay below ${metric} ${String(target)}, not at ${String(threshold)}.`);
  }
  return targets;
}

/**
 * @param policy the parsed file
 * @param file its name, for messages
 * @throws KfError `usage` with all that cannot be followed
 */
export function readAutoscalerPolicy(policy: Json, file: string): ReadPolicy {
  const reader = new Reader();
  const notes: string[] = [];
  const { instance_min_count: least, instance_max_count: most, scaling_rules: given, schedules } = policy;
  if (!isCount(least, 1)) reader.faults.push('instance_min_count must be a whole number of at least 1.');
  if (!isCount(most, 1)) reader.faults.push('instance_max_count must be a whole number of at least 1.');
  if (isCount(least, 1) && isCount(most, 1) && least > most)
    reader.faults.push(`instance_max_count is ${String(most)}, and instance_min_count ${String(least)}: it must be at least that.`);
  if (schedules !== undefined)
    reader.faults.push("schedules are not possible: Kubernetes' autoscaler knows no times. A job of CI can run kf autoscale.");
  if (!Array.isArray(given) || given.length === 0) reader.faults.push('scaling_rules must have at least one rule.');
  const rules = (Array.isArray(given) ? given : []).flatMap((rule, at) => reader.rule(`scaling_rules[${String(at)}]`, rule) ?? []);
  const targets = targetsOf(rules, reader, notes);
  if (reader.faults.length > 0 || !isCount(least, 1) || !isCount(most, 1)) {
    const message = [`kf cannot follow the policy '${file}':`, ...reader.faults.map((fault) => `  ${fault}`)].join('\n');
    throw new KfError('usage', message, { hints: ['kf help autoscale'] });
  }
  const behavior = defined({ scaleUp: behaviorOf(rules, 'up'), scaleDown: behaviorOf(rules, 'down') });
  return { settings: { least, most, targets, behavior }, notes };
}
