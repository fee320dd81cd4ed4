// Words of commands that users copy.

/** Quotes one word for a POSIX shell. */
export const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`);
