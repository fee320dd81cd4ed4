// The names of the program that scripts call.

const programs = new Set(['cf', 'cf6', 'cf7', 'cf8', 'kf']);

/** True for the name of cf or kf, also with a version and after a path: `/usr/local/bin/cf8`. */
export const isNameOfCf = (program: string): boolean => programs.has(program.replace(/^.*\//, ''));
