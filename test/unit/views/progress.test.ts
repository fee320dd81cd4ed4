import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { OpEvent } from '../../../src/lib/events.ts';
import { renderEvent } from '../../../src/lib/views/progress.ts';

const shown = (event: OpEvent) => renderEvent(event, 'cf');

it('a folder of a gibibyte and more is pushed with a hint about .cfignore', () => {
  const packaging = (files: number, bytes: number) => shown({ type: 'packaging', files, bytes });
  expect(packaging(9, 1024 ** 3 - 1)).toEqual([{ say: 'Packaging files to upload...' }, { step: 'Packing 9 files' }]);
  expect(packaging(12, 3.2 * 1024 ** 3)).toEqual([
    { say: 'Packaging files to upload...' },
    { warn: 'The folder has 3.2G in 12 files; what the app does not need can be named in a file .cfignore.' },
    { step: 'Packing 12 files' },
  ]);
});

it('an upload that sent nothing is reported with the reason', () => {
  expect(shown({ type: 'uploaded', bytes: 0 })).toEqual([{ done: true }, { say: 'All files found in remote cache; nothing to upload.' }]);
  expect(shown({ type: 'uploaded', bytes: 1 })).toEqual([{ done: true }]);
});

it('the number of instances is shown if some are wanted', () => {
  expect(shown({ type: 'instances-pending', ready: 0, wanted: 0 })).toEqual([{ step: 'Instances pending...' }]);
  expect(shown({ type: 'waiting', reason: 'instance 0', ready: 1, wanted: 2 })).toEqual([{ step: 'Waiting: instance 0 (1 of 2 ready)' }]);
  expect(shown({ type: 'waiting', reason: 'instance 0' })).toEqual([{ step: 'Waiting: instance 0' }]);
  expect(shown({ type: 'instances-scaling', running: 1, wanted: 2 })).toEqual([{ step: 'Instances starting... (1 of 2 running)' }]);
  expect(shown({ type: 'instances-scaling', running: 3, wanted: 2 })).toEqual([{ step: 'Instances stopping... (1 more than 2)' }]);
});

it('commands in warnings have the name of the program that was started', () => {
  expect(shown({ type: 'fell-back', app: 'shop', cause: 'it crashed' })).toEqual([
    { warn: "The newest version of app 'shop' failed: it crashed" },
    { warn: "App 'shop' runs as the version that served last. Why the newest one failed: `cf logs shop --recent`" },
  ]);
});

it('ops contain none of these sentences', () => {
  const ops = path.resolve(import.meta.dirname, '../../../src/lib/ops');
  const files = readdirSync(ops, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  expect(files.length).toBeGreaterThan(50);
  // Progress text of cf ends in three dots; a warning of an op has a type and no further text.
  const sentence = /\.\.\.['`]|type: 'warning', message: ['"`]/;
  expect(files.filter((name) => sentence.test(readFileSync(path.join(ops, name), 'utf8')))).toEqual([]);
});
