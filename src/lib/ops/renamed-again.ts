// The error of the renaming commands when another one came later.

import { KfError } from '../errors.ts';

/** Somebody else has given the object another name while this command waited. @param command shows the object, as `kf app` */
export function renamedAgain(bin: string, what: string, command: string, name: string): KfError {
  return new KfError('conflict', `The ${what} was renamed again meanwhile: its name is '${name}'.`, {
    hints: [`${bin} ${command} ${name}`],
    details: { name },
  });
}
