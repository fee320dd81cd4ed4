// Reads a ring's JSON report: how many tests passed, and which failed and why.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** One failed test, or one file that could not be loaded. */
export interface Failure {
  /** Path of the test file, from the project's directory. */
  file: string;
  /** The names of its suites and its own; empty for a file that could not be loaded. */
  name: string;
  /** The first error, with its first lines of stack. */
  message: string;
}

export interface RingReport extends Counts {
  failures: Failure[];
}

/** The part of vitest's JSON report (in Jest's format) that is read here. */
interface VitestReport {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: {
    name: string;
    status: string;
    message?: string;
    assertionResults: { fullName: string; status: string; failureMessages?: string[] | null }[];
  }[];
}

const linesPerFailure = 14;

function firstLines(text: string): string {
  return text.trim().split('\n').slice(0, linesPerFailure).join('\n');
}

/** Failures of a report: every failed test, and every failed file in which no test failed. */
function failuresOf(report: VitestReport, directory: string): Failure[] {
  return report.testResults.flatMap((result) => {
    const file = path.relative(directory, result.name);
    const failed = result.assertionResults.filter((test) => test.status === 'failed');
    if (failed.length === 0 && result.status === 'failed') return [{ file, name: '', message: firstLines(result.message ?? '') }];
    return failed.map((test) => ({ file, name: test.fullName, message: firstLines(test.failureMessages?.[0] ?? '') }));
  });
}

/** The file for errors that belong to no test, next to the report of the ring (test/support/unhandled-reporter.ts). */
export function unhandledFile(report: string): string {
  return `${report}.unhandled`;
}

function readUnhandled(report: string): Failure[] {
  const file = unhandledFile(report);
  if (!existsSync(file)) return [];
  const errors = JSON.parse(readFileSync(file, 'utf8')) as string[];
  return errors.map((message) => ({ file: 'an error that belongs to no test', name: '', message: firstLines(message) }));
}

/**
 * Reads the JSON report of a ring.
 *
 * A ring that ended with an error without a failed test counts as one failure. A ring without a readable report fails with the reason.
 *
 * @param directory the project's directory; paths of files are relative to it
 */
export function readRingReport(file: string, exitCode: number, directory: string): RingReport {
  const result: RingReport = { passed: 0, failed: 0, skipped: 0, failures: [] };
  try {
    const report = JSON.parse(readFileSync(file, 'utf8')) as VitestReport;
    result.passed = report.numPassedTests;
    result.failed = report.numFailedTests;
    result.skipped = report.numPendingTests + report.numTodoTests;
    result.failures = failuresOf(report, directory);
  } catch (error) {
    return { ...result, failed: 1, failures: [{ file, name: '', message: `no report of this ring: ${String(error)}` }] };
  }
  result.failures.push(...readUnhandled(file));
  if (exitCode === 0 || result.failed > 0) return result;
  if (result.failures.length === 0)
    result.failures = [{ file, name: '', message: `the ring ended with exit code ${exitCode}, though no test failed` }];
  return { ...result, failed: 1 };
}

/** The report of a ring that ran in two turns. */
export function joinReports(a: RingReport, b: RingReport): RingReport {
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
    failures: [...a.failures, ...b.failures],
  };
}

/** Lines that name each failure of a ring, for the end of the whole run, where they are easy to find. */
export function renderFailures(ring: string, failures: readonly Failure[]): string[] {
  return failures.flatMap((failure) => [
    `FAILED ${ring}: ${failure.file}${failure.name === '' ? '' : ` > ${failure.name}`}`,
    ...failure.message.split('\n').map((line) => `    ${line}`),
  ]);
}
