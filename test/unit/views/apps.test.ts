import { describe, expect, it } from 'vitest';
import type { AppDetails } from '../../../src/lib/api/results.ts';
import { layOut } from '../../../src/lib/output/layout.ts';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { renderApp, renderApps } from '../../../src/lib/views/apps.ts';
import { eventDate, longDate } from '../../../src/lib/views/dates.ts';
import type { Block } from '../../../src/lib/views/block.ts';

const text = (blocks: Block[]) => layOut(blocks, { ink: plainInk }).join('\n');

const app: AppDetails = {
  name: 'my-app',
  guid: 'guid',
  state: 'started',
  routes: ['my-app.example.com'],
  lifecycle: 'buildpack',
  stack: 'jammy',
  buildpacks: [{ name: 'kf/nodejs', version: '1.0' }],
  processes: [
    {
      type: 'web',
      guid: 'p',
      running: 1,
      instances: 2,
      memoryMB: 256,
      diskMB: 1024,
      healthCheck: 'port',
      command: 'npm start',
      sidecars: ['config-server', 'proxy'],
      instanceDetails: [
        { index: 0, state: 'running', since: '2026-08-07T10:16:20Z', cpu: 0.003, memoryBytes: 51_066_880, ready: true },
        { index: 1, state: 'crashed', since: '2026-08-07T10:16:22.5Z', ready: false, details: 'exit code 1' },
      ],
    },
    {
      type: 'worker',
      guid: 'q',
      running: 0,
      instances: 0,
      memoryMB: 128,
      diskMB: 1024,
      healthCheck: 'process',
      sidecars: [],
      instanceDetails: [],
    },
  ],
};

describe('apps', () => {
  it('prints only a sentence if there are none', () => {
    expect(text(renderApps([]))).toBe('No apps found');
  });

  it('lists processes and routes, and leaves the processes out when asked', () => {
    const apps = [
      { name: 'a', guid: 'g', state: 'stopped' as const, processes: [{ type: 'web', running: 0, instances: 1 }], routes: ['x', 'y/z'] },
    ];
    expect(text(renderApps(apps))).toBe('name   requested state   processes   routes\na      stopped           web:0/1     x, y/z');
    expect(text(renderApps(apps, { stats: false }))).toBe('name   requested state   routes\na      stopped           x, y/z');
  });
});

describe('one app', () => {
  it("has cf's layout", () => {
    expect(text(renderApp(app)).split('\n')).toEqual([
      'name:              my-app',
      'requested state:   started',
      'routes:            my-app.example.com',
      'last uploaded:     ',
      'stack:             jammy',
      'buildpacks:        ',
      '\tname        version   detect output   buildpack name',
      '\tkf/nodejs   1.0                       kf/nodejs',
      '',
      'type:           web',
      'sidecars:       config-server, proxy',
      'instances:      1/2',
      'memory usage:   256M',
      '     state     since                  cpu    memory          disk      logging          cpu entitlement   details       ready',
      '#0   running   2026-08-07T10:16:20Z   0.3%   48.7M of 256M   - of 1G   - of unlimited                                   true',
      '#1   crashed   2026-08-07T10:16:22Z   -      - of 256M       - of 1G   - of unlimited                     exit code 1   false',
      '',
      'type:           worker',
      'sidecars:       ',
      'instances:      0/0',
      'memory usage:   128M',
      'There are no running instances of this process.',
    ]);
  });

  it('shows start commands only when asked', () => {
    expect(text(renderApp(app))).not.toContain('start command:');
    expect(text(renderApp(app, { commands: true }))).toContain('start command:   npm start');
  });

  it('of an image shows the image instead of buildpacks', () => {
    const shown = text(renderApp({ ...app, lifecycle: 'docker', dockerImage: 'example/app:1' }));
    expect(shown).toContain('docker image:      example/app:1');
    expect(shown).not.toContain('buildpacks:');
  });

  const rolling = { id: 'd', strategy: 'rolling', maxInFlight: 1 } as const;

  it('shows what a deployment waits for and why one failed', () => {
    const at = '2026-08-07T10:16:20Z';
    const starting = { ...rolling, status: 'DEPLOYING', phase: 'Starting', message: 'instance 0 to listen', since: at } as const;
    const waiting = text(renderApp({ ...app, deployment: starting }));
    expect(waiting).toContain('Active deployment with status DEPLOYING (since ');
    expect(waiting).toContain('strategy:        rolling\nmax-in-flight:   1\nwaiting for:     instance 0 to listen');
    const sentence = { ...starting, message: 'Waiting for all routes to lead to the new version.' };
    expect(text(renderApp({ ...app, deployment: sentence }))).toContain('waiting for:     all routes to lead to the new version');
    const failed = { ...rolling, status: 'CANCELED', phase: 'Failed', message: 'It exited with code 1.' } as const;
    expect(text(renderApp({ ...app, deployment: failed }))).toContain('It exited with code 1.');
    expect(text(renderApp({ ...app, deployment: { ...rolling, status: 'DEPLOYED', phase: 'Serving' } }))).not.toContain('deployment');
  });

  it('says of a deployment that no controller moves that it stands still', () => {
    const accepted = { ...rolling, status: 'DEPLOYING', phase: 'Accepted', standsStill: true } as const;
    expect(text(renderApp({ ...app, deployment: accepted }))).toMatch(
      /\nActive deployment with status DEPLOYING\nstrategy: +rolling\nmax-in-flight: +1\n\nThe controller does not answer: the deployment stands still until it runs again\.$/,
    );
  });

  it('shows a paused canary with its step and the two commands that end the pause', () => {
    const paused = { ...rolling, strategy: 'canary', status: 'PAUSED', phase: 'Paused', message: 'x', canary: { step: 1, steps: 3 }, next: { continue: 'kf continue-deployment my-app', cancel: 'kf cancel-deployment my-app' } } as const; // prettier-ignore
    expect(text(renderApp({ ...app, deployment: paused }))).toContain(
      '\nActive deployment with status PAUSED\n' +
        'strategy:        canary\nmax-in-flight:   1\ncanary-steps:    1/3\n\n' +
        'Please run `kf continue-deployment my-app` to promote the canary deployment, or `kf cancel-deployment my-app` to rollback to the original version.',
    );
  });
});

