import { cp, writeFile } from 'node:fs/promises';
import path from 'node:path';

/**
 * A Node.js app in a folder of its own inside `folder`: its dependency runs `script` (sh) while the build installs it. The build fails after the
 * script, so that npm shows what it said.
 */
export async function installingApp(folder: string, name: string, script: string): Promise<string> {
  const app = path.join(folder, name);
  await cp(path.resolve('test/fixtures/apps/broken-build'), app, { recursive: true });
  const scripts = { postinstall: 'sh ./step.sh >&2; exit 3' };
  await writeFile(path.join(app, 'local', 'package.json'), JSON.stringify({ name: 'local', version: '1.0.0', scripts }));
  await writeFile(path.join(app, 'local', 'step.sh'), script);
  return app;
}
