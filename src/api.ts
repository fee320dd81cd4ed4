// The API of kf for plugins: `import { KfCommand } from '@kf/cli/api'`. docs/plugins.md describes it; src/api-types.d.ts has its types.

export * as Args from '@oclif/core/args';
export * as Flags from '@oclif/core/flags';
export { KfCommand } from './base-command.ts';
export { KfError } from './lib/errors.ts';
export { computedResource, resource } from './lib/api/object.ts';
export { line, pairs, table } from './lib/views/block.ts';

/** Grows with every change that a plugin could notice. */
export const apiVersion = 1;
