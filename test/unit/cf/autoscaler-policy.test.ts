import { describe, expect, it } from 'vitest';
import { readAutoscalerPolicy } from '../../../src/lib/cf/autoscaler-policy.ts';

const rule = (metric_type: string, operator: string, threshold: number, adjustment: string, more: object = {}): object => ({
  metric_type,
  operator,
  threshold,
  adjustment,
  ...more,
});
const read = (rules: unknown, more: object = {}) =>
  readAutoscalerPolicy({ instance_min_count: 2, instance_max_count: 6, scaling_rules: rules, ...more }, 'policy.json');

describe('a policy of cf', () => {
  it('has its thresholds of adding as targets, and its steps and pauses in both directions', () => {
    const { settings, notes } = read([
      rule('cpu', '>=', 80, '+2', { breach_duration_secs: 120, cool_down_secs: 300 }),
      rule('cpu', '<', 20, '-50%', { cool_down_secs: 3600 }),
      rule('memoryused', '>', 400, '+1', { breach_duration_secs: 60 }),
    ]);
    expect(settings).toEqual({
      least: 2,
      most: 6,
      targets: { cpu: 80, memoryused: 400 },
      behavior: {
        scaleUp: {
          stabilizationWindowSeconds: 120,
          policies: [
            { type: 'Pods', value: 2, periodSeconds: 300 },
            { type: 'Pods', value: 1, periodSeconds: 60 },
          ],
        },
        scaleDown: { policies: [{ type: 'Percent', value: 50, periodSeconds: 1800 }] },
      },
    });
    expect(notes).toEqual(['Instances are taken away when fewer would stay below cpu 80, not at 20.']);
  });

  it.each([
    [
      'throughput',
      [rule('throughput', '>', 1, '+1')],
      "scaling_rules[0].metric_type 'throughput' is not possible: Kubernetes has no metric of requests.",
    ],
    [
      'a custom metric',
      [rule('jobqueue', '>', 1, '+1')],
      "scaling_rules[0].metric_type 'jobqueue' is not possible: kf knows cpu, cpuutil, memoryutil, memoryused.",
    ],
    ['an operator', [rule('cpu', '=', 1, '+1')], 'scaling_rules[0].operator must be one of <, >, <=, >=.'],
    ['a threshold', [rule('cpu', '>', 0.5, '+1')], 'scaling_rules[0].threshold must be a whole number of at least 1.'],
    ['an adjustment', [rule('cpu', '>', 1, '1')], 'scaling_rules[0].adjustment must be like +1, -2 or +50%.'],
    ['a direction', [rule('cpu', '>', 1, '-1')], 'scaling_rules[0].adjustment -1 does not fit its operator >.'],
    [
      'a pause',
      [rule('cpu', '>', 1, '+1', { cool_down_secs: 4000 })],
      'scaling_rules[0].cool_down_secs must be a whole number from 0 to 3600.',
    ],
    [
      'two targets',
      [rule('cpu', '>', 1, '+1'), rule('cpu', '>', 2, '+2')],
      'Two rules add instances by cpu; Kubernetes has one target for each metric.',
    ],
    [
      'no target',
      [rule('cpu', '<', 1, '-1')],
      'A rule takes instances away by cpu, and none adds them: Kubernetes needs a target above which it adds.',
    ],
    ['no rules', [], 'scaling_rules must have at least one rule.'],
    ['a rule that is none', ['cpu'], 'scaling_rules[0] must be an object.'],
  ])('is refused by name for %s', (_what, rules, fault) => {
    expect(() => read(rules)).toThrow(`kf cannot follow the policy 'policy.json':\n  ${fault}`);
  });

  it('is refused with all its faults at once, schedules among them', () => {
    expect(() => read([rule('disk', '>', 1, '+1')], { instance_min_count: 0, schedules: {} })).toThrow(
      [
        "kf cannot follow the policy 'policy.json':",
        '  instance_min_count must be a whole number of at least 1.',
        "  schedules are not possible: Kubernetes' autoscaler knows no times. A job of CI can run kf autoscale.",
        "  scaling_rules[0].metric_type 'disk' is not possible: Kubernetes does not scale by disk.",
      ].join('\n'),
    );
  });

  it('is refused with a metric that only JavaScript knows, and with a maximum below the minimum', () => {
    expect(() => read([rule('toString', '<', 1, '-1')], { instance_min_count: 5, instance_max_count: 2 })).toThrow(
      [
        '  instance_max_count is 2, and instance_min_count 5: it must be at least that.',
        "  scaling_rules[0].metric_type 'toString' is not possible: kf knows cpu, ",
      ].join('\n'),
    );
  });
});
