// What the compiler cannot say: sizes, promises, one way out, names.
import regexp from 'eslint-plugin-regexp';
import ts from 'typescript';
import tseslint from 'typescript-eslint';

/** Whether a value that is not undefined can be falsy: then `a ? { a } : {}` leaves out more than `defined({ a })` does. */
const canBeFalsy = (type) => (type.isUnion() ? type.types : [type]).some(({ flags }) => (flags & scalars) !== 0);
const scalars = ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike | ts.TypeFlags.BooleanLike | ts.TypeFlags.Any | ts.TypeFlags.Unknown;

/** What a condition asks to be there (`a` of `a !== undefined` and of `a`), with the branches for "is there" and "is not". */
function optionalValue({ test, consequent, alternate }, typeOf) {
  if (test.type === 'BinaryExpression' && test.right.name === 'undefined')
    return test.operator === '===' ? [test.left, alternate, consequent] : [test.left, consequent, alternate];
  const isPlain = test.type === 'Identifier' || test.type === 'MemberExpression' || test.type === 'ChainExpression';
  return isPlain && !canBeFalsy(typeOf(test)) ? [test, consequent, alternate] : [];
}

/**
 * `...(a === undefined ? {} : { a })` and its kin: `a ? { a } : {}`, `{ b: a.b, c: a.c }`, and `{ b: f(a) }` of an object, which is
 * `defined({ b: a && f(a) })`. What is made of a text or a number keeps its condition, because `''` and `0` are values.
 */
const optionalFields = {
  create: ({ report, sourceCode }) => ({
    ConditionalExpression(node) {
      const typeOf = (at) => sourceCode.parserServices.getTypeAtLocation(at);
      const [value, full, empty] = optionalValue(node, typeOf);
      if (empty?.type !== 'ObjectExpression' || empty.properties.length > 0 || full.type !== 'ObjectExpression') return;
      const fields = full.properties;
      if (fields.length === 0 || fields.some((field) => field.type !== 'Property' || field.computed)) return;
      const textOf = (at) => sourceCode.getText(at.type === 'TSAsExpression' ? at.expression : at).replaceAll('?.', '.');
      const asked = textOf(value);
      const isOf = (given) => given === asked || given.startsWith(`${asked}.`);
      if (fields.every((field) => isOf(textOf(field.value))) || (fields.length === 1 && !canBeFalsy(typeOf(value))))
        report({ node, message: 'Say it with defined() of src/lib/defined.ts.' });
    },
  }),
};

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', '**/*.generated.ts', 'test/fixtures/**', 'tools/cluster/buildpacks/**', 'test/golden/**'] },
  {
    files: ['src/**/*.ts', 'bin/**/*.ts', 'tools/**/*.ts', 'test/**/*.ts'],
    extends: [tseslint.configs.base],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false, attributes: false } }],
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      'no-empty': ['error', { allowEmptyCatch: false }],
      'prefer-const': 'error',
      eqeqeq: 'error',
      'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      // Every `?.` and `??` counts as a branch here.
      complexity: ['error', 20],
      'max-depth': ['error', 4],
      'max-params': ['error', 5],
      'no-restricted-syntax': [
        'error',
        { selector: 'ExpressionStatement > NewExpression[callee.name=/Error$/]', message: 'An error is made and not thrown.' },
      ],
      'no-restricted-properties': [
        'error',
        {
          object: 'process',
          property: 'exit',
          message: 'Only bin/run.js and the programs of the controller decide when the process ends.',
        },
      ],
    },
  },
  {
    // What tenants, builds, images and registries write is matched in linear time. `report: 'potential'` also finds what is quadratic only by moving.
    files: ['src/**/*.ts'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential', ignoreSticky: false }],
    },
  },
  {
    files: ['src/**/*.ts', 'tools/**/*.ts'],
    plugins: { kf: { rules: { 'optional-fields': optionalFields } } },
    rules: { 'kf/optional-fields': 'error' },
  },
  {
    files: ['src/commands/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "CallExpression[callee.property.name='warn'] > MemberExpression > MemberExpression[property.name=/^(terminal|display)$/]",
          message: 'Commands warn with this.warn().',
        },
      ],
    },
  },
  { files: ['src/commands/**/*.ts'], rules: { 'max-lines': ['error', { max: 100, skipBlankLines: true, skipComments: true }] } },
  {
    files: ['src/controller/**/main.ts', 'src/controller/main.ts', 'bin/**', 'tools/**', 'test/**'],
    rules: { 'no-restricted-properties': 'off' },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': 'off',
      'max-params': 'off',
    },
  },
);