describe('the table of instances', () => {
  const [web] = app.processes as [(typeof app.processes)[0]];
  const withInstances = (instanceDetails: typeof web.instanceDetails): Block[] =>
    renderApp({ ...app, buildpacks: [], processes: [{ ...web, instances: instanceDetails.length, instanceDetails }] });
  const crashed = {
    index: 0,
    state: 'crashed' as const,
    since: '2026-08-07T10:16:20Z',
    cpu: 1.25,
    memoryBytes: 267_900_000,
    ready: false,
    restarts: 3,
    lastEnd: { exitCode: 137, reason: 'OOMKilled', at: '2026-08-07T10:15:00Z' },
  };

  it('fits into a terminal of 80 columns, and has all columns elsewhere', () => {
    const lines = layOut(withInstances([{ ...crashed, details: 'a sentence that is too long for a cell of a table' }]), {
      ink: plainInk,
      columns: 80,
    });
    const rows = lines.filter((row) => /^(#0 | {5}state)/.test(row));
    expect(rows).toHaveLength(2);
    expect(Math.max(...rows.map(({ length }) => length))).toBeLessThanOrEqual(80);
    expect(lines.join('\n')).toMatch(/^ {5}state +since +cpu +memory +details +ready$/m);
    expect(text(withInstances([crashed]))).toMatch(/^ {5}state +since +cpu +memory +disk +logging +cpu entitlement +details +ready$/m);
  });

  it('shows how often and why an instance was restarted', () => {
    expect(text(withInstances([crashed]))).toContain(
      '\n#0:   restarted 3 times; the last time it ran out of memory (limit 256M) at 2026-08-07T10:15:00Z',
    );
    const once = { ...crashed, restarts: 1, lastEnd: { exitCode: 7, reason: 'Error' } };
    expect(text(withInstances([once]))).toContain('\n#0:   restarted once; the last time it ended with exit code 7');
    expect(text(withInstances([{ ...crashed, restarts: 0 }]))).not.toContain('restarted');
  });

  it('shows the size that an instance has, and says if it differs from the settings', () => {
    const older = { ...crashed, state: 'running' as const, memoryBytes: 14_050_918, memoryMB: 64, diskMB: 1024 };
    const shown = text(withInstances([older]));
    expect(shown).toContain('\nmemory usage:   256M\n');
    expect(shown).toContain('   13.4M of 64M   - of 1G   ');
    expect(shown).toContain('ran out of memory (limit 64M)');
    expect(shown).toContain('\n#0:   running with 64M of memory until it is restarted');
    const still = { ...older, restarts: 0 };
    const three = [still, { ...still, index: 1 }, { ...still, index: 2, memoryMB: 256, diskMB: 512 }];
    expect(text(withInstances(three)).split('\n').slice(-2)).toEqual([
      '#0, #1:   running with 64M of memory until they are restarted',
      '#2:   running with 512M of disk until it is restarted',
    ]);
    const many = Array.from({ length: 5 }, (_, index) => ({ ...still, index, memoryMB: 128, diskMB: 512 }));
    expect(text(withInstances(many))).toContain('\n5 instances:   running with 128M of memory and 512M of disk until they are restarted');
    expect(text(withInstances([{ ...still, memoryMB: 256 }]))).not.toContain('running with');
  });

  it('has a cause that is longer than a cell below it', () => {
    const shown = text(withInstances([{ ...crashed, restarts: 0, details: 'The app used more memory than it may and was ended.' }]));
    expect(shown).toMatch(/ready\n#0 .* false\n#0:   The app used more memory than it may and was ended\.$/);
  });

  it('summarises thousands of instances, and shows those that do not run', () => {
    const many = Array.from({ length: 5000 }, (_, index) => ({
      index,
      state: index === 4999 ? ('crashed' as const) : index % 2 === 0 ? ('running' as const) : ('starting' as const),
    }));
    const shown = text(withInstances(many)).split('\n');
    expect(shown.length).toBeLessThan(70);
    expect(shown.join('\n')).toContain('... and 4950 more: ');
    expect(shown.filter((row) => /^#\d+ +starting/.test(row))).toHaveLength(49);
    expect(shown.filter((row) => /^#\d+ +crashed/.test(row))).toHaveLength(1);
  });

  it('shows how many instances run if there are more than a status lists', () => {
    const listed = Array.from({ length: 100 }, (_, index) => ({ index, state: 'running' as const }));
    const shown = text(renderApp({ ...app, processes: [{ ...web, instances: 900, running: 850, instanceDetails: listed }] }));
    expect(shown).toContain('\n... and 850 more: 850 of 900 run in all');
  });
});

describe('dates', () => {
  it('have the form of cf in the given zone', () => {
    expect(longDate('2026-08-07T10:16:20Z', 'UTC')).toBe('Fri 07 Aug 10:16:20 UTC 2026');
    expect(eventDate('2026-08-07T10:16:20.456Z', 'UTC')).toBe('2026-08-07T10:16:20.45+0000');
    expect(eventDate('2026-08-07T22:16:20Z', 'Asia/Kolkata')).toBe('2026-08-08T03:46:20.00+0530');
  });
});
