import { expect, test } from 'vitest';
import { pluginFolder } from '../../../src/lib/ops/plugins/folder.ts';

test.each([
  [{ CF_PLUGIN_HOME: '/p', CF_HOME: '/x', HOME: '/z' }, '/p/.cf/kf-plugins'],
  [{ CF_PLUGIN_HOME: '', CF_HOME: '/x', HOME: '/z' }, '/x/.cf/kf-plugins'],
  [{ XDG_DATA_HOME: '/d', HOME: '/z' }, '/d/kf/plugins'],
  [{ HOME: '/z' }, '/z/.local/share/kf/plugins'],
])('%j has its plugins in %s', (env, expected) => {
  expect(pluginFolder(env)).toBe(expected);
});
