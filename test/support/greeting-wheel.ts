// The package that test/fixtures/apps/python-hello needs.

import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { zipOf } from './zip.ts';

/** A wheel is a zip with its own description (PEP 427); it is the one that the app's requirements.txt names. */
function wheel(): Buffer {
  const info = 'greeting-1.0.0.dist-info';
  const files = {
    'greeting.py': 'def greet(language):\n    return "hello from " + language\n',
    [`${info}/METADATA`]: 'Metadata-Version: 2.1\nName: greeting\nVersion: 1.0.0\n',
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: kf\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    [`${info}/RECORD`]: `greeting.py,,\n${info}/METADATA,,\n${info}/WHEEL,,\n${info}/RECORD,,\n`,
  };
  return zipOf(Object.entries(files).map(([name, content]) => ({ name, content })));
}

/** Puts it into the folder `vendor` of a copy of the app. @param source folder of the copy */
export async function addGreeting(source: string): Promise<void> {
  await mkdir(path.join(source, 'vendor'));
  await writeFile(path.join(source, 'vendor', 'greeting-1.0.0-py3-none-any.whl'), wheel());
}
