import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readRingReport, renderFailures, unhandledFile } from '../../support/ring-report.ts';

describe("the report of a ring's tests", () => {
  let directory = '';
  beforeAll(() => {
    directory = mkdtempSync(path.join(tmpdir(), 'ring-report-'));
  });
  afterAll(() => {
    rmSync(directory, { recursive: true });
  });

  function written(report: object): string {
    const file = path.join(directory, 'report.json');
    writeFileSync(
      file,
      JSON.stringify({ numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [], ...report }),
    );
    return file;
  }

  it('names each test that failed, with the first lines of its error', () => {
    const message = [
      'AssertionError: expected 26 to be at most 25',
      ...Array.from({ length: 40 }, (_, index) => `    at frame ${index}`),
    ].join('\n');
    const file = written({
      numPassedTests: 7,
      numFailedTests: 1,
      testResults: [
        {
          name: path.join(directory, 'test/unit/a.test.ts'),
          status: 'failed',
          assertionResults: [
            { fullName: 'a push counts its requests', status: 'failed', failureMessages: [message] },
            { fullName: 'a push ends', status: 'passed', failureMessages: [] },
          ],
        },
      ],
    });
    const report = readRingReport(file, 1, directory);
    expect(report).toMatchObject({ passed: 7, failed: 1, skipped: 0 });
    const lines = renderFailures('unit', report.failures);
    expect(lines.slice(0, 3)).toEqual([
      'FAILED unit: test/unit/a.test.ts > a push counts its requests',
      '    AssertionError: expected 26 to be at most 25',
      '        at frame 0',
    ]);
    expect(lines).toHaveLength(15);
  });

  it('names a file that did not load, and counts it as one failure', () => {
    const file = written({
      testResults: [
        {
          name: path.join(directory, 'test/unit/b.test.ts'),
          status: 'failed',
          message: 'SyntaxError: no such export',
          assertionResults: [],
        },
      ],
    });
    const report = readRingReport(file, 1, directory);
    expect(report.failed).toBe(1);
    expect(renderFailures('unit', report.failures)).toEqual(['FAILED unit: test/unit/b.test.ts', '    SyntaxError: no such export']);
  });

  it('fails when the ring ended with an error and names no test, and when there is no report', () => {
    expect(readRingReport(written({ numPassedTests: 3 }), 1, directory)).toMatchObject({
      passed: 3,
      failed: 1,
      failures: [{ message: 'the ring ended with exit code 1, though no test failed' }],
    });
    expect(readRingReport(path.join(directory, 'none.json'), 1, directory).failed).toBe(1);
    expect(readRingReport(path.join(directory, 'none.json'), 1, directory).failures[0]?.message).toContain('no report of this ring');
  });

  it('names an error that belongs to no test', () => {
    const file = written({ numPassedTests: 3 });
    writeFileSync(unhandledFile(file), JSON.stringify(['Error: write EPIPE\n    at Socket']));
    expect(readRingReport(file, 1, directory)).toMatchObject({ failed: 1, failures: [{ message: 'Error: write EPIPE\n    at Socket' }] });
    rmSync(unhandledFile(file));
  });

  it('names nothing if all tests passed', () => {
    expect(readRingReport(written({ numPassedTests: 3 }), 0, directory)).toEqual({ passed: 3, failed: 0, skipped: 0, failures: [] });
  });
});
