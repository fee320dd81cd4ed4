import { describe, expect, it } from 'vitest';
import { callsIn } from '../../../src/lib/migration/calls.ts';
import { scriptsOf } from '../../../src/lib/migration/scripts.ts';

const calls = (file: string, source: string): string[] => callsIn(scriptsOf(file, source)).map(({ line, call }) => `${line} ${call}`);

describe('scripts in a CI file', () => {
  it('of GitHub, with the lines of literal and folded texts', () => {
    const source = `name: cf push
jobs:
  deploy:
    steps:
      - name: cf push shop
        run: |
          set -e
          cf push shop \\
            -i 2
          cf apps # list
      - run: >-
          cf scale shop
          -i 3

          cf restart shop
      - run: cf delete \${{ inputs.app }} -f
      - run: cf map-route shop
          apps.example.com -n shop
`;
    expect(calls('.github/workflows/deploy.yml', source)).toEqual([
      '8 cf push shop -i 2',
      '10 cf apps',
      '12 cf scale shop -i 3',
      '15 cf restart shop',
      '16 cf delete ${{ inputs.app }} -f',
      '17 cf map-route shop apps.example.com -n shop',
    ]);
  });

  it('of GitLab, with lists, anchors and several documents', () => {
    const source = `.login: &login
  - cf login -a $API
deploy:
  before_script: *login
  script:
    - 'cf push'
    - - "cf start a"
---
command: [cf, push, my app]
`;
    expect(calls('.gitlab-ci.yml', source)).toEqual(['2 cf login -a $API', '6 cf push', '7 cf start a', '9 cf push "my app"']);
  });

  it('of Concourse, which runs a program without a shell', () => {
    const source = `config:
  run:
    path: /usr/bin/cf
    args: [push, my app]
---
run: { path: bash, args: [-ec, 'cf apps'] }
---
run: { path: ls, args: [cf] }
`;
    expect(calls('task.yml', source)).toEqual(['3 cf push "my app"', '6 cf apps']);
  });

  it('with the name of a version of cf, wherever a program is named', () => {
    const source = `run: { path: /usr/bin/cf8, args: [push, my app] }
---
command: [cf7, apps]
---
steps:
  - uses: cloud-gov/cg-cli-tools@main
    with: { command: cf8 routes }
`;
    expect(calls('task.yml', source)).toEqual(['1 cf push "my app"', '3 cf apps', '6 cloud-gov/cg-cli-tools@main', '7 cf routes']);
  });

  it('of npm', () => {
    expect(calls('package.json', '{\n  "description": "cf push",\n  "scripts": {\n    "deploy": "npm test && cf push"\n  }\n}')).toEqual([
      '4 cf push',
    ]);
  });

  it('of make, with its own signs', () => {
    expect(calls('Makefile', 'cf push:\n\t@cf push $$APP\n\t-cf delete $(APP) \\\n\t  -f\n')).toEqual([
      '2 cf push $APP',
      '3 cf delete $(APP) -f',
    ]);
  });

  it('of make, of which one line does not reach into the next', () => {
    const source = 'a:\n\tcf app "${subst ",\\",${A}}"\n\tif x; then\\\n\t\tcf push;\\\n\tfi\n\tcf apps\n';
    expect(calls('Makefile', source).slice(1)).toEqual(['4 cf push', '6 cf apps']);
  });

  it('of Jenkins', () => {
    const source = `// sh cf apps
stage('cf push') {
  sh 'cf push'
  sh(script: """
    cf start a
  """)
  sh returnStdout: true, script: "cf app a"
}`;
    expect(calls('Jenkinsfile', source)).toEqual(['3 cf push', '5 cf start a', '7 cf app a']);
  });
});

it.each<[string, string[], string[]]>([
  [
    'deploy.yml',
    [
      '- uses: some-one/cf-cli-action@v1',
      '  with:',
      '    command: push -f m.yml',
      '- uses: actions/checkout@v4',
      '  with: {command: push}',
    ],
    ['1 some-one/cf-cli-action@v1', '3 cf push -f m.yml'],
  ],
  [
    'deploy.yml',
    ['- uses: cloud-gov/cg-cli-tools@main', '  with:', '    command: cf apps'],
    ['1 cloud-gov/cg-cli-tools@main', '3 cf apps'],
  ],
  ['pipeline.yml', ['resources:', '- name: cf', '  type: cf', '- {name: x, type: git}'], ['3 cf']],
  ['azure.yml', ['- task: CloudFoundry@0'], ['1 CloudFoundry@0']],
  ['Jenkinsfile', ['stage("x") {', '  pushToCloudFoundry(target: "a")'], ['2 pushToCloudFoundry']],
])('a step of %s that needs Cloud Foundry itself is found', (file, lines, expected) => {
  expect(calls(file, lines.join('\n'))).toEqual(expected);
});

it('a file that is not valid YAML is named with the line', () => {
  expect(() => scriptsOf('ci.yml', 'a: b\nc: [d\ne: f\n')).toThrow(/^ci\.yml:[23]: this is not valid YAML: /);
});

it.each([
  ['deploy.py', ''],
  ['deploy', '#!/usr/bin/env python3\n'],
])('%s is no shell script', (file, source) => {
  expect(() => scriptsOf(file, source)).toThrow(`'${file}' is not a shell script.`);
});

it.each([['deploy.sh'], ['deploy'], ['deploy.bash']])('%s is a shell script', (file) => {
  expect(calls(file, '#!/bin/bash\ncf push\n')).toEqual(['2 cf push']);
});
