import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import Logs from '../../../src/commands/logs.ts';
import Push from '../../../src/commands/push.ts';
import Start from '../../../src/commands/start.ts';
import { helpSubject } from '../../../src/declared.ts';
import type { AppDetails } from '../../../src/lib/api/results.ts';
import { KfError } from '../../../src/lib/errors.ts';
import { commandsAs } from '../../../src/lib/output/command-name.ts';
import { printFailure } from '../../../src/lib/output/error.ts';
import { commandHelp, describeCommand, usageHelp } from '../../../src/lib/output/help.ts';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { openDisplay } from '../../../src/lib/output/progress.ts';
import { openPushOutput } from '../../../src/lib/output/push-output.ts';
import { Terminal } from '../../../src/lib/output/terminal.ts';
import { renderApp } from '../../../src/lib/views/apps.ts';

const source = fileURLToPath(new URL('../../../src', import.meta.url));

/** A terminal of a kf that was started as `cf`, and its output. */
function startedAsCf(json = false): { terminal: Terminal; said: () => string } {
  let all = '';
  const stream = { write: (text: string) => (all += text) };
  const asStarted = (text: string): string => commandsAs(text, 'cf');
  const terminal = new Terminal({ env: {}, stdout: stream, stderr: () => stream, canAsk: () => false, json, asStarted }, plainInk);
  return { terminal, said: () => all };
}

describe('a command in a text', () => {
  it.each([
    ['kf push APP, then `kf logs APP`', 'cf', 'cf push APP, then `cf logs APP`'],
    ["as after 'kf restart'.", 'cf', "as after 'cf restart'."],
    [
      'kf is not set up; the kf that set it up; /opt/kf push; my-kf push',
      'cf',
      'kf is not set up; the kf that set it up; /opt/kf push; my-kf push',
    ],
    ['kf push APP', 'kubectl kf', 'kubectl kf push APP'],
    ['kubectl kf push APP', 'kubectl kf', 'kubectl kf push APP'],
    ['CF_STARTUP_TIMEOUT=10 kf start APP', 'cf', 'CF_STARTUP_TIMEOUT=10 cf start APP'],
  ])('%s, started as %s: %s', (text, bin, expected) => {
    expect(commandsAs(text, bin)).toBe(expected);
  });
});

describe('kf that was started as cf names commands as cf', () => {
  const error = (): KfError => new KfError('failed', "Run 'kf setup' first.", { hints: ['kf push shop'] });

  it('in a failure, and in the error of each of several apps, but not in the lines of an app', () => {
    const { terminal, said } = startedAsCf(true);
    const { code, message, hints } = error();
    const apps = [{ name: 'shop', error: { code, message, hints } }, { name: 'bag' }];
    printFailure(terminal, new KfError(code, message, { hints: ['kf push shop'], details: { apps, logTail: ['kf push says the app'] } }));
    expect(JSON.parse(said())).toMatchObject({
      error: {
        message: "Run 'cf setup' first.",
        hints: ['cf push shop'],
        details: {
          apps: [{ name: 'shop', error: { code, message: "Run 'cf setup' first.", hints: ['cf push shop'] } }, { name: 'bag' }],
          logTail: ['kf push says the app'],
        },
      },
    });
  });

  it('in the failure of one app among several', () => {
    const { terminal, said } = startedAsCf();
    const output = openPushOutput({ terminal, display: openDisplay(terminal), bin: 'cf' }, ['shop', 'bag'])('shop');
    output.failed(error());
    expect(said()).toContain("Run 'cf setup' first.\n");
    expect(said()).toContain('   cf push shop\n');
  });

  it('in warnings, and in progress messages', () => {
    const { terminal, said } = startedAsCf();
    const display = openDisplay(terminal);
    display.step("Waiting: the variables, which 'kf set-env' sets");
    display.warn('See kf logs.');
    display.done();
    expect(said()).toBe("Waiting: the variables, which 'cf set-env' sets\nSee cf logs.\n");
  });

  it("in messages of the controller about an app, but not in the app's name or command", () => {
    const { terminal, said } = startedAsCf();
    const web = {
      type: 'web',
      running: 0,
      instances: 1,
      guid: 'g',
      memoryMB: 64,
      diskMB: 64,
      healthCheck: 'port',
      command: 'kf push',
      sidecars: [],
    };
    const details = "The app's droplet was deleted; 'kf push' makes a new one.";
    const app = {
      ...{ name: 'kf push', guid: 'g', state: 'started', routes: [], lifecycle: 'buildpack', buildpacks: [] },
      processes: [{ ...web, instanceDetails: [{ index: 0, state: 'crashed', details }] }],
      deployment: { id: '1', phase: 'Failed', message: "Mend the variables, then 'kf restart' it." },
    } as unknown as AppDetails;
    terminal.print(renderApp(app, { commands: true }));
    expect(said()).toMatch(/^name: +kf push$/m);
    expect(said()).toMatch(/^start command: +kf push$/m);
    expect(said()).toMatch(/'cf push' makes a new one\.$/m);
    expect(said()).toMatch(/^reason: +Mend the variables, then 'cf restart' it\.$/m);
  });

  it('in the examples of help', () => {
    const subject = helpSubject(Start, 'start');
    expect(commandHelp(subject, 'cf').join('\n')).toContain('CF_STARTUP_TIMEOUT=10 cf start example-app');
    expect(describeCommand(subject, 'cf')['examples']).toEqual(['cf start example-app', 'CF_STARTUP_TIMEOUT=10 cf start example-app']);
  });
});

describe('help of a command', () => {
  it('has a usage that fits into 80 columns, broken between its parts', () => {
    const subject = helpSubject(Push, 'push');
    const [title, ...lines] = usageHelp(subject, 'cf');
    expect(title).toBe('USAGE:');
    expect(lines[0]).toBe('   cf push [APP_NAME] [-b NAME...] [-c COMMAND] [-f PATH] [--no-manifest]');
    expect(lines.slice(1, -1).every((text) => text.startsWith('   ['))).toBe(true);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
    const whole = lines.map((text) => text.trim()).join(' ');
    expect(describeCommand(subject, 'cf')['usage']).toBe(whole.trim());
    expect(commandHelp(subject, 'cf')).toEqual(expect.arrayContaining(lines));
  });

  it('of logs says that it prints a document per line', () => {
    expect(commandHelp(helpSubject(Logs, 'logs'), 'cf').join('\n')).toMatch(/^ {3}--json +print one JSON document per line$/m);
    expect(commandHelp(helpSubject(Push, 'push'), 'cf').join('\n')).toMatch(/^ {3}--json +print one JSON document$/m);
  });
});

/** Literals that name a command, except the examples of commands. */
function literalsIn(file: string): string[] {
  const parsed = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyDeclaration(node) && ts.isIdentifier(node.name) && node.name.text === 'examples') return;
    const isText = ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddle(node) || ts.isTemplateTail(node);
    if (isText && commandsAs(node.text, 'cf') !== node.text) found.push(`${path.relative(source, file)}: ${node.text.trim()}`);
    ts.forEachChild(node, visit);
  };
  visit(parsed);
  return found;
}

it('modules that print name no command themselves, because they know the name that kf was started as', () => {
  const printing = ['base-command.ts', 'declared.ts', 'main.ts', 'flags.ts', 'commands/*.ts', 'lib/output/*.ts', 'lib/views/*.ts'];
  const files = printing.flatMap((pattern) => globSync(path.join(source, pattern)));
  expect(files.length).toBeGreaterThan(50);
  expect(files.flatMap(literalsIn)).toEqual([]);
});
