// Flags of the commands that create and change user-provided services.

import * as Flags from '@oclif/core/flags';
import { readJsonOrFile } from '../lib/cf/json-or-file.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { parseList } from '../lib/cf/values.ts';
import type { Terminal } from '../lib/output/terminal.ts';

export const userProvidedFlags = () => ({
  credentials: Flags.string({ char: 'p', summary: 'JSON, a file with JSON, or names of values to ask for', helpValue: 'CREDENTIALS' }),
  'from-secret': Flags.string({
    summary: 'Secret of the space with the credentials, whose changes kf follows',
    helpValue: 'SECRET',
  }),
  'syslog-drain': Flags.string({
    char: 'l',
    summary: 'URL for logs of bound apps; stored, but not used yet',
    helpValue: 'SYSLOG_DRAIN_URL',
  }),
  'route-service': Flags.string({
    char: 'r',
    summary: 'URL for requests of bound routes; stored, but not used yet',
    helpValue: 'ROUTE_SERVICE_URL',
  }),
  tags: Flags.string({ char: 't', summary: 'tags, comma-separated', helpValue: 'TAGS' }),
});

/** What `-p` or `--from-secret` says; `names` are the credentials whose values are still to be asked for. */
interface GivenCredentials {
  credentials?: Record<string, unknown>;
  names?: string[];
  fromSecret?: string;
}

/** Reads `-p` and `--from-secret`. @throws KfError `usage` */
export async function credentialsFrom({
  credentials,
  'from-secret': fromSecret,
}: {
  credentials?: string | undefined;
  'from-secret'?: string | undefined;
}): Promise<GivenCredentials> {
  if (fromSecret === undefined) return credentials === undefined ? {} : readCredentials(credentials);
  if (credentials !== undefined) throw incorrectUsage('The following arguments cannot be used together: -p, --from-secret');
  const name = fromSecret.trim();
  if (name.length <= 253 && /^[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/.test(name)) return { fromSecret: name };
  throw incorrectUsage(`'${fromSecret}' is no name of a Secret, which has small letters, digits, '-' and '.'`);
}

/** `-p`: JSON, a file, or names of credentials. @throws KfError `usage` */
async function readCredentials(text: string): Promise<GivenCredentials> {
  const credentials = await readJsonOrFile(text, '-p');
  if (credentials !== undefined) return { credentials };
  const names = parseList(text);
  if (names.length === 0 || /[{}[\]"/]/.test(text)) {
    throw incorrectUsage(
      'Invalid configuration provided for -p flag. Please provide a valid JSON object or path to a file containing a valid JSON object.',
    );
  }
  return { names };
}

/**
 * The credentials, those of `names` from prompts without echo (without a terminal: one line of stdin each). As in cf, a command calls it when
 * its target is known: nobody types secrets for a command that then refuses.
 * @throws KfError `usage`
 */
export async function askedCredentials(
  terminal: Terminal,
  { credentials, names }: GivenCredentials,
  signal: AbortSignal,
): Promise<Record<string, unknown> | undefined> {
  if (names === undefined) return credentials;
  const { askSecret } = await import('../lib/output/prompt.ts');
  const answers: Record<string, unknown> = {};
  for (const name of names) answers[name] = await askSecret(terminal, { name, otherwise: "-p '{...}' or -p FILE", signal });
  return answers;
}
