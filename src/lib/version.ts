// This program's version: set by the bundler, or read from package.json when run from source.

import { readFileSync } from 'node:fs';

/** The release of cf whose commands and flags kf follows (tools/surface/cf-v8.yaml). */
export const followedCf = '8.18.4';

declare const __KF_VERSION__: string | undefined;

/** `0.1.0`. */
export function kfVersion(): string {
  if (typeof __KF_VERSION__ === 'string') return __KF_VERSION__;
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
