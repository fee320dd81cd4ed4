import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Metrics } from '../../../src/controller/runtime/metrics.ts';

const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8');

interface Described {
  name: string;
  type: string;
  labels: string[];
}

const byName = (a: Described, b: Described): number => (a.name < b.name ? -1 : 1);

/** Rows of the page's table: name, type and labels. */
function documented(): Described[] {
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const cells = (row: string): string[] => row.split('|').map((cell) => cell.trim());
  const words = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);
  return rows.map(cells).map(([, name, type = '', labels]) => ({ name: words(name)[0] ?? '', type, labels: words(labels) }));
}

/** The metrics of the controller, with the labels that each declares. */
function exported(): Described[] {
  const registered = new Metrics().registry.getMetricsAsArray() as unknown as { name: string; type: string; labelNames: string[] }[];
  return registered.map(({ name, type, labelNames }) => ({ name, type, labels: labelNames }));
}

test('the page on metrics lists the metrics of the controller, with types and labels', () => {
  expect(documented().toSorted(byName)).toEqual(exported().toSorted(byName));
});

test("names follow Prometheus' conventions: a prefix, base units, and _total for counters only", () => {
  for (const { name, type } of exported()) {
    expect(name).toMatch(/^(kf|process)_[a-z_]+$/);
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    if (type === 'histogram') expect(name).toMatch(/_duration_seconds$/);
  }
});

test('labels are words of kf, never names of apps, spaces or users', () => {
  const labels = new Set(exported().flatMap((metric) => metric.labels));
  expect([...labels].toSorted()).toEqual(['kind', 'lifecycle', 'outcome', 'reconciler', 'verb']);
});

test('series of outcomes exist from the start, so that a first failure is seen as an increase', async () => {
  const text = await new Metrics().render();
  for (const outcome of ['succeeded', 'failed']) {
    expect(text).toContain(`kf_push_duration_seconds_count{outcome="${outcome}"} 0`);
    expect(text).toContain(`kf_rollout_duration_seconds_count{outcome="${outcome}"} 0`);
    expect(text).toContain(`kf_build_duration_seconds_count{lifecycle="buildpack",outcome="${outcome}"} 0`);
  }
});
