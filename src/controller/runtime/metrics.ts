// Counters and gauges in Prometheus' text format.

type Labels = Record<string, string>;

interface Series {
  labels: Labels;
  value: number;
}

interface Family {
  type: 'counter' | 'gauge';
  help: string;
  series: Map<string, Series>;
}

export class Metrics {
  readonly #families = new Map<string, Family>();
  readonly #collectors: (() => void)[] = [];

  declare(name: string, type: Family['type'], help: string): void {
    if (!this.#families.has(name)) this.#families.set(name, { type, help, series: new Map() });
  }

  /** Adds to a counter; 0 makes the series exist. */
  add(name: string, labels: Labels = {}, by = 1): void {
    this.#series(name, labels).value += by;
  }

  set(name: string, labels: Labels, value: number): void {
    this.#series(name, labels).value = value;
  }

  /** Called before each rendering: the place to set gauges. */
  collect(collector: () => void): void {
    this.#collectors.push(collector);
  }

  /** https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
  render(): string {
    for (const collector of this.#collectors) collector();
    const lines: string[] = [];
    for (const [name, family] of this.#families) {
      lines.push(`# HELP ${name} ${family.help}`, `# TYPE ${name} ${family.type}`);
      for (const { labels, value } of family.series.values()) lines.push(`${name}${renderLabels(labels)} ${String(value)}`);
    }
    return `${lines.join('\n')}\n`;
  }

  #series(name: string, labels: Labels): Series {
    const family = this.#families.get(name);
    if (family === undefined) throw new Error(`The metric ${name} was not declared.`);
    const key = renderLabels(labels);
    let series = family.series.get(key);
    if (series === undefined) {
      series = { labels, value: 0 };
      family.series.set(key, series);
    }
    return series;
  }
}

function renderLabels(labels: Labels): string {
  const entries = Object.entries(labels);
  if (entries.length === 0) return '';
  const escape = (value: string): string =>
    value
      .replaceAll('\\', '\\\\')
      .replaceAll('"', String.raw`\"`)
      .replaceAll('\n', String.raw`\n`);
  return `{${entries.map(([key, value]) => `${key}="${escape(value)}"`).join(',')}}`;
}
