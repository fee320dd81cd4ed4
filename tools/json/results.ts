// The results of kf's commands in `--json`, as JSON Schema, read from the types of their classes.

import { join } from 'node:path';
import ts from 'typescript';
import { SchemaWriter, type Schema } from './schema.ts';

export interface Results {
  /** By command. */
  results: Record<string, Schema>;
  /** Types that several results have, by name. */
  definitions: Record<string, Schema>;
}

function programOf(root: string, files: string[]): ts.Program {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as { config: object };
  const { options } = ts.parseJsonConfigFileContent({ ...config, files, include: undefined }, ts.sys, root);
  return ts.createProgram(files, { ...options, noEmit: true });
}

/** What `run` of the class that a file exports resolves to. */
function resultOf(checker: ts.TypeChecker, file: ts.SourceFile): ts.Type {
  const symbol = checker.getSymbolAtLocation(file);
  const exported = symbol && checker.getExportsOfModule(symbol).find(({ name }) => name === 'default');
  const run = exported && checker.getDeclaredTypeOfSymbol(exported).getProperty('run');
  const [signature] = run === undefined ? [] : checker.getTypeOfSymbol(run).getCallSignatures();
  const result = signature && checker.getAwaitedType(signature.getReturnType());
  if (result === undefined) throw new Error(`${file.fileName} has no command.`);
  return result;
}

/** @param commands names of the files in src/commands */
export function resultsOf(root: string, commands: readonly string[]): Results {
  const files = commands.map((name) => join(root, 'src/commands', `${name}.ts`));
  const program = programOf(root, files);
  const checker = program.getTypeChecker();
  const writer = new SchemaWriter(checker);
  const results: Record<string, Schema> = {};
  for (const [at, name] of commands.entries()) {
    const file = program.getSourceFile(files[at] ?? '');
    if (file === undefined) throw new Error(`There is no command '${name}'.`);
    const schema = writer.schemaOf(resultOf(checker, file));
    if (schema !== undefined) results[name] = schema;
  }
  return { results, definitions: writer.definitions };
}
