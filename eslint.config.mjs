// What the compiler cannot say: sizes, promises, one way out, names.
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

/** `...(a === undefined ? {} : { a })` and its kin: one function says it, for one field and for ten. */
const optionalFields = {
  create: ({ report, sourceCode }) => ({
    ConditionalExpression(node) {
      const { test, consequent, alternate } = node;
      if (test.type !== 'BinaryExpression' || test.right.name !== 'undefined') return;
      const [empty, full] = test.operator === '===' ? [consequent, alternate] : [alternate, consequent];
      if (empty.type !== 'ObjectExpression' || empty.properties.length > 0 || full.type !== 'ObjectExpression') return;
      const [field, ...others] = full.properties;
      if (others.length > 0 || field?.type !== 'Property' || field.computed) return;
      if (sourceCode.getText(field.value) === sourceCode.getText(test.left))
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
    files: ['src/**/*.ts'],
    // These still say it the old way.
    ignores: ['src/*.ts', 'src/commands/**', 'src/lib/{ops,views,logs,session}/**'],
    plugins: { kf: { rules: { 'optional-fields': optionalFields } } },
    rules: { 'kf/optional-fields': 'error' },
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
