// The credential of a request, and the files that it comes from.

import { readFileSync } from 'node:fs';
import { KfError, messageOf } from '../errors.ts';

/** The credential of one request. */
export interface Credential {
  /** The Authorization header's value. */
  authorization?: string;
  /** PEM. */
  cert?: string | Buffer;
  key?: string | Buffer;
}

export interface CredentialSource {
  /** The credential of the next request; renewed first if it is about to expire. */
  get(): Promise<Credential>;
  /** After a 401. True when there is now another credential than the refused one. */
  renew(refused: Credential): Promise<boolean>;
}

/** A file of the kubeconfig or of the service account. */
export function readCredentialFile(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new KfError('usage', `The ${what} "${path}" that the kubeconfig names cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** PEM from base64 (`…-data`), otherwise from the file. */
export function pemOf(data: string | undefined, file: string | undefined, what: string): string | undefined {
  if (data !== undefined && data !== '') return Buffer.from(data, 'base64').toString('utf8');
  return file === undefined ? undefined : readCredentialFile(file, what);
}

export function sameCredential(a: Credential, b: Credential): boolean {
  return a.authorization === b.authorization && a.cert === b.cert && a.key === b.key;
}
